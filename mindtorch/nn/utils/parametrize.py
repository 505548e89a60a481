"""Owns parametrizations: a tensor of a module computed from
stored originals whenever it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

import mindtorch

from ..._tensor.tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_depth = 0
_cache: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Computes each parametrized tensor once while the context is open."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and its `original` (or `original0`, `original1`, …)."""

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        new: Any = original
        # A right_inverse that is not implemented leaves the tensor as it is, as in torch.
        with mindtorch.no_grad(), suppress(NotImplementedError):
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    new = module.right_inverse(new)
        self.is_tensor = isinstance(new, Tensor)
        if self.is_tensor:
            self._keep("original", original, new)
        else:
            self.ntensors = len(new)
            for i, value in enumerate(new):
                self._keep(f"original{i}", original, value)
        if not unsafe:
            through = self()
            if through.dtype != original.dtype or through.shape != original.shape:
                raise ValueError(
                    "Registering a parametrization may not change the dtype or shape of the "
                    "tensor, unless `unsafe` flag is enabled. "
                    f"original {original.dtype} {original.shape}, parametrized {through.dtype} "
                    f"{through.shape}"
                )

    def _keep(self, name: str, original: Tensor, value: Tensor) -> None:
        if isinstance(original, Parameter):
            setattr(self, name, Parameter(value.detach(), original.requires_grad))
        else:
            self.register_buffer(name, value)

    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that the parametrized tensor becomes `value`."""
        with mindtorch.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else list(value)
            for original, new in zip(self._originals(), values, strict=True):
                original.data = new.data

    def forward(self) -> Tensor:
        """Gives the parametrized tensor."""
        first, *rest = list(self)
        result = first(*self._originals())
        for module in rest:
            result = module(result)
        return result


def _inject_class(module: Module) -> None:
    """Gives this one module a class of its own, which can hold properties."""
    base = type(module)

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        new = self.__class__.__new__(self.__class__)
        memo[id(self)] = new
        new.__dict__.update(deepcopy(self.__dict__, memo))
        return new

    body: dict[str, Any] = {"__reduce_ex__": _refuse_pickle}
    if "__deepcopy__" not in base.__dict__:
        body["__deepcopy__"] = copied
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), body)


def _refuse_pickle(self: Any, protocol: Any) -> Any:
    del self, protocol
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _inject_property(module: Module, name: str) -> None:
    def read(self: Any) -> Tensor:
        if not _cache_depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes `module.tensor_name` the parametrization's output; ValueError for an unknown name."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        listed: Any = module.parametrizations[tensor_name]
        if not unsafe and hasattr(parametrization, "right_inverse"):
            with mindtorch.no_grad():
                value = getattr(module, tensor_name)
            listed.append(parametrization)
            listed.right_inverse(value)
        else:
            listed.append(parametrization)
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _inject_class(module)
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = parametrizations
    _inject_property(module, tensor_name)
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Says whether the module (or one tensor of it) is parametrized."""
    listed = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(listed, ModuleDict):
        return False
    return len(listed) > 0 if tensor_name is None else tensor_name in listed


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Takes the parametrizations off; the tensor keeps its
    computed value, or gets the original back."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    listed: Any = module.parametrizations[tensor_name]
    if leave_parametrized:
        with mindtorch.no_grad():
            value = getattr(module, tensor_name)
        was: Any = listed._originals()[0]
        value = Parameter(value, was.requires_grad) if isinstance(was, Parameter) else value
    elif listed.is_tensor:
        value = listed.original
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if isinstance(value, Parameter):
        module.register_parameter(tensor_name, value)
    else:
        module.register_buffer(tensor_name, value)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The module's class without what parametrization put in front."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Any:
    """Registers copies of one module's parametrizations on another."""
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for parametrization in from_module.parametrizations[name]:
            register_parametrization(to_module, name, deepcopy(parametrization))
    return to_module
