"""What observers and modules that round have in common, and factories of them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import mindtorch as torch
from mindtorch import Tensor
from mindtorch._tensor.dtype import float8_e4m3fn, float8_e5m2, uint16
from mindtorch.nn import Module, factory_kwargs as checked

from .utils import (
    calculate_qmin_qmax,
    check_min_max_valid,
    is_per_channel,
    is_per_tensor,
    is_symmetric,
    validate_qmin_qmax,
)

T = TypeVar("T")
_EPS = torch.finfo(torch.float32).eps


class _PartialWrapper:
    """A class with arguments, some of them made at each call."""

    def __init__(self, p: partial[Any]) -> None:
        self.p = p
        self.callable_args: dict[str, Callable[[], object]] = {}

    def __call__(self, *args: object, **keywords: object) -> Any:
        fresh = {k: v() for k, v in self.callable_args.items() if k not in keywords}
        return self.p(*args, **keywords, **fresh)

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: object) -> _PartialWrapper:
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Callable[[], object]) -> _PartialWrapper:
        result = _PartialWrapper(self.p)
        result.callable_args = {**self.callable_args, **kwargs}
        return result


def _with_args(cls_or_self: Callable[..., Any], /, **kwargs: object) -> _PartialWrapper:
    """A factory of modules with these arguments."""
    return _PartialWrapper(partial(cls_or_self, **kwargs))


def _with_callable_args(
    cls_or_self: Callable[..., Any], /, **kwargs: Callable[[], object]
) -> _PartialWrapper:
    """A factory of modules with arguments made at each call."""
    return _PartialWrapper(partial(cls_or_self)).with_callable_args(**kwargs)


def _overridden_freely(method: Callable[..., T]) -> Callable[..., T]:
    """`method`, whose overrides may have other arguments."""
    return method


class ObserverBase(ABC, Module):
    """What notes statistics in `forward` and gives scales in `calculate_qparams`."""

    def __init__(self, dtype: torch.dtype, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor: ...

    @abstractmethod
    @_overridden_freely
    def calculate_qparams(self, **kwargs: object) -> Any: ...

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


class UniformQuantizationObserverBase(ObserverBase):
    """Integers at equal steps between a least and a greatest value."""

    _version = 3
    eps: Tensor

    def __init__(
        self, dtype: torch.dtype = torch.quint8, qscheme: object = torch.per_tensor_affine,
        reduce_range: bool = False, quant_min: int | None = None, quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None, eps: float = _EPS, is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        factory_kwargs = checked(factory_kwargs)
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme = qscheme
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers."
                "                     reduce_range will be deprecated in a future release of"
                " PyTorch.",
                stacklevel=2,
            )
        self.reduce_range = reduce_range
        self.register_buffer("eps", torch.tensor([eps], **factory_kwargs))
        if not is_per_tensor(qscheme) and not is_per_channel(qscheme):
            raise AssertionError(
                "Default Observer only works for per_tensor_affine, per_tensor_symmetric, "
                "per_channel_affine, per_channel_symmetric and per_channel_float_qparams"
                " quantization scheme"
            )
        allowed = (torch.qint8, torch.quint8, torch.quint4x2, torch.qint32, torch.int8, torch.uint8,
                   torch.int16, torch.int32, float8_e5m2, float8_e4m3fn,
                   uint16)  # fmt: skip
        if dtype not in allowed:
            raise AssertionError(f"Default Observer only works for {allowed} data type")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if quant_min is not None and quant_max is not None:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min or 0, quant_max or 0, self.has_customized_qrange, dtype, reduce_range
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        if local_metadata.get("version") in (None, 1):
            state_dict[prefix + "eps"] = torch.tensor([_EPS])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _validate_qmin_qmax(self, quant_min: int, quant_max: int) -> None:
        validate_qmin_qmax(quant_min, quant_max)

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        """Scales and zero points [1] or [C] of a range."""
        device = min_val.device.type
        if not check_min_max_valid(min_val, max_val):
            return torch.tensor([1.0], device=device), torch.tensor([0], device=device)
        low, high = self.quant_min, self.quant_max
        least = torch.min(min_val, torch.zeros_like(min_val))
        greatest = torch.max(max_val, torch.zeros_like(max_val))
        zero_point = torch.zeros(least.size(), dtype=torch.int64, device=least.device)
        if is_symmetric(self.qscheme):
            scale = torch.max(-least, greatest) / (float(high - low) / 2)
            scale = torch.max(scale, self.eps)
            if self.dtype in (torch.quint8, torch.uint8):
                middle = (low + high) // 2 if self.has_customized_qrange else 128
                zero_point = zero_point.new_full(zero_point.size(), middle)
            elif self.dtype is uint16:
                zero_point = zero_point.new_full(zero_point.size(), 2**15)
        elif self.qscheme == torch.per_channel_affine_float_qparams:
            scale = (max_val - min_val) / float(high - low)
            scale = torch.where(scale > self.eps, scale, torch.ones_like(scale))
            zero_point = -1 * min_val / scale
        else:
            scale = torch.max((greatest - least) / float(high - low), self.eps)
            zero_point = low - torch.round(least / scale).to(torch.int)
            zero_point = torch.clamp(zero_point, low, high)
        return torch.atleast_1d(scale), torch.atleast_1d(zero_point)

    def reset_min_max_vals(self) -> None:
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


class FakeQuantizeBase(ABC, Module):
    """What rounds in `forward`, and can be told to stop rounding or observing."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", torch.tensor([1], dtype=torch.uint8))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=torch.uint8))

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor: ...

    @abstractmethod
    @_overridden_freely
    def calculate_qparams(self, **kwargs: object) -> Any: ...

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round, or pass values on."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        """Pass values on."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Follow the range, or keep the scale."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        """Keep the scale."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs: object) -> _PartialWrapper:
        """A factory of such modules."""
        factory = _with_args(cls, **kwargs)
        factory.__module__ = "torch.ao.quantization.fake_quantize"
        return factory


def is_activation_post_process(module: object) -> bool:
    """Whether a module observes or rounds what passes through it."""
    return isinstance(module, ObserverBase | FakeQuantizeBase)


for _class in (_PartialWrapper, ObserverBase, UniformQuantizationObserverBase):
    _class.__module__ = f"{__package__}.observer"
FakeQuantizeBase.__module__ = f"{__package__}.fake_quantize"
