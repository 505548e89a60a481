"""torch.ao.quantization.qconfig: how activations and weights of a module are quantised."""

from __future__ import annotations

import warnings
from collections import namedtuple
from typing import Any

import mindtorch as torch
from mindtorch import nn

from .fake_quantize import (
    FakeQuantize,
    FakeQuantizeBase,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from .observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    _PartialWrapper,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)

__all__ = [
    "QConfig", "QConfigDynamic", "default_activation_only_qconfig", "default_debug_qconfig",
    "default_dynamic_qat_qconfig", "default_dynamic_qconfig", "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit", "default_per_channel_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig",
    "default_per_channel_symmetric_qnnpack_qconfig", "default_qat_qconfig",
    "default_qat_qconfig_v2", "default_qconfig", "default_quint8_weight_qconfig",
    "default_reuse_input_qconfig", "default_symmetric_qnnpack_qat_qconfig",
    "default_symmetric_qnnpack_qconfig", "default_weight_only_qconfig",
    "float16_dynamic_qconfig", "float16_static_qconfig", "float_qparams_weight_only_qconfig",
    "float_qparams_weight_only_qconfig_4bit", "get_default_qat_qconfig", "get_default_qconfig",
    "per_channel_dynamic_qconfig", "qconfig_equals",
]  # fmt: skip


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """Classes, or factories of `with_args`, that observe activations and weights."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. "
                "Use MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """The older name for weights that are quantised alone."""

    __slots__ = ()

    def __new__(
        cls, activation: Any = torch.nn.Identity, weight: Any = torch.nn.Identity
    ) -> QConfigDynamic:
        warnings.warn(
            "`QConfigDynamic` is going to be deprecated in PyTorch 1.12, please use `QConfig`"
            " instead",
            FutureWarning,
            stacklevel=2,
        )
        if isinstance(weight, nn.Module):
            raise ValueError(
                "QConfigDynamic received observer instance, please pass observer class instead. "
                "Use MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


_HALF = PlaceholderObserver.with_args(dtype=torch.float16)
_QNNPACK = HistogramObserver.with_args(dtype=torch.qint8, reduce_range=False, eps=2**-12)
_QNNPACK_QAT = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8,
    reduce_range=False, eps=2**-12,
)  # fmt: skip

default_qconfig = QConfig(default_observer, default_weight_observer)
default_debug_qconfig = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=torch.float16, is_dynamic=True), _HALF
)
float16_static_qconfig = QConfig(_HALF, _HALF)
per_channel_dynamic_qconfig = QConfig(
    default_dynamic_quant_observer, default_per_channel_weight_observer
)
float_qparams_weight_only_qconfig = QConfig(
    default_placeholder_observer, default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    default_placeholder_observer, default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_weight_only_qconfig = QConfig(torch.nn.Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, torch.nn.Identity)
default_qat_qconfig_v2 = QConfig(default_fused_act_fake_quant, default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(default_reuse_input_observer, NoopObserver)
default_symmetric_qnnpack_qconfig = QConfig(_QNNPACK, weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _QNNPACK, per_channel_weight_observer_range_neg_127_to_127
)
default_embedding_qat_qconfig = QConfig(
    NoopObserver.with_args(dtype=torch.float32), default_embedding_fake_quant
)
default_embedding_qat_qconfig_4bit = QConfig(
    NoopObserver.with_args(dtype=torch.float32), default_embedding_fake_quant_4bit
)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)
default_symmetric_qnnpack_qat_qconfig = QConfig(
    _QNNPACK_QAT, fused_wt_fake_quant_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _QNNPACK_QAT, fused_per_channel_wt_fake_quant_range_neg_127_to_127
)
QConfigAny = QConfig | None

_BACKENDS = ["fbgemm", "x86", "qnnpack", "onednn"]


def _refuse_backend(backend: object) -> None:
    if backend not in _BACKENDS:
        raise AssertionError(
            f"backend: {backend} not supported. backend must be one of {_BACKENDS}"
        )


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """For quantising after training, by the library that is to run it."""
    _refuse_backend(backend)
    if version != 0:
        raise AssertionError(
            f"Version number: {version} in get_default_qconfig is not supported. Version number"
            " must be 0"
        )
    if backend == "onednn":
        warnings.warn(
            "Default qconfig of oneDNN backend with reduce_range of false may have accuracy"
            " issues on CPU without Vector Neural Network Instruction support.",
            stacklevel=2,
        )
    activation = HistogramObserver.with_args(reduce_range=backend in ("fbgemm", "x86"))
    one = backend == "qnnpack"
    weight = default_weight_observer if one else default_per_channel_weight_observer
    return QConfig(activation, weight)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """For training with rounding, by the library that is to run it."""
    _refuse_backend(backend)
    if version not in (0, 1):
        raise AssertionError(
            f"Version number: {version}in get_default_qat_qconfig is not supported. Version"
            " number must be 0 or 1"
        )
    narrow = {} if backend == "onednn" else {"reduce_range": backend != "qnnpack"}
    cls, one, channels = (
        (FakeQuantize, default_weight_fake_quant, default_per_channel_weight_fake_quant),
        (FusedMovingAvgObsFakeQuantize, default_fused_wt_fake_quant,
         default_fused_per_channel_wt_fake_quant),
    )[version]  # fmt: skip
    activation = cls.with_args(
        observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **narrow
    )
    return QConfig(activation, one if backend == "qnnpack" else channels)


def _assert_valid_qconfig(qconfig: Any, mod: nn.Module) -> None:
    """AssertionError for channels of a transposed convolution."""
    transposed = nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d
    if qconfig is None or qconfig.weight is None or not isinstance(mod, transposed):
        return
    if isinstance(
        qconfig.weight(), PerChannelMinMaxObserver | MovingAveragePerChannelMinMaxObserver
    ):
        raise AssertionError(
            "Per channel weight observer is not supported yet for ConvTranspose{n}d."
        )


def _add_module_to_qconfig_obs_ctr(qconfig: Any, module: nn.Module | None) -> Any:
    """A QConfig whose observers are made on the module's device."""
    if module is None or qconfig is None or qconfig._fields != ("activation", "weight"):
        return qconfig

    def on_device() -> dict[str, Any] | None:
        tensors = (*module.parameters(), *module.buffers())
        devices = {t.device for t in tensors}
        return {"device": next(iter(devices))} if devices else None

    def placed(factory: Any) -> Any:
        try:
            factory.with_args(factory_kwargs=None)()
            return factory.with_callable_args(factory_kwargs=on_device)
        except (AttributeError, TypeError):
            return factory  # no observer, or one that takes no device

    return QConfig(placed(qconfig.activation), placed(qconfig.weight))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, _PartialWrapper) and isinstance(b, _PartialWrapper):
        left, right = dict(a.p.keywords), dict(b.p.keywords)
        same = a.p.func == b.p.func and a.p.args == b.p.args
        if "observer" in left and "observer" in right:
            same = same and _same(left.pop("observer"), right.pop("observer"))
        return same and left == right
    return a == b


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Whether two configurations make the same observers."""
    if q1 is None or q2 is None:
        return q1 == q2
    return _same(q1.activation, q2.activation) and _same(q1.weight, q2.weight)


def _activation_is_memoryless(qconfig: QConfig) -> bool:
    """Whether activations are observed anew at each call."""
    source = qconfig.activation()
    if isinstance(source, FakeQuantizeBase) and hasattr(source, "activation_post_process"):
        source = source.activation_post_process
    return getattr(source, "averaging_constant", None) == 1
