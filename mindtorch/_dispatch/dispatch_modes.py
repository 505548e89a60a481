"""Owns `__torch_dispatch__` modes: they see each row's call below autograd, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._autograd.grad_mode import LOCAL, MODES
from .._autograd.scope import StepScope
from .._tensor.tensor import Tensor
from ..ops.namespaces import OpOverload, namespace
from ..ops.spec import Op, aten
from .keys import DispatchKey

_AUTOGRAD = int(DispatchKey.Autograd)


class TorchDispatchMode(StepScope):
    """A context whose `__torch_dispatch__` sees every operator that runs inside.

    Inside that method the mode is off and nothing is recorded for gradients.
    """

    def __init__(self, _dispatch_key: object = None) -> None:
        pass

    def __torch_dispatch__(
        self, func: object, types: object, args: object = (), kwargs: object = None
    ) -> Any:
        raise NotImplementedError

    def steps(self) -> Iterator[TorchDispatchMode]:
        before = LOCAL.dispatches
        try:
            MODES.active += 1
            LOCAL.dispatches = (*before, self)
            yield self
        finally:
            LOCAL.dispatches = before
            MODES.active -= 1

    @classmethod
    def push(cls, *args: object, **kwargs: object) -> object:
        """An instance, to be entered."""
        return cls(*args, **kwargs)  # whatever the class takes

    @classmethod
    def is_infra_mode(cls) -> bool:
        """False: a mode of the program's own."""
        return False


class Watched:
    """A plan whose run goes to the innermost mode."""

    def __init__(self, op: Op, plan: Any):
        self._op, self._plan = op, plan

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)

    def run(self, *args: Any) -> Any:
        """Ask the mode; without one, run the plan."""
        if self._op.name in _PARTS and (parts := _PARTS[self._op.name](*args)) is not None:
            with _below_autograd():
                return parts()
        places, named = called(self._op, args)
        return _ask(overload(self._op, "", places), places, named)


class WatchedInplace(Watched):
    """The same of a call that writes to its first argument."""

    def run(self, outs: Any, *args: Any) -> Any:
        """Ask the mode for the writing form."""
        places, named = called(self._op, args)
        return _ask(overload(self._op, "_", places), places, named)


def _rows(x: Tensor) -> Tensor:
    """`x` as a matrix of its last dimension."""
    return x if x.ndim == 2 else aten.view(x, (-1, x.shape[-1]))


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Callable[[], Tensor] | None:
    """A product of matrices, where `x` can be seen as one."""
    if not x.is_contiguous():
        return None
    shape = (*x.shape[:-1], weight.shape[0])

    def parts() -> Tensor:
        if bias is None:
            transposed = aten.t(weight)
            product = aten.mm(_rows(x), transposed)
        else:
            product = aten.addmm(bias, _rows(x), aten.t(weight))
        return product if x.ndim == 2 else aten.view(product, shape)

    return parts


def _linear_backward(
    grad: Tensor, x: Tensor, weight: Tensor, mask: Sequence[bool]
) -> Callable[[], tuple[Tensor | None, ...]] | None:
    if not (x.is_contiguous() and grad.is_contiguous()) and x.ndim != 2:
        return None
    modes, LOCAL.dispatches = LOCAL.dispatches, ()
    try:
        transposed = weight.detach().t()  # as the forward product had it
    finally:
        LOCAL.dispatches = modes

    def parts() -> tuple[Tensor | None, ...]:
        rows = _rows(grad)
        gx = aten.mm(rows, aten.t(transposed)) if mask[0] else None
        gw = aten.t(aten.t(aten.mm(aten.t(rows), _rows(x)))) if mask[1] else None
        gb = aten.view(aten.sum(rows, (0,), True), (weight.shape[0],)) if mask[2] else None
        return gx if gx is None or x.ndim == 2 else aten.view(gx, x.shape), gw, gb

    return parts


def _matmul(left: Tensor, right: Tensor) -> Callable[[], Tensor] | None:
    return (lambda: aten.mm(left, right)) if left.ndim == right.ndim == 2 else None


# Rows that are several of torch's operators, each of which a mode sees.
_PARTS: dict[str, Callable[..., Callable[[], Any] | None]] = {
    "linear": _linear, "_linear_backward": _linear_backward, "matmul": _matmul,
}  # fmt: skip


@contextmanager
def _below_autograd() -> Iterator[None]:
    """Nothing is recorded for gradients inside; modes stay on."""
    excluded = LOCAL.exclude
    LOCAL.exclude = excluded | _AUTOGRAD
    try:
        yield
    finally:
        LOCAL.exclude = excluded


# Overloads that torch names after their arguments, where rows have one schema for all.
_OVERLOADS = {
    **dict.fromkeys(("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge"), "Tensor"),
    **dict.fromkeys(("select", "transpose", "unbind"), "int"),
    "slice": "Tensor", "where": "self", "index": "Tensor",
}  # fmt: skip


# Those that name a number as their second argument: add and its like take it as a tensor.
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
# And where dims are among them.
_WITH_DIMS = {"mean": "dim", "sum": "dim_IntList"}


def overload(op: Op, end: str, places: Sequence[Any]) -> OpOverload:
    """The operator of a row as torch names it; `end` is `_` for the form that writes."""
    base, _, overload = op.name.partition(".")
    name = overload or _OVERLOADS.get(base, "default")
    if base in _COMPARISONS and not isinstance(places[1], Tensor):
        name = "Scalar"
    if base in _WITH_DIMS and len(places) > 1:
        name = _WITH_DIMS[base]
    function: OpOverload = getattr(getattr(namespace("aten"), base + end), name)
    return function


# Rows of which torch's operator takes all but the first argument by name.
_BY_NAME = frozenset(("_to_copy",))


def called(op: Op, args: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of a call, without defaults by name or at the end."""
    places: list[Any] = []
    named: dict[str, Any] = {}
    count = 0  # of the places up to the last that is no default
    for arg, value in zip(op.schema.args, args, strict=True):
        by_name = arg.keyword_only or (op.name in _BY_NAME and bool(places))
        default = arg.has_default and (value is arg.default or value is None)
        if not by_name:
            places.append(value)
            count = count if default else len(places)
        elif not default and value is not None:
            named[arg.name] = value
    return tuple(places[:count]), named


def _ask(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    modes, excluded = LOCAL.dispatches, LOCAL.exclude
    LOCAL.dispatches, LOCAL.exclude = modes[:-1], excluded | _AUTOGRAD
    try:
        return modes[-1].__torch_dispatch__(func, (), args, kwargs)
    finally:
        LOCAL.dispatches, LOCAL.exclude = modes, excluded
