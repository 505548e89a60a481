"""torch.ao.quantization.fuse_modules: neighbours of a model become one module."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from mindtorch import nn
from mindtorch.nn.utils.parametrize import type_before_parametrizations

from .fuser_method_mappings import fuse_conv_bn, fuse_conv_bn_relu, get_fuser_method

__all__ = ["fuse_conv_bn", "fuse_conv_bn_relu", "fuse_known_modules", "fuse_modules",
           "fuse_modules_qat"]  # fmt: skip


def fuse_known_modules(
    mod_list: Sequence[nn.Module], is_qat: bool,
    additional_fuser_method_mapping: dict[Any, Any] | None = None,
) -> list[nn.Module]:  # fmt: skip
    """One module for several, then an Identity for each of the others."""
    types = tuple(type_before_parametrizations(m) for m in mod_list)
    method = get_fuser_method(types, additional_fuser_method_mapping)
    fused = method(is_qat, *mod_list)
    first, last = mod_list[0], mod_list[-1]
    for pre_hook in first._forward_pre_hooks.values():
        fused.register_forward_pre_hook(pre_hook)
    first._forward_pre_hooks.clear()
    for hook in last._forward_hooks.values():
        fused.register_forward_hook(hook)
    last._forward_hooks.clear()
    return [fused, *(nn.Identity().train(first.training) for _ in mod_list[1:])]


def _fused(
    model: nn.Module, modules_to_fuse: Sequence[Any], is_qat: bool, inplace: bool,
    fuser_func: Callable[..., Sequence[nn.Module]], config: dict[str, Any] | None,
) -> nn.Module:  # fmt: skip
    model = model if inplace else copy.deepcopy(model)
    more = (config or {}).get("additional_fuser_method_mapping", {})
    one = all(isinstance(name, str) for name in modules_to_fuse)
    for names in [modules_to_fuse] if one else modules_to_fuse:
        fused = fuser_func([_walk(model, n.split(".")) for n in names], is_qat, more)
        for name, module in zip(names, fused, strict=True):
            *parents, last = name.split(".")
            setattr(_walk(model, parents), last, module)
    return model


def _walk(model: nn.Module, names: Sequence[str]) -> Any:
    for name in names:
        model = getattr(model, name)
    return model


def fuse_modules(
    model: nn.Module, modules_to_fuse: Sequence[Any], inplace: bool = False,
    fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> nn.Module:  # fmt: skip
    """Conv, batch norm, linear and ReLU by names, as one module each, for evaluation."""
    return _fused(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: nn.Module, modules_to_fuse: Sequence[Any], inplace: bool = False,
    fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> nn.Module:  # fmt: skip
    """The same for training: batch norm stays a part."""
    return _fused(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
