"""HistogramObserver: the range that loses least, by a histogram of what was seen."""

from __future__ import annotations

import warnings
from typing import Any

import mindtorch as torch
from mindtorch import Tensor
from mindtorch.nn import factory_kwargs as checked

from ._base import _EPS, UniformQuantizationObserverBase
from .utils import is_per_tensor


class HistogramObserver(UniformQuantizationObserverBase):
    """Notes a histogram of `bins` equal bins, and drops outer bins while the error falls."""

    histogram: Tensor
    min_val: Tensor
    max_val: Tensor

    def __init__(
        self, bins: int = 2048, dtype: torch.dtype = torch.quint8,
        qscheme: object = torch.per_tensor_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None, eps: float = _EPS, is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric"
                "                     and torch.per_tensor_affine."
            )
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic,
            **kwargs,
        )  # fmt: skip
        factory_kwargs = checked(factory_kwargs)
        self.bins = bins
        self.register_buffer("histogram", torch.zeros(bins, **factory_kwargs))
        self.register_buffer("min_val", torch.tensor(float("inf"), **factory_kwargs))
        self.register_buffer("max_val", torch.tensor(float("-inf"), **factory_kwargs))
        self.dst_nbins = 2 ** torch.iinfo(dtype).bits
        self.upsample_rate = 16

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach()
        least, greatest = torch.aminmax(x)
        if least == float("-inf") or greatest == float("inf"):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != float("inf")]
            if x.numel() == 0:
                return x_orig
            least, greatest = torch.aminmax(x)
        if self.min_val == float("inf") or self.max_val == float("-inf"):
            self.reset_histogram(x, least, greatest)
            return x_orig
        least = torch.min(self.min_val, least).detach()
        greatest = torch.max(self.max_val, greatest).detach()
        update = torch.histc(x, self.bins, min=least.item(), max=greatest.item())
        self.histogram.copy_(
            self._combine_histograms(
                self.histogram, self.min_val, self.max_val, update, least, greatest
            )
        )
        self.min_val.copy_(least)
        self.max_val.copy_(greatest)
        return x_orig

    def reset_histogram(self, x: Tensor, min_val: Tensor, max_val: Tensor) -> None:
        """Start anew with what is in `x`."""
        if min_val.numel() != 1 or max_val.numel() != 1:
            raise AssertionError("histogram min/max values must be scalar.")
        self.min_val.resize_(min_val.shape).copy_(min_val)
        self.max_val.resize_(max_val.shape).copy_(max_val)
        counts = torch.histc(x, self.bins, min=min_val.item(), max=max_val.item())
        self.histogram.detach_().resize_(counts.shape).copy_(counts)

    def _combine_histograms(
        self, orig_hist: Tensor, orig_min: Tensor, orig_max: Tensor, update_hist: Tensor,
        update_min: Tensor, update_max: Tensor,
    ) -> Tensor:  # fmt: skip
        """Both histograms over the wider range."""
        if update_min == orig_min and update_max == orig_max:
            return orig_hist + update_hist
        if orig_min == orig_max:
            place = torch.histc(
                orig_min, bins=self.bins, min=update_min.item(), max=update_max.item()
            )
            return place * torch.sum(orig_hist) + update_hist
        finer = self._upscale_histogram(orig_hist, orig_min, orig_max, update_min, update_max)
        return update_hist + finer

    def _upscale_histogram(
        self, histogram: Tensor, orig_min: Tensor, orig_max: Tensor, update_min: Tensor,
        update_max: Tensor,
    ) -> Tensor:  # fmt: skip
        """A histogram over another range: its bins are split, and each part counted anew."""
        rate, bins = self.upsample_rate, self.bins
        histogram = histogram.repeat_interleave(rate) / rate
        edges = torch.linspace(
            orig_min.item(), orig_max.item(), bins * rate + 1, device=histogram.device
        )
        middles = edges[:-1] + 0.5 * ((orig_max - orig_min) / (bins * rate))
        boundaries = torch.linspace(
            update_min.item(), update_max.item(), bins + 1, device=histogram.device
        )
        places = torch.bucketize(middles, boundaries, right=True) - 1
        return torch.bincount(places.clamp(0, bins - 1), weights=histogram, minlength=bins)

    def _get_norm(self, delta_begin: Tensor, delta_end: Tensor, density: Tensor) -> Tensor:
        """The integral of density · x² between two places."""
        cubes = delta_end * delta_end * delta_end - delta_begin * delta_begin * delta_begin
        return density * (cubes / 3)

    def _compute_quantization_error(self, next_start_bin: int, next_end_bin: int) -> float:
        """The squared error where the bins between two are spread over all integers."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        step = width * (next_end_bin - next_start_bin + 1) / self.dst_nbins
        if step == 0.0:
            return 0.0
        device = self.histogram.device
        begin = (torch.arange(self.bins, device=device) - next_start_bin) * width
        end = begin + width
        last = self.dst_nbins - 1
        first_of = torch.clamp(torch.div(begin, step, rounding_mode="floor"), 0, last)
        last_of = torch.clamp(torch.div(end, step, rounding_mode="floor"), 0, last)
        density = self.histogram / width
        half = torch.tensor(step / 2, device=device)
        norm = self._get_norm(begin - (first_of + 0.5) * step, half, density)
        norm = norm + (last_of - first_of - 1) * self._get_norm(-half, half, density)
        norm += self._get_norm(-half, end - (last_of * step + step / 2), density)
        return norm.sum().item()

    def _non_linear_param_search(self) -> tuple[Tensor, Tensor]:
        """The least and the greatest value whose error no further cut makes smaller."""
        if self.histogram.size()[0] != self.bins:
            raise AssertionError("bins mismatch")
        width = (self.max_val - self.min_val) / self.bins
        total = torch.sum(self.histogram).item()
        sums = torch.cumsum(self.histogram, dim=0).tolist()
        alpha, beta, step = 0.0, 1.0, 1e-5
        start, end, least = 0, self.bins - 1, float("inf")
        float32 = torch.tensor([0.0], dtype=torch.float32)
        while alpha < beta:
            low, high = alpha + step, beta - step
            left, right = start, end
            below = float32.fill_(low * total).item()
            above = float32.fill_(high * total).item()
            while left < end and sums[left] < below:
                left += 1
            while right > start and sums[right] > above:
                right -= 1
            from_left = left - start > end - right
            if from_left:
                alpha, right = low, end
            else:
                beta, left = high, start
            if (left, right) == (start, end):
                continue
            error = self._compute_quantization_error(left, right)
            if error > least:
                break
            least, start, end = error, left, right
        return self.min_val + width * start, self.min_val + width * (end + 1)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale [1] and the zero point [1]."""
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            warnings.warn(
                "must run observer before calling calculate_qparams."
                "                                    Returning default scale and zero point ",
                stacklevel=2,
            )
            device = self.min_val.device.type
            return torch.tensor([1.0], device=device), torch.tensor([0], device=device)
        if self.bins != len(self.histogram):
            raise AssertionError(
                "The number of bins in histogram should be equal to the number of bins "
                "supplied while making this observer"
            )
        return self._calculate_qparams(*self._non_linear_param_search())

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any],
        strict: bool, missing_keys: list[str], *rest: Any,
    ) -> None:  # fmt: skip
        for name in ("min_val", "max_val"):
            if prefix + name in state_dict:
                setattr(self, name, state_dict[prefix + name])
            elif strict:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, *rest
        )

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"
