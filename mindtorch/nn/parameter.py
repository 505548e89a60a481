"""Owns Parameter and Buffer: tensors that a Module recognises
and registers; refuses any other state."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import mindtorch

from .._functional.printing import PLAIN
from .._tensor.device import DeviceLike
from .._tensor.dtype import dtype as Dtype
from .._tensor.subclass import disabled_torch_function_impl
from .._tensor.tensor import Tensor

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter",
           "UninitializedTensorMixin", "is_lazy"]  # fmt: skip


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

    _is_param = True
    __torch_function__ = disabled_torch_function_impl

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        """Shares the storage of `data`; None gives an empty tensor of the default dtype."""
        if data is None:
            data = mindtorch.empty(0)
        elif not isinstance(data, Tensor):
            data.detach()
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        if type(data) in PLAIN or cls is not Parameter or hasattr(data, "_as_gradient"):
            parameter: Parameter = Tensor._make_subclass(cls, data, requires_grad)
            return parameter
        marked: Parameter = data.detach().requires_grad_(requires_grad)  # stays of the data's class
        if type(marked) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that"
                " detach() returns an instance of the same type, but return type"
                f" {type(marked).__name__} was found instead. To use the type as a Parameter,"
                " please correct the detach() semantics defined by its __torch_dispatch__()"
                " implementation."
            )
        marked._is_param = True
        return marked

    def __init__(self, *args: object, **kwargs: object) -> None:
        # All is done in __new__, by arguments that a subclass may have of its own; this stops
        # Tensor's constructor from running on them.
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


PLAIN.add(Parameter)


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


class UninitializedTensorMixin:
    """A tensor of an unknown shape: its place and dtype are known, and what it becomes."""

    cls_to_become: Any

    def materialize(
        self, shape: Any, device: DeviceLike | None = None, dtype: Dtype | None = None
    ) -> None:
        """Becomes an uninitialised tensor of `shape`, in place."""
        this: Any = self
        this.data = mindtorch.empty(
            shape, device=device or this.data.device, dtype=dtype or this.data.dtype
        )
        this.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually"
            " happens in `load_state_dict` when trying to load an uninitialized parameter into an"
            " initialized one. Call `forward` to initialize the parameters before accessing their"
            " attributes."
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to"
            " initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self, **_: object) -> str:
        return f"<{type(self).__name__}>"

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Lets conversions and `copy_` through, and attributes; ValueError for other calls."""
        if func in _OF_ANY_SHAPE or type(func).__name__ == "method-wrapper":
            with mindtorch._C.DisableTorchFunctionSubclass():
                result = func(*args, **(kwargs or {}))
                moved = isinstance(result, Tensor) and not isinstance(result, cls)
                return result.as_subclass(cls) if moved else result
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {_as_torch_shows(func)}. This error"
            " happens when you are using a `LazyModule` or explicitly manipulating"
            f" `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward`"
            " with a dummy batch to initialize the parameters before calling torch functions"
        )


# Methods that torch writes in Python, which are shown as functions.
_IN_PYTHON = ("__contains__", "__format__", "__iter__", "__len__", "__reversed__", "__rsub__",
              "backward", "norm", "register_hook", "split", "stft", "unique")  # fmt: skip


def _as_torch_shows(func: Any) -> str:
    """The text of a function, as torch's functions in C have it."""
    name = getattr(func, "__name__", "")
    if getattr(Tensor, name, None) is func and name not in _IN_PYTHON:
        return f"<method '{name}' of 'torch._C.TensorBase' objects>"
    return str(func)


# What a tensor may be asked for while its shape is unknown.
_OF_ANY_SHAPE = [
    getattr(Tensor, name)
    for name in ("__hash__", "size", "copy_", "is_complex", "is_floating_point", "half", "float",
                 "double", "char", "short", "int", "long", "cuda", "cpu", "to", "get_device")
]  # fmt: skip


class UninitializedParameter(  # type: ignore[misc, unused-ignore]
    UninitializedTensorMixin, Parameter, metaclass=_ParameterMeta
):
    """A parameter whose shape the first call decides."""

    cls_to_become = Parameter

    def __new__(
        cls,
        requires_grad: bool = True,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> UninitializedParameter:
        data = mindtorch.empty(0, device=device, dtype=dtype)
        fresh: UninitializedParameter = Tensor._make_subclass(cls, data, requires_grad)
        return fresh

    def __init__(
        self,
        requires_grad: bool = True,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        pass

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, self.data.device, self.data.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape the first call decides."""

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
        persistent: bool = True,
    ) -> Any:
        data = mindtorch.empty(0, device=device, dtype=dtype)
        fresh: Any = Tensor._make_subclass(cls, data, requires_grad)
        fresh.persistent = persistent
        fresh._is_buffer = True
        return fresh

    def __init__(self, *_: object, **__: object) -> None:
        pass


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)
