"""torch.ao.quantization.qconfig_mapping: which parts of a graph have which QConfig."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

import mindtorch as torch
from mindtorch import nn

from . import observer
from .fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
    default_weight_fake_quant,
)
from .qconfig import QConfig, get_default_qat_qconfig, get_default_qconfig

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]
_KINDS = {
    "global_qconfig": "", "object_type_qconfigs": "object_type",
    "module_name_regex_qconfigs": "module_name_regex", "module_name_qconfigs": "module_name",
    "module_name_object_type_order_qconfigs": "module_name_object_type_order",
}  # fmt: skip


class QConfigMapping:
    """QConfigs by what they are for; names count more than patterns, those more than types."""

    def __init__(self) -> None:
        self.global_qconfig: Any = None
        self.object_type_qconfigs: OrderedDict[Any, Any] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[Any, Any] = OrderedDict()

    def set_global(self, global_qconfig: object) -> QConfigMapping:
        """For all that has none of its own."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: object, qconfig: object) -> QConfigMapping:
        """For modules of a class, or calls of a function or of a method by name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: object) -> QConfigMapping:
        """For modules whose whole names a pattern fits."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: object) -> QConfigMapping:
        """For a module by its name, and those within."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: object, index: int, qconfig: object
    ) -> QConfigMapping:
        """For the `index`th call of a type in a module."""
        key = module_name, object_type, index
        self.module_name_object_type_order_qconfigs[key] = qconfig
        return self

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary of torch's older form."""
        return {
            key: getattr(self, name) if not key else [
                (*(k if isinstance(k, tuple) else (k,)), v) for k, v in getattr(self, name).items()
            ]
            for name, key in _KINDS.items()
        }  # fmt: skip

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """Of a dictionary of torch's older form."""
        mapping = cls()
        mapping.global_qconfig = qconfig_dict.get("")
        for name, key in _KINDS.items():
            for *what, qconfig in qconfig_dict.get(key, ()) if key else ():
                getattr(mapping, name)[what[0] if len(what) == 1 else tuple(what)] = qconfig
        return mapping

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for name in _KINDS:
            lines.append(f" {name}")
            value = getattr(self, name)
            if isinstance(value, OrderedDict) and value:
                lines += [f"  {key}: {qconfig}" for key, qconfig in value.items()]
            else:
                lines.append(f"  {value}")
        return "\n".join([*lines, ")"])

    def of(self, name: str, kinds: tuple[Any, ...]) -> Any:
        """The QConfig for a module of that name (that around a call), or for types of calls."""
        parts = name.split(".")
        for count in range(len(parts), 0, -1):
            start = ".".join(parts[:count])
            if start and start in self.module_name_qconfigs:
                return self.module_name_qconfigs[start]
        for pattern, qconfig in self.module_name_regex_qconfigs.items():
            if re.fullmatch(pattern, name):
                return qconfig
        for kind in kinds:
            if kind in self.object_type_qconfigs:
                return self.object_type_qconfigs[kind]
        return self.global_qconfig


def _mapping(qconfig: Any, weight: object, unit: object, sign: object) -> QConfigMapping:
    """A QConfig for all but for what has a range of its own, or no quantised weight here."""
    mapping = QConfigMapping().set_global(qconfig)
    mapping.set_object_type(
        "reshape", QConfig(observer.default_reuse_input_observer, observer.NoopObserver)
    )
    transposed = QConfig(qconfig.activation, weight)
    functions = [getattr(torch, f"conv_transpose{n}d") for n in (1, 2, 3)]
    for kind in (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, *functions):
        mapping.set_object_type(kind, transposed)
    norms = QConfig(qconfig.activation, observer.default_placeholder_observer)
    for kind in (nn.functional.layer_norm, nn.LayerNorm):
        mapping.set_object_type(kind, norms)
    mapping.set_object_type(nn.PReLU, QConfig(observer.HistogramObserver, observer.MinMaxObserver))
    for kind in (nn.Hardsigmoid, nn.functional.hardsigmoid, "hardsigmoid", "hardsigmoid_",
                 nn.Sigmoid, torch.sigmoid, "sigmoid", "sigmoid_", nn.Softmax):  # fmt: skip
        mapping.set_object_type(kind, QConfig(unit, weight))
    for kind in (nn.Tanh, torch.tanh, "tanh", "tanh_"):
        mapping.set_object_type(kind, QConfig(sign, weight))
    return mapping


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """For a model that has learned."""
    return _mapping(
        get_default_qconfig(backend, version), observer.default_weight_observer,
        observer.default_fixed_qparams_range_0to1_observer,
        observer.default_fixed_qparams_range_neg1to1_observer,
    )  # fmt: skip


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """For a model that is to learn."""
    return _mapping(
        get_default_qat_qconfig(backend, version), default_weight_fake_quant,
        default_fixed_qparams_range_0to1_fake_quant,
        default_fixed_qparams_range_neg1to1_fake_quant,
    )  # fmt: skip
