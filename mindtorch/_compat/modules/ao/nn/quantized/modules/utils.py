"""torch.ao.nn.quantized.modules.utils: weights as integers."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import mindtorch as torch
from mindtorch import Tensor, nn


class WeightedQuantizedModule(nn.Module, metaclass=abc.ABCMeta):
    """A layer whose weights are integers."""

    @classmethod
    @abc.abstractmethod
    def from_reference(
        cls, ref_module: nn.Module, output_scale: float, output_zero_point: int
    ) -> Any:
        """From a layer that computes in floating point."""


def _quantize_weight(float_wt: Tensor, observer: nn.Module) -> Any:
    """A weight as qint8 by an observer's scale, within its range."""
    scale, zero = observer.calculate_qparams()
    weight = float_wt.detach()
    source = getattr(observer, "activation_post_process", observer)
    if observer.qscheme == torch.per_channel_affine_float_qparams:
        raise NotImplementedError(
            "torch.ao.nn.quantized: mindtorch has no weights with zero points in floating point"
        )
    if observer.qscheme in (torch.per_channel_affine, torch.per_channel_symmetric):
        q = torch.quantize_per_channel(
            weight, scale.double(), zero.long(), observer.ch_axis, torch.qint8
        )
    else:
        q = torch.quantize_per_tensor(weight, float(scale), int(zero), torch.qint8)
    if source.quant_min > -128 or source.quant_max < 127:
        q = q._with(q._ints.clamp(source.quant_min, source.quant_max))
    return q


class PackedParams(nn.Module):
    """Integers of a layer, as one entry of its state_dict beside their dtype.

    `_ENTRY` is the entry's name and the attribute's, `_USUAL` the dtype of a state_dict without
    one, if there may be one.
    """

    _ENTRY: ClassVar[str]
    _USUAL: ClassVar[tuple[torch.dtype, ...]] = ()

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def _put(self, entry: Any) -> None:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + self._ENTRY] = getattr(self, self._ENTRY)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any],
        strict: bool, *rest: Any,
    ) -> None:  # fmt: skip
        self.dtype = state_dict.pop(prefix + "dtype", *self._USUAL)
        self._put(state_dict.pop(prefix + self._ENTRY))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)

    def __repr__(self) -> str:
        return repr(getattr(self, self._ENTRY))


class ScaledModule(nn.Module):
    """A layer whose results' `scale` and `zero_point` are buffers."""

    scale: Tensor
    zero_point: Tensor

    def keep_scale(
        self, scale: float, zero_point: int, device: Any = None, dtype: torch.dtype | None = None
    ) -> None:
        """Register both."""
        options = {"device": device, **({} if dtype is None else {"dtype": dtype})}
        self.register_buffer("scale", torch.tensor(scale, **options))
        self.register_buffer("zero_point", torch.tensor(zero_point, **options))

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"


def observed_scale(mod: nn.Module) -> tuple[float, int]:
    """The scale and the zero point that a module's observer noted."""
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)
