"""Owns tensors without memory of their own, whose class computes rows by `__torch_dispatch__`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .._autograd.surface import refuse_class
from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.dtype import get_default_dtype
from .._tensor.geometry import Size, contiguous_strides, geometry
from .._tensor.no_memory import NoMemory
from .._tensor.slots import TensorSlots
from .._tensor.subclass import disabled_torch_function_impl, showing
from .._tensor.tensor import Tensor
from ..ops.namespaces import namespace
from ..ops.spec import Op
from .composites import WHOLE_ROWS
from .dispatch_modes import in_parts, operator_call


def _dispatching(cls: Any) -> Callable[[Op, str, Sequence[object]], object]:
    def call(op: Op, form: str, raw: Sequence[object]) -> object:
        result = in_parts(op, raw)
        if result is not NotImplemented:
            return result
        end = "_" if form in ("inplace", "augmented") else ""
        func, args, kwargs = operator_call(op, end, raw)
        return cls.__torch_dispatch__(func, (cls,), args, kwargs)

    return call


def _asking(cls: Any) -> Callable[..., object]:
    """What stands in place of a `__torch_function__` that is not the class's own."""

    def ask(
        func: Callable[..., object], types: Sequence[type], args: Sequence[object],
        kwargs: dict[str, object],
    ) -> object:  # fmt: skip
        packet: Any = getattr(namespace("aten"), func.__name__, None)
        if not hasattr(packet, "default"):  # an operator of Python, made of rows
            return func(*args, **kwargs)
        return cls.__torch_dispatch__(packet.default, tuple(types), tuple(args), kwargs)

    return ask


def _detach(self: Tensor) -> object:
    """`detach` is no row here; the class is asked by torch's name of it."""
    kind: Any = type(self)
    return kind.__torch_dispatch__(namespace("aten").detach.default, (kind,), (self,), {})


def _number(kind: Callable[[Any], object]) -> Callable[[Tensor], object]:
    """A method that reads the one number: the class is asked for it."""

    def read(self: Tensor) -> object:
        cls: Any = type(self)
        operator = namespace("aten")._local_scalar_dense.default
        return kind(cls.__torch_dispatch__(operator, (cls,), (self,), {}))

    return read


def _no_list(self: Tensor) -> NoReturn:
    raise RuntimeError(
        f".tolist() is not supported for tensor subclasses, got {type(self).__name__}"
    )


def _no_array(self: Tensor, *, force: bool = False) -> NoReturn:
    raise RuntimeError(".numpy() is not supported for tensor subclasses.")


# Methods of Tensor that read values.
_READS: dict[str, Callable[..., object]] = {
    "item": _number(lambda value: value), "__bool__": _number(bool), "__float__": _number(float),
    "__int__": _number(int), "__complex__": _number(complex), "tolist": _no_list,
    "numpy": _no_array,
}  # fmt: skip


def _no_address(self: Tensor) -> int:
    return 0


def make_wrapper_subclass(
    cls: type[Tensor], size: Sequence[int] | None = None, strides: Sequence[int] | None = None,
    storage_offset: int = 0, *_: object, dtype: Dtype | None = None, layout: object = None,
    device: Device | str | None = None, requires_grad: bool = False, **_options: object,
) -> Tensor:  # fmt: skip
    """A tensor of class `cls` without memory (torch.Tensor._make_wrapper_subclass).

    `__torch_dispatch__` of the class is given each row's operator. Gradients are those of the
    tensors that it wraps: NotImplementedError for `requires_grad`.
    """
    refuse_class(cls)
    if size is None:
        raise TypeError('_make_wrapper_subclass() missing 1 required positional arguments: "size"')
    if not hasattr(cls, "__torch_dispatch__"):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    if requires_grad:
        raise NotImplementedError(
            f"{cls.__name__}: mindtorch records gradients of the tensors that a wrapper holds, not"
            " of the wrapper; leave out requires_grad"
        )
    if "_row_call" not in cls.__dict__:
        members: dict[str, Any] = {
            "_row_call": staticmethod(_dispatching(cls)),
            "_composites": WHOLE_ROWS,
            # Rows ask it, though the class may have switched `__torch_function__` off.
            "_geom": showing(TensorSlots.__dict__["_geom"]),
            "__getattribute__": object.__getattribute__,
            "data_ptr": _no_address if cls.data_ptr is Tensor.data_ptr else cls.data_ptr,
            "detach": cls.__dict__.get("detach", _detach),
            "data": cls.__dict__.get("data", property(_detach, Tensor.__dict__["data"].fset)),
        }
        for name, read in _READS.items():
            if getattr(cls, name) is getattr(Tensor, name):
                members[name] = read
        functions = [c.__dict__.get("__torch_function__") for c in cls.__mro__]
        function = next(filter(None, functions))
        if function in (disabled_torch_function_impl, Tensor.__dict__["__torch_function__"]):
            members["_ask"] = staticmethod(_asking(cls))
        for name, member in members.items():
            type.__setattr__(cls, name, member)
    memory: Any = NoMemory("Cannot access data pointer of Tensor that doesn't have storage")
    instance: Tensor = object.__new__(cls)
    where = Device(device or "cpu")
    steps = tuple(strides) if strides is not None else contiguous_strides(tuple(size))
    instance._geom = geometry(
        Size(size), steps, storage_offset, dtype or get_default_dtype(), where
    )
    instance._storage = memory
    instance._fn, instance._nr, instance._base = None, 0, None
    return instance


setattr(Tensor, "_make_wrapper_subclass", staticmethod(make_wrapper_subclass))  # noqa: B010
