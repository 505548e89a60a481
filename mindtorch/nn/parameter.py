"""Owns Parameter and Buffer: tensors that a Module recognises
and registers; refuses any other state."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import mindtorch

from .._tensor.subclass import disabled_torch_function_impl
from .._tensor.tensor import Tensor

__all__ = ["Buffer", "Parameter"]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc, unused-ignore]
    """Lets a plain tensor marked `_is_param` pass isinstance, as
    torch does for tensor subclasses."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return (
            cls is Parameter
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a module's parameter: requires grad unless told, has no history."""

    __torch_function__ = disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """Shares the storage of `data`; None gives an empty tensor of the default dtype."""
        if data is None:
            data = mindtorch.empty(0)
        parameter: Parameter = Tensor._make_subclass(cls, data, requires_grad)
        return parameter

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        # All is done in __new__; this stops Tensor's constructor from running on the arguments.
        pass

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            done: Parameter = memo[id(self)]
            return done
        copied = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = copied
        return copied

    def __repr__(self, **kwargs: Any) -> str:
        return "Parameter containing:\n" + Tensor.__repr__(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


def _rebuild_parameter(data: Tensor, requires_grad: bool, hooks: Any) -> Parameter:
    del hooks  # hooks are not carried by pickles, the slot is torch's
    return Parameter(data, requires_grad)


class _BufferMeta(type(Tensor)):  # type: ignore[misc, unused-ignore]
    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a module registers as a buffer when it is assigned as an attribute."""

    persistent: bool
    __torch_function__ = disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        """Gives a detached tensor of the data's own class, marked as a buffer."""
        if data is None:
            data = mindtorch.empty(0)
        buffer: Any = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer
