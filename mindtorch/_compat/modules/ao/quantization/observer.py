"""torch.ao.quantization.observer: modules that note the range of what passes through them."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any, NoReturn

import mindtorch as torch
from mindtorch import Tensor
from mindtorch._compat.method_names import written_out
from mindtorch._compat.refusals import refusals
from mindtorch.nn import Module, factory_kwargs as checked

from ._base import (
    _EPS,
    ObserverBase,
    UniformQuantizationObserverBase,
    _PartialWrapper as _PartialWrapper,
    _with_args as _with_args,
    is_activation_post_process,
)
from ._histogram import HistogramObserver
from .utils import (
    is_per_channel,
    is_per_tensor,
    is_symmetric,
)

__all__ = [
    "FixedQParamsObserver", "HistogramObserver", "MinMaxObserver",
    "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver", "NoopObserver",
    "ObserverBase", "PerChannelMinMaxObserver", "PlaceholderObserver", "RecordingObserver",
    "ReuseInputObserver", "UniformQuantizationObserverBase",
    "default_affine_fixed_qparams_observer", "default_debug_observer",
    "default_dynamic_quant_observer", "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer", "default_float_qparams_observer",
    "default_float_qparams_observer_4bit", "default_histogram_observer", "default_observer",
    "default_per_channel_weight_observer", "default_placeholder_observer",
    "default_reuse_input_observer", "default_symmetric_fixed_qparams_observer",
    "default_weight_observer", "get_observer_state_dict", "load_observer_state_dict",
    "per_channel_weight_observer_range_neg_127_to_127", "weight_observer_range_neg_127_to_127",
]  # fmt: skip


_ObserverBase = UniformQuantizationObserverBase


def _refuse_narrow(observer: UniformQuantizationObserverBase, gap: str) -> None:
    if is_symmetric(observer.qscheme) and observer.reduce_range and observer.dtype is torch.quint8:
        raise NotImplementedError(f"Cannot reduce range for symmetric{gap} quantization for quint8")


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest value of all."""

    min_val: Tensor
    max_val: Tensor

    def __init__(
        self, dtype: torch.dtype = torch.quint8, qscheme: object = torch.per_tensor_affine,
        reduce_range: bool = False, quant_min: int | None = None, quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None, eps: float = _EPS, is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                "MinMaxObserver's qscheme only support torch.per_tensor_symmetric"
                "                     and torch.per_tensor_affine."
            )
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic,
            **kwargs,
        )  # fmt: skip
        factory_kwargs = checked(factory_kwargs)
        self.register_buffer("min_val", torch.tensor(float("inf"), **factory_kwargs))
        self.register_buffer("max_val", torch.tensor(float("-inf"), **factory_kwargs))
        _refuse_narrow(self, " " * 38)

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel() == 0:
            return x_orig
        least, greatest = torch.aminmax(x_orig.detach().to(self.min_val.dtype))
        self._widen(least, greatest)
        return x_orig

    def _widen(self, least: Tensor, greatest: Tensor) -> None:
        self.min_val.copy_(torch.min(least, self.min_val))
        self.max_val.copy_(torch.max(greatest, self.max_val))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale [1] and the zero point [1]."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val.copy_(torch.tensor(float("inf")))
        self.max_val.copy_(torch.tensor(float("-inf")))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """The moving average of the least and the greatest value."""

    def __init__(
        self, averaging_constant: float = 0.01, dtype: torch.dtype = torch.quint8,
        qscheme: object = torch.per_tensor_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None, eps: float = _EPS,
        is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                "MovingAverageMinMaxObserver's qscheme only support                 "
                "torch.per_tensor_symmetric and torch.per_tensor_affine.                 "
                f"but got: {qscheme}"
            )
        self.averaging_constant = averaging_constant
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for "
                f"averaging constant of {averaging_constant}"
            )
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic,
            **kwargs,
        )  # fmt: skip

    def _widen(self, least: Tensor, greatest: Tensor) -> None:
        if not (self.min_val == float("inf") and self.max_val == float("-inf")):
            least = self.min_val + self.averaging_constant * (least - self.min_val)
            greatest = self.max_val + self.averaging_constant * (greatest - self.max_val)
        self.min_val.copy_(least)
        self.max_val.copy_(greatest)


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest value of each channel."""

    min_val: Tensor
    max_val: Tensor

    def __init__(
        self, ch_axis: int = 0, dtype: torch.dtype = torch.quint8,
        qscheme: object = torch.per_channel_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None, eps: float = _EPS, is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        name = name if name.startswith("Moving") else "PerChannelMinMaxObserver"
        if not is_per_channel(qscheme):
            raise NotImplementedError(
                f"{name}'s qscheme only support                     torch.per_channel_symmetric,"
                " torch.per_channel_affine and torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError(f"{name} doesn't support dynamic quantization")
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic,
            **kwargs,
        )  # fmt: skip
        factory_kwargs = checked(factory_kwargs)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", torch.tensor([], **factory_kwargs))
        self.register_buffer("max_val", torch.tensor([], **factory_kwargs))
        _refuse_narrow(self, "")

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().to(self.min_val.dtype)
        axes = list(range(x.dim()))
        axes[self.ch_axis], axes[0] = 0, self.ch_axis
        least, greatest = torch.aminmax(torch.flatten(x.permute(axes), start_dim=1), dim=1)
        if self.min_val.numel() and self.max_val.numel():
            least, greatest = self._widened(least, greatest)
        for buffer, value in ((self.min_val, least), (self.max_val, greatest)):
            buffer.resize_(value.shape).copy_(value)
        return x_orig

    def _widened(self, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
        return torch.min(least, self.min_val), torch.max(greatest, self.max_val)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scales [C] and the zero points [C]."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any],
        strict: bool, missing_keys: list[str], *rest: Any,
    ) -> None:  # fmt: skip
        for name in ("min_val", "max_val"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
            elif strict:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, *rest
        )

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val, self.max_val = torch.rand(0), torch.rand(0)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """The moving average of the least and the greatest value of each channel."""

    def __init__(
        self, averaging_constant: float = 0.01, ch_axis: int = 0,
        dtype: torch.dtype = torch.quint8, qscheme: object = torch.per_channel_affine,
        reduce_range: bool = False, quant_min: int | None = None, quant_max: int | None = None,
        eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps,
            is_dynamic=is_dynamic, **kwargs,
        )  # fmt: skip
        self.averaging_constant = averaging_constant

    def _widened(self, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
        least = self.min_val + self.averaging_constant * (least - self.min_val)
        return least, self.max_val + self.averaging_constant * (greatest - self.max_val)


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are given."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, scale: float, zero_point: int, dtype: torch.dtype = torch.quint8,
        qscheme: object = torch.per_tensor_affine, quant_min: int = 0, quant_max: int = 255,
        is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.register_buffer("scale", torch.tensor([scale], dtype=torch.float))
        self.register_buffer("zero_point", torch.tensor([zero_point], dtype=torch.int))
        self.qscheme = qscheme

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 - torch's name
        return X

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """What was given."""
        return self.scale, self.zero_point


@written_out("forward")
class _Passing(ObserverBase):
    """Notes nothing and has no scales."""

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> NoReturn:
        raise Exception(f"calculate_qparams should not be called for {type(self).__name__}")


class PlaceholderObserver(_Passing):
    """Says a dtype and no more."""

    def __init__(
        self, dtype: torch.dtype = torch.float32, custom_op_name: str = "",
        compute_dtype: torch.dtype | None = None, quant_min: int | None = None,
        quant_max: int | None = None, qscheme: object = None, eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.qscheme = torch.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps = _EPS if eps is None else eps
        self.custom_op = custom_op_name
        if compute_dtype:
            warnings.warn(
                "Please use `is_dynamic` instead of `compute_dtype`.                     "
                "`compute_dtype` will be deprecated in a future release                     "
                "of PyTorch.",
                stacklevel=2,
            )

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class RecordingObserver(_Passing):
    """Keeps a copy of all that passes."""

    def __init__(self, dtype: torch.dtype = torch.quint8) -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self) -> list[Tensor]:
        """The copies, in order."""
        return self.tensor_val


class NoopObserver(_Passing):
    """For float16, which needs no scale."""

    def __init__(self, dtype: torch.dtype = torch.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.custom_op = custom_op_name


class ReuseInputObserver(_Passing):
    """For what keeps the scale of its input."""

    def __init__(self) -> None:
        super().__init__(torch.quint8, is_dynamic=False)


HistogramObserver.__module__ = __name__


_is_activation_post_process = is_activation_post_process


def get_observer_state_dict(mod: Module) -> OrderedDict[str, Any]:
    """The entries of `mod.state_dict()` that observers wrote."""
    state = mod.state_dict()
    result = OrderedDict((k, v) for k, v in state.items() if "activation_post_process" in k)
    result.__dict__["_metadata"] = state.__dict__["_metadata"]
    return result


def load_observer_state_dict(mod: Module, obs_dict: dict[str, Any]) -> None:
    """Give observers back what `get_observer_state_dict` took."""
    missing: list[str] = []
    unexpected: list[str] = []
    for name, module in mod.named_modules():
        if _is_activation_post_process(module):
            module._load_from_state_dict(obs_dict, name + ".", {}, False, missing, unexpected, [])
    for what, keys in (("Missing", missing), ("Unexpected", unexpected)):
        for key in keys:
            if "observer" in key or "activation_post_process" in key:
                raise Exception(f"{what} keys for observer {key} in state_dict")


_SYMMETRIC = {"dtype": torch.qint8, "qscheme": torch.per_tensor_symmetric}
_CHANNELS = {"dtype": torch.qint8, "qscheme": torch.per_channel_symmetric}
_EVEN = {"quant_min": -127, "quant_max": 127, "eps": 2**-12}
_FLOAT_QPARAMS = {"qscheme": torch.per_channel_affine_float_qparams, "ch_axis": 0}
_BYTE = {"dtype": torch.quint8, "quant_min": 0, "quant_max": 255}

default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(**_SYMMETRIC)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(**_SYMMETRIC, **_EVEN)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(**_CHANNELS)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    **_CHANNELS, **_EVEN
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(**_BYTE, is_dynamic=True)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint8, **_FLOAT_QPARAMS
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint4x2, **_FLOAT_QPARAMS
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, **_BYTE
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, **_BYTE
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver

__getattr__ = refusals("torch.ao.quantization.observer",
    "mindtorch has observers of eager mode, not this", [
    "AffineQuantizedObserverBase", "Granularity", "MappingType", "PerAxis", "PerBlock",
    "PerGroup", "PerRow", "PerTensor", "PerToken", "TorchAODType", "ZeroPointDomain",
    "get_block_size",
])  # fmt: skip
