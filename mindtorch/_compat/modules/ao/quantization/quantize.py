"""torch.ao.quantization.quantize: models are observed, and become models of integers."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import mindtorch as torch
from mindtorch import Tensor, nn
from mindtorch.nn.utils.parametrize import type_before_parametrizations

from ..nn.intrinsic import _FusedModule
from ..nn.quantized import FloatFunctional, QFunctional
from .observer import _is_activation_post_process
from .qconfig import (
    _activation_is_memoryless,
    _add_module_to_qconfig_obs_ctr,
    _assert_valid_qconfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from .quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    special_observer,
)
from .stubs import DeQuantStub, QuantWrapper
from .utils import deprecated, has_no_children_ignoring_parametrizations

__all__ = [
    "add_quant_dequant", "convert", "get_default_custom_config_dict", "prepare", "prepare_qat",
    "propagate_qconfig_", "quantize", "quantize_dynamic", "quantize_qat", "swap_module",
]  # fmt: skip


def get_default_custom_config_dict() -> dict[str, dict[Any, Any]]:
    """Modules that are swapped for others of their own: none here."""
    return {
        "float_to_observed_custom_module_class": {},
        "observed_to_quantized_custom_module_class": {},
    }


def propagate_qconfig_(
    module: nn.Module, qconfig_dict: dict[Any, Any] | None = None,
    prepare_custom_config_dict: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Give each module the qconfig of its name, its type or its parent, as `module.qconfig`."""
    _propagate(module, qconfig_dict or {}, None, "", prepare_custom_config_dict or {})


def _propagate(
    module: nn.Module, qconfigs: dict[Any, Any], above: Any, prefix: str, custom: dict[str, Any]
) -> None:
    qconfig = qconfigs.get(type_before_parametrizations(module), above)
    qconfig = getattr(module, "qconfig", qconfigs.get(prefix, qconfig))
    _assert_valid_qconfig(qconfig, module)
    module.qconfig = qconfig = _add_module_to_qconfig_obs_ctr(qconfig, module)
    for name, child in module.named_children():
        if name in custom.get("non_traceable_module_name", ()):
            continue
        if type(child) in custom.get("non_traceable_module_class", ()):
            continue
        _propagate(child, qconfigs, qconfig, f"{prefix}.{name}" if prefix else name, {})


def _observer_forward_hook(self: nn.Module, input: tuple[Tensor, ...], output: Tensor) -> Tensor:
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: nn.Module, input: tuple[Tensor, ...]) -> Tensor:
    return self.activation_post_process(input[0])


def _devices(module: nn.Module) -> set[torch.device]:
    tensors = (*module.parameters(), *module.buffers())
    return {t.device for t in tensors if t.device.type != "meta"}


def _only_device(module: nn.Module, name: str) -> torch.device | None:
    devices = _devices(module)
    if len(devices) > 1:
        raise AssertionError(
            f"{name} only works with cpu or single-device CUDA modules, but got devices {devices}"
        )
    return next(iter(devices), None)


def _observed(qconfig: Any, device: torch.device | None, special: Any = None) -> nn.Module:
    observer: nn.Module = (special or qconfig.activation)()
    return observer.to(device) if device is not None else observer


def _wants(module: nn.Module) -> bool:
    return getattr(module, "qconfig", None) is not None


def _insert(module: nn.Module, device: torch.device | None, special: Any = None) -> None:
    """Let a module's output, or its input where observers remember nothing, be observed."""
    if not _wants(module) or isinstance(module, DeQuantStub):
        return
    module.add_module("activation_post_process", _observed(module.qconfig, device, special))
    if _activation_is_memoryless(module.qconfig):
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _add_observer_(
    module: nn.Module, allowed: set[Any], non_leaf: set[Any] | None, device: torch.device | None
) -> None:
    device = _only_device(module, "_add_observer_") if device is None else device
    for child in module.children():
        kind = type_before_parametrizations(child)
        if kind is nn.Dropout:
            continue
        if issubclass(kind, FloatFunctional | QFunctional):
            if _wants(child):
                child.activation_post_process = _observed(child.qconfig, device)
        elif isinstance(child, _FusedModule) or (non_leaf is not None and kind in non_leaf):
            _insert(child, device)
        elif special := special_observer(child):
            _insert(child, device, special)
        else:
            _add_observer_(child, allowed, non_leaf, device)
    listed = type_before_parametrizations(module) in allowed
    if isinstance(module, nn.Sequential) or not listed:
        return
    if has_no_children_ignoring_parametrizations(module) or hasattr(module, "weight_fake_quant"):
        _insert(module, device)


def add_quant_dequant(module: nn.Module) -> nn.Module:
    """Wrap each leaf that has a qconfig into QuantWrapper."""
    if has_no_children_ignoring_parametrizations(module) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


@deprecated
def prepare(
    model: nn.Module, inplace: bool = False, allow_list: set[Any] | None = None,
    observer_non_leaf_module_list: set[Any] | None = None,
    prepare_custom_config_dict: dict[str, Any] | None = None,
) -> nn.Module:  # fmt: skip
    """Let what passes through a model be observed, by the qconfig of each module."""
    model = model if inplace else copy.deepcopy(model)
    allowed = get_default_qconfig_propagation_list() if allow_list is None else allow_list
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration"
            " through `qconfig_dict` or by assigning the `.qconfig` attribute directly on"
            " submodules",
            stacklevel=2,
        )
    _add_observer_(model, allowed, observer_non_leaf_module_list, None)
    return model


