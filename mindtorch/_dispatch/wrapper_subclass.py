"""Owns tensors without memory of their own, whose class computes rows by `__torch_dispatch__`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.dtype import get_default_dtype
from .._tensor.geometry import Size, contiguous_strides, geometry
from .._tensor.no_memory import NoMemory
from .._tensor.tensor import Tensor
from ..ops.spec import Op
from .dispatch_modes import called, overload


def _dispatching(cls: type[Any]) -> Callable[[Op, str, Sequence[Any]], Any]:
    def call(op: Op, form: str, raw: Sequence[Any]) -> Any:
        end = "_" if form in ("inplace", "augmented") else ""
        args, kwargs = called(op, raw)
        return cls.__torch_dispatch__(overload(op, end), (cls,), args, kwargs)

    return call


def make_wrapper_subclass(
    cls: type[Tensor], size: Sequence[int], strides: Sequence[int] | None = None,
    storage_offset: int = 0, *_: object, dtype: Dtype | None = None, layout: object = None,
    device: Device | str | None = None, requires_grad: bool = False, **_options: object,
) -> Tensor:  # fmt: skip
    """A tensor of class `cls` without memory (torch.Tensor._make_wrapper_subclass).

    `__torch_dispatch__` of the class is given each row's operator. Gradients are those of the
    tensors that it wraps: NotImplementedError for `requires_grad`.
    """
    if not hasattr(cls, "__torch_dispatch__"):
        raise RuntimeError(
            f"{cls.__name__} must define __torch_dispatch__ to be made by _make_wrapper_subclass"
        )
    if requires_grad:
        raise NotImplementedError(
            f"{cls.__name__}: mindtorch records gradients of the tensors that a wrapper holds, not"
            " of the wrapper; leave out requires_grad"
        )
    if "_row_call" not in cls.__dict__:
        members = {
            "_row_call": staticmethod(_dispatching(cls)),
            "__getattribute__": object.__getattribute__,
        }
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
