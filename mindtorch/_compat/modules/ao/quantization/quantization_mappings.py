"""torch.ao.quantization.quantization_mappings: which module becomes which."""

from __future__ import annotations

from typing import Any

from mindtorch import nn
from mindtorch._compat.refusals import refusals, refused
from mindtorch.nn.utils.parametrize import type_before_parametrizations

from ..nn import intrinsic as nni, qat as nnqat, quantized as nnq
from ..nn.intrinsic import qat as nniqat, quantized as nniq
from ..nn.quantized import dynamic as nnqd
from .fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from .stubs import DeQuantStub, QuantStub

__all__ = [
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS", "DEFAULT_MODULE_TO_ACT_POST_PROCESS",
    "DEFAULT_QAT_MODULE_MAPPINGS", "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
    "get_default_dynamic_quant_module_mappings", "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list", "get_default_static_quant_module_mappings",
    "get_dynamic_quant_module_class", "get_static_quant_module_class",
]  # fmt: skip

_Plain = nn.modules.linear.NonDynamicallyQuantizableLinear
_Mapping = dict[Any, Any]

DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: _Mapping = {
    QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize, nn.Dropout: nnq.Dropout,
    _Plain: nnq.Linear, nn.Linear: nnq.Linear, nnq.FloatFunctional: nnq.QFunctional,
    nni.LinearReLU: nniq.LinearReLU, nniqat.LinearReLU: nniq.LinearReLU,
    nnqat.Linear: nnq.Linear, nnqat.Conv2d: nnq.Conv2d, nnqat.Conv3d: nnq.Conv3d,
}  # fmt: skip
for _n in "123":
    _conv, _both = getattr(nnq, f"Conv{_n}d"), getattr(nniq, f"ConvReLU{_n}d")
    DEFAULT_STATIC_QUANT_MODULE_MAPPINGS |= {
        getattr(nn, f"Conv{_n}d"): _conv, getattr(nni, f"ConvReLU{_n}d"): _both,
        getattr(nniqat, f"ConvBn{_n}d"): _conv, getattr(nniqat, f"ConvBnReLU{_n}d"): _both,
        getattr(nniqat, f"ConvReLU{_n}d"): _both,
    }  # fmt: skip
DEFAULT_STATIC_QUANT_MODULE_MAPPINGS |= {
    getattr(nn, name): getattr(nnq, name)
    for name in ("BatchNorm2d", "BatchNorm3d", "ConvTranspose1d", "ConvTranspose2d",
                 "ConvTranspose3d", "ELU", "Embedding", "EmbeddingBag", "GroupNorm", "Hardswish",
                 "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LeakyReLU",
                 "ReLU6", "PReLU")
}  # fmt: skip
_WHY = "mindtorch has fused convolutions of training, not this"
DEFAULT_QAT_MODULE_MAPPINGS: _Mapping = {
    nn.Conv2d: nnqat.Conv2d, nn.Conv3d: nnqat.Conv3d, nn.Linear: nnqat.Linear,
    _Plain: nnqat.Linear, nni.LinearReLU: nniqat.LinearReLU,
    nni.LinearBn1d: refused("torch.ao.nn.intrinsic.qat.LinearBn1d", _WHY),
    **{getattr(nni, name): getattr(nniqat, name)
       for name in ("ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d",
                    "ConvBnReLU3d", "ConvReLU2d", "ConvReLU3d")},
}  # fmt: skip
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: _Mapping = {
    nn.GRUCell: nnqd.GRUCell, nn.Linear: nnqd.Linear, _Plain: nnqd.Linear, nn.LSTM: nnqd.LSTM,
    nn.GRU: nnqd.GRU, nn.LSTMCell: nnqd.LSTMCell, nn.RNNCell: nnqd.RNNCell,
    nn.EmbeddingBag: nnq.EmbeddingBag, nn.Embedding: nnq.Embedding,
}  # fmt: skip
DEFAULT_MODULE_TO_ACT_POST_PROCESS: _Mapping = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}


def get_default_static_quant_module_mappings() -> _Mapping:
    """What `convert` makes of modules."""
    return dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_qat_module_mappings() -> _Mapping:
    """What `prepare_qat` makes of modules."""
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_default_dynamic_quant_module_mappings() -> _Mapping:
    """What `quantize_dynamic` makes of modules."""
    return DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS


def get_default_qconfig_propagation_list() -> set[Any]:
    """The modules that are observed."""
    return {
        *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, *DEFAULT_QAT_MODULE_MAPPINGS,
        *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, nn.Sequential,
    }  # fmt: skip


def _class_of(mapping: _Mapping, cls: object, more: _Mapping | None) -> Any:
    result = {**mapping, **(more or {})}.get(cls)
    if result is None:
        raise AssertionError(
            f"Floating point module class {cls} does not have a corresponding quantized module"
            " class"
        )
    return result


def get_static_quant_module_class(
    float_module_class: object, additional_static_quant_mapping: _Mapping | None = None,
    is_reference: bool = False,
) -> Any:  # fmt: skip
    """What `convert` makes of a class."""
    return _class_of(
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, float_module_class, additional_static_quant_mapping
    )


def get_dynamic_quant_module_class(
    float_module_class: object, additional_dynamic_quant_mapping: _Mapping | None = None
) -> Any:
    """What `quantize_dynamic` makes of a class."""
    return _class_of(
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, float_module_class, additional_dynamic_quant_mapping
    )


def special_observer(module: nn.Module) -> Any:
    """The observer with a fixed scale of a module that trains and has a fixed range, or None."""
    if not module.training or type(module) not in DEFAULT_MODULE_TO_ACT_POST_PROCESS:
        return None
    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(type_before_parametrizations(module))


__getattr__ = refusals("torch.ao.quantization.quantization_mappings",
    "mindtorch has the mappings of eager mode, not this", [
    "DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS",
    "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS",
    "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS", "get_default_compare_output_module_list",
    "get_default_dynamic_sparse_quant_module_mappings",
    "get_default_float_to_quantized_operator_mappings",
    "get_default_static_quant_reference_module_mappings",
    "get_default_static_sparse_quant_module_mappings", "get_embedding_qat_module_mappings",
    "get_embedding_static_quant_module_mappings", "get_quantized_operator", "no_observer_set",
])  # fmt: skip
