"""Owns what is checked of a trace: that it is the same again, and that calls have its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import mindtorch
from mindtorch._compat.torchscript.unit import module_path
from mindtorch._tensor.tensor import Tensor
from mindtorch.random import get_rng_state, set_rng_state
from mindtorch.utils._pytree import tree_flatten, tree_map

from .decisions import Decisions

Trace = Callable[[tuple[Any, ...], Mapping[str, object]], tuple[Decisions, object]]


class TracingCheckError(Exception):
    """A trace that is another one when the function is traced again."""

    def __init__(self) -> None:
        super().__init__(
            "Tracing failed sanity checks!\nERROR: Graphs differed across invocations!\n"
        )


TracingCheckError.__module__ = "mindtorch.jit._trace"


def copied(value: Any) -> Any:
    """Inputs again, of which a function may write the tensors."""
    return tree_map(lambda v: v.detach().clone() if isinstance(v, Tensor) else v, value)


def _same(one: object, other: object) -> bool:
    pairs = zip(tree_flatten(one)[0], tree_flatten(other)[0], strict=False)
    return all(
        a.shape == b.shape and mindtorch.allclose(a, b, equal_nan=True)
        for a, b in pairs
        if isinstance(a, Tensor) and isinstance(b, Tensor)
    )


def check_again(
    trace: Trace, first: Decisions, result: object, function: object, state: Tensor,
    inputs: Sequence[tuple[tuple[Any, ...], Mapping[str, object]]],
) -> None:  # fmt: skip
    """Trace the example again, and other inputs; TracingCheckError where the trace differs.

    A plain function that gives other results for the same inputs and random numbers has changed.
    """
    for at, (args, kwargs) in enumerate(inputs):
        after = get_rng_state()
        set_rng_state(state)
        try:
            again, result_again = trace(args, kwargs)
        finally:
            set_rng_state(after)
        changed = isinstance(function, FunctionType) and at == 0 and not _same(result, result_again)
        if changed or again.values != first.values:
            raise TracingCheckError()


def kind_of_result(result: object) -> str:
    """The type of what a traced function gives, as a declaration has it."""
    if isinstance(result, Tensor):
        return "Tensor"
    if isinstance(result, dict):
        return "Dict(str, Tensor)"
    if isinstance(result, list):
        return "Tensor[]"
    inner = ", ".join(kind_of_result(r) for r in result) if isinstance(result, tuple) else "Tensor"
    return f"({inner})"


def check_arguments(
    cls: type, forward: Callable[..., Any], returned: str, args: Sequence[object],
    kwargs: Mapping[str, object],
) -> None:  # fmt: skip
    """RuntimeError for a call of a traced module with arguments too few or too many."""
    parameters = list(inspect.signature(forward).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return
    listed = "".join(f", Tensor {p.name}" for p in parameters)
    returned = f"({returned})" if returned.startswith("(") else returned
    name = f"{module_path(cls.__module__)}.{cls.__name__}"
    declaration = f"Declaration: forward({name} self{listed}) -> {returned}"
    if len(args) > len(parameters):
        raise RuntimeError(
            f"forward() expected at most {len(parameters) + 1} argument(s) but received"
            f" {len(args) + 1} argument(s). {declaration}"
        )
    for parameter in parameters[len(args) :]:
        if parameter.name not in kwargs and parameter.default is parameter.empty:
            raise RuntimeError(
                f"forward() is missing value for argument '{parameter.name}'. {declaration}"
            )
