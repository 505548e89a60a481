"""torch.ao.quantization.fake_quantize: modules that round as integers would, and train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch as torch
from mindtorch import Tensor
from mindtorch.nn import Module

from ._base import FakeQuantizeBase, _PartialWrapper as _PartialWrapper
from .observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from .utils import is_per_channel, is_per_tensor, is_symmetric

__all__ = [
    "FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize", "default_affine_fixed_qparams_fake_quant",
    "default_dynamic_fake_quant", "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit", "default_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant", "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant", "default_fused_wt_fake_quant",
    "default_histogram_fake_quant", "default_per_channel_weight_fake_quant",
    "default_symmetric_fixed_qparams_fake_quant", "default_weight_fake_quant",
    "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
    "fused_wt_fake_quant_range_neg_127_to_127",
]  # fmt: skip


class FakeQuantize(FakeQuantizeBase):
    """Rounds by the scale of an observer of its own."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, observer: Any = MovingAverageMinMaxObserver, quant_min: int | None = None,
        quant_max: int | None = None, is_dynamic: bool = False, **observer_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if quant_min is not None and quant_max is not None:
            self._refuse_range(observer, quant_min, quant_max, observer_kwargs)
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        observer_kwargs["is_dynamic"] = is_dynamic
        source = self.activation_post_process = observer(**observer_kwargs)
        self.quant_min, self.quant_max = source.quant_min, source.quant_max
        self.is_dynamic, self.dtype, self.qscheme = (
            source.is_dynamic, source.dtype, source.qscheme,
        )  # fmt: skip
        floats = self.qscheme == torch.per_channel_affine_float_qparams
        self.register_buffer("scale", torch.tensor([1.0], dtype=torch.float))
        self.register_buffer(
            "zero_point", torch.tensor([0], dtype=torch.float if floats else torch.int)
        )
        self.ch_axis = getattr(source, "ch_axis", -1)
        if not is_per_channel(self.qscheme) and not is_per_tensor(self.qscheme):
            raise AssertionError(
                "Only per channel and per tensor quantization are supported in fake quantize"
                f" got qscheme: {self.qscheme}"
            )
        self.is_per_channel = is_per_channel(self.qscheme)

    @staticmethod
    def _refuse_range(observer: Any, least: int, greatest: int, keywords: dict[str, Any]) -> None:
        if least > greatest:
            raise AssertionError("quant_min must be less than or equal to quant_max")
        dtype = keywords.get("dtype", torch.quint8)
        dtype = getattr(getattr(observer, "p", None), "keywords", {}).get("dtype", dtype)
        if torch.iinfo(dtype).min > least:
            raise AssertionError("quant_min out of bound")
        if greatest > torch.iinfo(dtype).max:
            raise AssertionError("quant_max out of bound")

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The observer's scale and zero point."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 - torch's name
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            for buffer, value in zip(
                (self.scale, self.zero_point), self.calculate_qparams(), strict=True
            ):
                if self.scale.shape != value.shape or buffer.shape != value.shape:
                    buffer.resize_(value.shape)
                buffer.copy_(value)
        if self.fake_quant_enabled[0] != 1:
            return X
        low, high = self.activation_post_process.quant_min, self.activation_post_process.quant_max
        if self.is_per_channel:
            return torch.fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, low, high
            )
        return torch.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, low, high)

    def extra_repr(self) -> str:
        source = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, "
            f"quant_min={source.quant_min}, quant_max={source.quant_max}, "
            f"dtype={self.dtype}, qscheme={self.qscheme}, ch_axis={self.ch_axis}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any],
        strict: bool, missing_keys: list[str], *rest: Any,
    ) -> None:  # fmt: skip
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
            elif strict:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, *rest
        )


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds by a scale that is given."""

    def __init__(self, observer: Any) -> None:
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(f"{type(self).__name__}'s observer must be a FixedQParamsObserver")
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point
        if not is_per_tensor(self.qscheme):
            raise AssertionError(
                "Only per tensor quantization is supported FixedQParamsFakeQuantize module, got"
                f" qscheme:{self.qscheme}"
            )

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """What was given."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        source = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, "
            f"dtype={self.dtype}, quant_min={source.quant_min}, "
            f"quant_max={source.quant_max}, qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """Observes a moving average and rounds, in one function."""

    def __init__(
        self, observer: Any = MovingAverageMinMaxObserver, quant_min: int = 0,
        quant_max: int = 255, **observer_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(
            self.activation_post_process,
            MovingAverageMinMaxObserver | MovingAveragePerChannelMinMaxObserver,
        ):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver"
            )
        self.register_buffer("fake_quant_enabled", torch.tensor([1], dtype=torch.long))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=torch.long))
        self.is_symmetric_quant = is_symmetric(self.activation_post_process.qscheme)

    def extra_repr(self) -> str:
        source = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, "
            f"quant_min={source.quant_min}, quant_max={source.quant_max}, "
            f"qscheme={self.qscheme}, reduce_range={source.reduce_range}"
        )

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 - torch's name
        source = self.activation_post_process
        return torch.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, source.min_val, source.max_val,
            self.scale, self.zero_point, source.averaging_constant, source.quant_min,
            source.quant_max, self.ch_axis, self.is_per_channel, self.is_symmetric_quant,
        )  # fmt: skip


def _for_each(name: str) -> Callable[[Module], None]:
    """A function for `model.apply` that calls a method of each module that rounds."""

    def function(mod: Module) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of each module that rounds; for `model.apply`."
    return function


disable_fake_quant, enable_fake_quant = (
    _for_each("disable_fake_quant"),
    _for_each("enable_fake_quant"),
)
disable_observer, enable_observer = _for_each("disable_observer"), _for_each("enable_observer")

_AVERAGE = {"observer": MovingAverageMinMaxObserver}
_CHANNELS = {"observer": MovingAveragePerChannelMinMaxObserver}
_BYTE = {"quant_min": 0, "quant_max": 255, "dtype": torch.quint8}
_WEIGHT = {"quant_min": -128, "quant_max": 127, "dtype": torch.qint8}
_EVEN = {"quant_min": -127, "quant_max": 127, "dtype": torch.qint8}
_SYMMETRIC = {"qscheme": torch.per_tensor_symmetric}
_BY_CHANNEL = {"qscheme": torch.per_channel_symmetric}
_FLOATS = {"qscheme": torch.per_channel_affine_float_qparams}

default_fake_quant = FakeQuantize.with_args(
    **_AVERAGE, **_BYTE, qscheme=torch.per_tensor_affine, reduce_range=True
)
default_weight_fake_quant = FakeQuantize.with_args(
    **_AVERAGE, **_WEIGHT, **_SYMMETRIC, reduce_range=False
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    **_AVERAGE, quant_min=0, quant_max=255, is_dynamic=True, dtype=torch.quint8,
    averaging_constant=1,
)  # fmt: skip
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    **_CHANNELS, **_WEIGHT, **_BY_CHANNEL, reduce_range=False, ch_axis=0
)
default_embedding_fake_quant = FakeQuantize.with_args(
    **_CHANNELS, **_FLOATS, dtype=torch.quint8, quant_min=0, quant_max=255, ch_axis=0,
    averaging_constant=1,
)  # fmt: skip
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    **_CHANNELS, **_FLOATS, ch_axis=0, dtype=torch.quint4x2, averaging_constant=1
)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, **_BYTE, qscheme=torch.per_tensor_affine, reduce_range=True
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_AVERAGE, **_BYTE)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    **_AVERAGE, **_WEIGHT, **_SYMMETRIC
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    **_CHANNELS, **_WEIGHT, **_BY_CHANNEL
)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    **_AVERAGE, **_EVEN, **_SYMMETRIC, eps=2**-12
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    **_CHANNELS, **_EVEN, **_BY_CHANNEL, eps=2**-12
)
