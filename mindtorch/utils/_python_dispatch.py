"""Owns torch.utils._python_dispatch's names: the modes that are on, and tensors that wrap others.

`return_and_correct_aliasing` and `transform_subclass` are what classes of such tensors call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .._autograd.grad_mode import LOCAL
from .._dispatch.dispatch_modes import TorchDispatchMode as TorchDispatchMode
from .._tensor.tensor import Tensor
from ..ops.namespaces import OpOverload


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets operators pass."""

    def __torch_dispatch__(
        self, func: Any, types: object, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor is of a class that says which tensors it is made of."""
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """The same question about a class."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is on; without `include_infra_modes`, one of the program's own."""
    return any(include_infra_modes or not m.is_infra_mode() for m in LOCAL.dispatches)


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode."""
    return LOCAL.dispatches[-1] if LOCAL.dispatches else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """The modes that are on, the innermost last."""
    return list(LOCAL.dispatches)


@contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """No mode sees what runs inside; gives those that are off, the innermost first."""
    modes, LOCAL.dispatches = LOCAL.dispatches, ()
    try:
        yield list(reversed(modes))
    finally:
        LOCAL.dispatches = modes


def transform_subclass(
    t: Any,
    callback: Callable[[str, Tensor], Tensor],
    outer_size: Sequence[int] | None = None,
    outer_stride: Sequence[int] | None = None,
) -> Any:
    """A tensor of the class of `t` made of `callback(name, tensor)` of each that `t` is made of.

    AssertionError where its size or strides are not those of `t`, or those given.
    """
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    result = type(t).__tensor_unflatten__(inner, context, size, stride)
    for what, actual, expected in (
        ("shape", result.shape, size),
        ("stride", result.stride(), stride),
    ):
        if actual != expected:
            raise AssertionError(
                f"Expected return value from {type(t)}__tensor_unflatten__() to have "
                f"{what} equal to {expected}, but got: {actual}"
            )
    return result


def return_and_correct_aliasing(
    func: Any, args: Any, kwargs: Mapping[str, Any] | None, out: Any
) -> Any:
    """What `__torch_dispatch__` returns for `func(*args, **kwargs)` that it computed as `out`.

    Results of views share the memory of their inputs, and an operator that writes gives its input
    itself. AssertionError where a view is of another class than its input.
    """
    schema = func._schema
    for what, value, kind in (("func", func, OpOverload), ("args", args, tuple)):
        if not isinstance(value, kind):
            name = "an OpOverload" if kind is OpOverload else "a tuple"
            raise AssertionError(f"{what} must be {name}, got {type(args)}")
    marks = [a.alias_info and (a.alias_info.before_set, a.is_write) for a in schema.arguments]
    aliased: list[int] = []  # the arguments that results are, where the operator writes
    for result, declared in zip(
        out if isinstance(out, tuple) else (out,), schema.returns, strict=False
    ):
        if declared.alias_info is None:
            continue
        place = marks.index((declared.alias_info.before_set, declared.is_write))
        if declared.is_write:
            aliased.append(place)
        else:
            _share_memory(func, args[place], result)
    if not aliased:
        return out
    results = [
        args[i] if i < len(args) else (kwargs or {})[schema.arguments[i].name] for i in aliased
    ]
    return results[0] if len(results) == 1 else type(out)(results)


def _share_memory(func: Any, input: Any, result: Any) -> None:
    for view in result if isinstance(result, list) else [result]:
        wraps = is_traceable_wrapper_subclass(input) or is_traceable_wrapper_subclass(view)
        if wraps and type(input) is not type(view):
            raise AssertionError(
                f"Called {func} with input of type {type(input)}\n"
                f"and output of type {type(result)}. But expected types to match."
            )
        if not isinstance(view, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(view)}")
        view._storage = input._storage