def _remove_qconfig(module: nn.Module) -> None:
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    if _is_activation_post_process(getattr(module, "activation_post_process", None)):
        del module.activation_post_process
    hooks = ((module._forward_pre_hooks, _observer_forward_pre_hook),
             (module._forward_hooks, _observer_forward_hook))  # fmt: skip
    for table, hook in hooks:
        for key in [k for k, result in table.items() if result is hook]:
            table.pop(key)


@deprecated
def quantize(
    model: nn.Module, run_fn: Callable[..., object], run_args: Sequence[object],
    mapping: dict[Any, Any] | None = None, inplace: bool = False,
) -> nn.Module:  # fmt: skip
    """Prepare a model, let `run_fn(model, *run_args)` show it data, and convert it."""
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, mapping or get_default_static_quant_module_mappings(), inplace=True)
    return model


_DYNAMIC = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)
# dtype → the modules that are quantised, and how.
_SPECS: dict[torch.dtype, tuple[tuple[Any, ...], Any]] = {
    torch.qint8: (_DYNAMIC, default_dynamic_qconfig),
    torch.float16: (_DYNAMIC, float16_dynamic_qconfig),
    torch.quint8: ((nn.EmbeddingBag, nn.Embedding), float_qparams_weight_only_qconfig),
    torch.quint4x2: ((nn.EmbeddingBag,), float_qparams_weight_only_qconfig_4bit),
}


@deprecated
def quantize_dynamic(
    model: nn.Module, qconfig_spec: Any = None, dtype: torch.dtype = torch.qint8,
    mapping: dict[Any, Any] | None = None, inplace: bool = False,
) -> nn.Module:  # fmt: skip
    """Weights of integers for modules of some types or names; activations stay float32."""
    if qconfig_spec is None and dtype not in _SPECS:
        raise ValueError(
            f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig"
            " please"
        )
    if isinstance(qconfig_spec, set) and dtype not in _SPECS:
        raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
    if qconfig_spec is None or isinstance(qconfig_spec, set):
        kinds, qconfig = _SPECS[dtype]
        qconfig_spec = dict.fromkeys(qconfig_spec if qconfig_spec is not None else kinds, qconfig)
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    convert(model, mapping or get_default_dynamic_quant_module_mappings(), inplace=True)
    return model


@deprecated
def prepare_qat(
    model: nn.Module, mapping: dict[Any, Any] | None = None, inplace: bool = False
) -> nn.Module:
    """Let a model train with weights and activations rounded as integers would be."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping=mapping, inplace=True, remove_qconfig=False)
    prepare(model, observer_non_leaf_module_list=set(mapping.values()), inplace=True)
    return model


@deprecated
def quantize_qat(
    model: nn.Module,
    run_fn: Callable[..., object],
    run_args: Sequence[object],
    inplace: bool = False,
) -> nn.Module:
    """Prepare a model for training, let `run_fn(model, *run_args)` train it, and convert it."""
    model = model if inplace else copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, inplace=True)
    return model


@deprecated
def convert(
    module: nn.Module, mapping: dict[Any, Any] | None = None, inplace: bool = False,
    remove_qconfig: bool = True, is_reference: bool = False,
    convert_custom_config_dict: dict[str, Any] | None = None,
    use_precomputed_fake_quant: bool = False,
) -> nn.Module:  # fmt: skip
    """Make of each observed module the one that `mapping` has for its type."""
    if is_reference:
        raise NotImplementedError(
            "torch.ao.quantization.convert: mindtorch has no reference modules of quantisation"
        )
    module = module if inplace else copy.deepcopy(module)
    mapping = get_default_static_quant_module_mappings() if mapping is None else mapping
    custom = (convert_custom_config_dict or get_default_custom_config_dict()).get(
        "observed_to_quantized_custom_module_class", {}
    )
    _convert(module, mapping, custom, use_precomputed_fake_quant)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _convert(
    module: nn.Module, mapping: dict[Any, Any], custom: dict[Any, Any], ready: bool
) -> None:
    swapped = {}
    for name, child in module.named_children():
        if not isinstance(child, _FusedModule) and type(child) not in custom:
            _convert(child, mapping, custom, ready)
        swapped[name] = swap_module(child, mapping, custom, ready)
    module._modules.update(swapped)


def swap_module(
    mod: nn.Module, mapping: dict[Any, Any], custom_module_class_mapping: dict[Any, Any],
    use_precomputed_fake_quant: bool = False,
) -> nn.Module:  # fmt: skip
    """The module that `mapping` has for one with a qconfig, or the module itself."""
    kind = type_before_parametrizations(mod)
    if not _wants(mod):
        return mod
    if kind in custom_module_class_mapping:
        new = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping:
        new = mapping[kind].from_float(mod)
    else:
        return mod
    for pre_hook in mod._forward_pre_hooks.values():
        new.register_forward_pre_hook(pre_hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            new.register_forward_hook(hook)
    device = _only_device(mod, "swap_module")
    return new.to(device) if device else new
