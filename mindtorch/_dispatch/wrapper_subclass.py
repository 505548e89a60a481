"""Owns tensors without memory of their own, whose class computes rows by `__torch_dispatch__`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NoReturn

from .._autograd.grad_mode import LOCAL, MODES
from .._autograd.product_nodes import PRODUCTS
from .._autograd.surface import refuse_class
from .._tensor.device import device as Device
from .._tensor.dtype import FLOAT, dtype as Dtype, get_default_dtype
from .._tensor.geometry import Size, contiguous_strides, geometry
from .._tensor.no_memory import NoMemory
from .._tensor.slots import TensorSlots
from .._tensor.subclass import DOOR, LOCAL as SUBCLASS, disabled_torch_function_impl, showing
from .._tensor.tensor import Tensor
from ..ops.spec import Op
from ..utils._pytree import tree_leaves
from .bind import normalise
from .composites import whole_row
from .dispatch_modes import TorchDispatchMode, in_parts
from .keys import DispatchKey
from .overrides import EVERY, WRAPPERS, through_mode


class _Classes(TorchDispatchMode):
    """The mode below all others in a call with wrappers: it asks the wrappers' classes."""

    of_classes = True

    def __torch_dispatch__(
        self, func: Any, types: object, args: Any = (), kwargs: Any = None
    ) -> Any:
        leaves = tree_leaves((args, kwargs))
        kinds: tuple[Any, ...] = tuple(dict.fromkeys(type(v) for v in leaves if is_wrapper(v)))
        if not kinds:
            return func(*args, **(kwargs or {}))
        if any(hasattr(kind, "_differentiable") for kind in kinds):
            LOCAL.exclude &= ~int(DispatchKey.Autograd)  # gradients are those of what it holds
        for kind in sorted(kinds, key=lambda k: -len(k.__mro__)):
            result = kind.__torch_dispatch__(func, kinds, args, kwargs or {})
            if result is not NotImplemented:
                return result
        handlers = "".join(f"\n\n  - tensor subclass {kind}" for kind in kinds)
        raise TypeError(
            f"Multiple dispatch failed for 'torch.ops.{func}'; all __torch_dispatch__ handlers"
            f" returned NotImplemented:{handlers}\n\nFor more information, try re-running with"
            " TORCH_LOGS=not_implemented"
        )


_CLASSES = _Classes()


def is_wrapper(value: object) -> bool:
    """Whether a value is a tensor whose class computes rows."""
    return type(value) in WRAPPERS


@contextmanager
def asking_classes(below: int = 1) -> Iterator[None]:
    """Inside, operators with wrappers go to their classes, below autograd and all modes.

    `below`: whether rows take wrappers for the tensors that their geometry says they are.
    """
    modes, before = LOCAL.dispatches, SUBCLASS.below
    MODES.active += 1
    if _CLASSES not in modes:
        LOCAL.dispatches = (_CLASSES, *modes)
    SUBCLASS.below = below
    try:
        yield
    finally:
        LOCAL.dispatches, SUBCLASS.below = modes, before
        MODES.active -= 1


def _row_call(op: Op, form: str, raw: Sequence[Any]) -> Any:
    """A row's call with wrappers among its arguments."""
    if LOCAL.functions:
        return through_mode(op, form, raw)
    with asking_classes():
        if form not in ("inplace", "augmented"):
            # As in torch, gradients are those of the parts, which may be tensors with memory.
            whole = any(hasattr(type(value), "_differentiable") for value in raw)
            if op.name in PRODUCTS and LOCAL.grad and not whole:
                result = in_parts(op, normalise(op, raw))
                if result is not NotImplemented:
                    return result
            if op.body is not None and (result := whole_row(op, raw)) is not NotImplemented:
                return result
            return op.entry("aten")(*raw)
        named = {a.name: v for a, v in zip(op.schema.args, raw, strict=True) if a.keyword_only}
        return op.entry("inplace")(*raw[: len(raw) - len(named)], **named)


