"""Owns cond, while_loop, scan and map: Python's own branches and loops, on tensors' truth.

In a trace they are nodes with a module for each function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mindtorch._tensor.tensor import Tensor
from mindtorch.fx.higher_order import COND, MAP, SCAN, WHILE
from mindtorch.fx.recorder import UntraceableFunction
from mindtorch.ops.spec import aten
from mindtorch.utils._pytree import tree_flatten, tree_unflatten

from .._dynamo.exc import UncapturedHigherOrderOpError

Function = Callable[..., Any]


@contextmanager
def _whole() -> Iterator[None]:
    try:
        yield
    except UntraceableFunction as error:
        raise UncapturedHigherOrderOpError(
            "This higher order operator doesn't work unless it is captured completely with"
            f" torch.compile. Got graph break/error:\n\n{error}"
        ) from error


def cond(
    pred: Tensor | bool, true_fn: Function, false_fn: Function, operands: Sequence[Any] = ()
) -> Any:
    """`true_fn(*operands)` where `pred`, one element, is true, else `false_fn(*operands)`.

    RuntimeError for other predicates, functions that are none, and operands that are no tensors.
    """
    if not isinstance(pred, Tensor | bool | int):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    leaves, _ = tree_flatten(operands)
    if not isinstance(operands, tuple | list) or not all(
        isinstance(leaf, Tensor | int) for leaf in leaves
    ):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists"
            f" of tensor leaves, but got {operands}."
        )
    with _whole():
        return COND(pred, true_fn, false_fn, operands)


def while_loop(
    cond_fn: Function, body_fn: Function, carried_inputs: Sequence[Any]
) -> tuple[Any, ...]:
    """Apply `body_fn` to what is carried for as long as `cond_fn` of it is true."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(f"carried_inputs must be a tuple or list but got {type(carried_inputs)}")
    with _whole():
        result: tuple[Any, ...] = WHILE(cond_fn, body_fn, tuple(carried_inputs))
        return result


def map(f: Function, xs: Any, *args: Any) -> Any:
    """The results of `f(x, *args)` for each slice `x` of `xs` along its first dim, stacked."""
    leaves, spec = tree_flatten(xs)
    others, others_spec = tree_flatten(args)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")

    def flat(*values: Any) -> Any:
        head, rest = values[: len(leaves)], values[len(leaves) :]
        return f(tree_unflatten(head, spec), *tree_unflatten(rest, others_spec))

    with _whole():
        return MAP(flat, leaves, others)


def scan(
    combine_fn: Function, init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """Carry `init` along the slices of `xs`: `combine_fn(carry, x)` gives the next and a result.

    The last carry, and the results stacked in the slices' order.
    """
    if not callable(combine_fn):
        raise RuntimeError("Combine_fn must be a callable, but got " + str(combine_fn))
    start, init_spec = tree_flatten(init)
    leaves, xs_spec = tree_flatten(xs)
    if not leaves:
        return init, []
    if dim:
        leaves = [aten.movedim(leaf, dim, 0) for leaf in leaves]
    if reverse:
        leaves = [aten.flip(leaf, (0,)) for leaf in leaves]
    specs = []

    def flat(*values: Any) -> list[Any]:
        carry, x = values[: len(start)], values[len(start) : len(start) + len(leaves)]
        result = combine_fn(tree_unflatten(carry, init_spec), tree_unflatten(x, xs_spec))
        first, _ = tree_flatten(result[0])
        rows, spec = tree_flatten(result[1])
        specs.append(spec)
        return [*first, *rows]

    with _whole():
        results = SCAN(flat, start, leaves)
    rows = list(results[len(start) :])
    if reverse:
        rows = [aten.flip(row, (0,)) for row in rows]
    if dim:
        rows = [aten.movedim(row, 0, dim) for row in rows]
    return tree_unflatten(results[: len(start)], init_spec), tree_unflatten(rows, specs[0])
