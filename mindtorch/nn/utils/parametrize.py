"""Owns parametrizations: a tensor of a module computed from
stored originals whenever it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

import mindtorch

from ..._tensor.dtype import dtype as Dtype
from ..._tensor.geometry import Size
from ..._tensor.tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations", "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]  # fmt: skip

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
        shape, dtype = original.shape, original.dtype
        new: Any = original
        # A right_inverse that is not implemented leaves the tensor as it is, as in torch.
        with mindtorch.no_grad(), suppress(NotImplementedError):
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    new = module.right_inverse(new)
        self.is_tensor: bool = isinstance(new, Tensor)
        if self.is_tensor:
            self._hold_one(original, new)
        elif isinstance(new, Sequence):
            self.ntensors: int = len(new)
            self._hold_several(original, new)
        else:
            raise ValueError(f"{_NO_TENSORS} Got {type(new).__name__}")
        if not unsafe:
            names = ("unparametrized", "parametrized")
            _refuse_change(shape, dtype, self(), "`unsafe` flag", names)

    def _hold_one(self, original: Tensor, new: Tensor) -> None:
        """The tensor itself, with the new memory: an optimizer's parameter stays the same."""
        for name in ("dtype", "device"):
            before, after = getattr(original, name), getattr(new, name)
            if before != after:
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {name}.\n"
                    f"original.{name}: {before}\nright_inverse(original).{name}: {after}"
                )
        with mindtorch.no_grad():
            original.set_(new)
        _register(self, "original", original)

    def _hold_several(self, original: Tensor, values: Sequence[object]) -> None:
        for i, value in enumerate(values):
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"{_NO_TENSORS} Got element {i} of the sequence with type"
                    f" {type(value).__name__}."
                )
            if isinstance(original, Parameter):
                value = Parameter(value, original.requires_grad)
            value.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", value)

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
            self._set(value)

    def _set(self, value: object) -> None:
        if self.is_tensor:
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"`right_inverse` should return a tensor. Got {type(value).__name__}"
                )
            _set_of_dtype(self.original, value, "The tensor", "original")
            return
        if not isinstance(value, Sequence):
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}."
            )
        if len(value) != self.ntensors:
            raise ValueError(
                "'right_inverse' must return a sequence of tensors of length"
                f" {self.ntensors}. Got a sequence of length {len(value)}."
            )
        for i, (original, new) in enumerate(zip(self._originals(), value, strict=True)):
            if not isinstance(new, Tensor):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors or reference-type opaques."
                    f" Got element {i} of type {type(new).__name__}."
                )
            _set_of_dtype(original, new, f"Tensor {i}", f"original{i}")

    def forward(self) -> Tensor:
        """Gives the parametrized tensor."""
        first, *rest = list(self)
        result = first(*self._originals())
        for module in rest:
            result = module(result)
        return result


_NO_TENSORS = "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...)."


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set_of_dtype(original: Tensor, new: Tensor, which: str, name: str) -> None:
    if new.dtype != original.dtype:
        raise ValueError(
            f"{which} returned by `right_inverse` has dtype {new.dtype} while `{name}` has dtype"
            f" {original.dtype}"
        )
    original.set_(new)


def _refuse_change(
    shape: Size, dtype: Dtype, result: object, flag: str, names: Sequence[str]
) -> None:
    """ValueError where a parametrization gives no tensor, or another dtype or shape."""
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for what, before in (("dtype", dtype), ("shape", shape)):
        after = getattr(result, what)
        if before != after:
            between = "." if "." in names[0] else " "
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless"
                f" {flag} is enabled.\n"
                f"{names[0]}{between}{what}: {before}\n{names[1]}{between}{what}: {after}"
            )


def _inject_class(module: Module) -> None:
    """Gives this one module a class of its own, which can hold properties."""
    base = type(module)

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        new = self.__class__.__new__(self.__class__)
        memo[id(self)] = new
        new.__dict__.update(deepcopy(self.__dict__, memo))
        return new

    body: dict[str, Any] = {"__reduce_ex__": _refuse_pickle}
    body["__module__"] = ParametrizationList.__module__
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
        if not unsafe:
            _check_further(module, tensor_name, parametrization)
        listed.append(parametrization)
        listed.unsafe |= unsafe
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


def _check_further(module: Module, name: str, parametrization: Module) -> None:
    """Refuse one more parametrization that does not map the tensor's space to itself."""
    before = getattr(module, name)
    after = parametrization(before)
    names = (f"module.{name}", f"parametrization(module.{name})")
    _refuse_change(before.shape, before.dtype, after, "the `unsafe` flag", names)
    if not hasattr(parametrization, "right_inverse"):
        return
    with suppress(NotImplementedError):
        back = parametrization.right_inverse(after)
        if not isinstance(back, Tensor):
            raise ValueError(
                f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
            )
        for what in ("dtype", "shape"):
            if getattr(back, what) != getattr(before, what):
                raise ValueError(
                    "The tensor returned by parametrization.right_inverse must have the same"
                    f" {what} as module.{name}, unless the `unsafe` flag is enabled.\n"
                    f"module.{name}.{what}: {getattr(before, what)}\n"
                    f"returned {what}: {getattr(back, what)}"
                )


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
    if listed.is_tensor:
        value = listed.original  # the same tensor, so that an optimizer's parameter stays it
        if leave_parametrized:
            with mindtorch.no_grad():
                value.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        value = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, value)
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
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in from_module.parametrizations[name]:
            register_parametrization(to_module, name, parametrization)
        source = from_module.parametrizations[name]
        every = source._parameters | source._buffers
        for original in [n for n in every if n.startswith("original")]:
            setattr(to_module.parametrizations[name], original, getattr(source, original))
    return to_module