def _ask(
    func: Callable[..., Any], types: Sequence[type], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """What stands in place of a `__torch_function__` that is not the class's own."""
    with asking_classes():
        return func(*args, **kwargs)


def _within(member: Callable[..., Any]) -> Callable[..., Any]:
    """A method of Tensor, for wrappers: operators in it go to the class."""

    @wraps(member)
    def method(*args: Any, **kwargs: Any) -> Any:
        with asking_classes():
            return member(*args, **kwargs)

    return method


def _no_list(self: Tensor) -> NoReturn:
    raise RuntimeError(
        f".tolist() is not supported for tensor subclasses, got {type(self).__name__}"
    )


def _no_array(self: Tensor, *, force: bool = False) -> NoReturn:
    raise RuntimeError(".numpy() is not supported for tensor subclasses.")


# Methods of Tensor that are no rows.
_METHODS: dict[str, Any] = {
    **{name: _within(getattr(Tensor, name)) for name in (
        "__bool__", "__complex__", "__float__", "__int__", "bernoulli_", "cauchy_", "detach",
        "exponential_", "geometric_", "item", "new_empty", "new_full", "new_ones", "new_zeros",
        "normal_", "random_", "uniform_",
    )},
    "data": property(_within(Tensor.detach), Tensor.__dict__["data"].fset),
    "numpy": _no_array, "tolist": _no_list,
}  # fmt: skip


def _no_address(self: Tensor) -> int:
    return 0


def make_wrapper_subclass(
    cls: type[Tensor], size: Sequence[int] | None = None, strides: Sequence[int] | None = None,
    storage_offset: int | None = None, *_: object, dtype: Dtype | None = None,
    layout: object = None, device: Device | str | None = None, requires_grad: bool = False,
    **_options: object,
) -> Tensor:  # fmt: skip
    """A tensor of class `cls` without memory (torch.Tensor._make_wrapper_subclass).

    `__torch_dispatch__` of the class is given each operator, below autograd.
    """
    refuse_class(cls)
    if size is None:
        raise TypeError('_make_wrapper_subclass() missing 1 required positional arguments: "size"')
    if not hasattr(cls, "__torch_dispatch__"):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    if cls not in WRAPPERS:
        members: dict[str, Any] = {
            "_row_call": staticmethod(_row_call),
            "_composites": EVERY,
            # Rows ask it, though the class may have switched `__torch_function__` off.
            "_geom": showing(TensorSlots.__dict__["_geom"], "below"),
            "__getattribute__": object.__getattribute__,
            "data_ptr": _no_address if cls.data_ptr is Tensor.data_ptr else cls.data_ptr,
        }
        members.update((n, m) for n, m in _METHODS.items() if getattr(cls, n) is getattr(Tensor, n))
        functions = [c.__dict__.get("__torch_function__") for c in cls.__mro__]
        function = next(filter(None, functions))
        if function in (disabled_torch_function_impl, Tensor.__dict__["__torch_function__"]):
            members["_ask"] = staticmethod(_ask)
        for name, member in members.items():
            type.__setattr__(cls, name, member)
        WRAPPERS.add(cls)
    memory: Any = NoMemory("Cannot access data pointer of Tensor that doesn't have storage")
    instance: Tensor = object.__new__(cls)
    where = Device(device or "cpu")
    steps = tuple(strides) if strides is not None else contiguous_strides(tuple(size))
    instance._geom = geometry(
        Size(size), steps, storage_offset or 0, dtype or get_default_dtype(), where
    )
    instance._storage = memory
    instance._fn, instance._nr, instance._base = None, 0, None
    if requires_grad and instance._geom.dtype.category < FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return instance.requires_grad_() if requires_grad else instance


DOOR.update(is_wrapper=is_wrapper, asking_classes=asking_classes)
setattr(Tensor, "_make_wrapper_subclass", staticmethod(make_wrapper_subclass))  # noqa: B010
