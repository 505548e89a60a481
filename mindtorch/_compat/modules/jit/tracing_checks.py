"""Owns what is checked of a trace: that it is the same again, and that calls have its arguments."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import mindtorch
from mindtorch._compat.torchscript.unit import module_path
from mindtorch._tensor.tensor import Tensor
from mindtorch.random import get_rng_state, set_rng_state
from mindtorch.utils._pytree import tree_flatten, tree_map

from .decisions import Decisions
from .sizes import SizeNumber, TracerWarning

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


_STRICT = (
    "Encountering a {} at the output of the tracer might cause the trace to be incorrect, this is"
    " only valid if the container structure does not change based on the module's inputs. Consider"
    " using a constant container instead (e.g. for `list`, use a `tuple` instead. for `dict`, use a"
    " `NamedTuple` instead). If you absolutely need this and know the side effects, pass"
    " strict=False to trace() to allow this behavior."
)


def check_result(result: Any, strict: bool) -> None:
    """RuntimeError for a result that a trace cannot have; a TracerWarning for a list."""
    if result is None:
        raise RuntimeError(
            "The traced function didn't return any values! Side-effects are not captured in traces,"
            " so it would be a no-op."
        )
    if isinstance(result, dict):
        if strict:
            raise RuntimeError(_STRICT.format("dict"))
        if not all(isinstance(v, Tensor | tuple) for v in result.values()):
            listed = ", ".join(f"{k}: {v}" for k, v in result.items())
            raise RuntimeError(
                f"output 1 ({{{listed}}}) of traced region cannot be understood by the tracer, only"
                " outputs matching dict[Union[str, Tensor], Union[Tensor, Tuple[Tensor, ...]]] can"
                " be a dictionary output of a traced function"
            )
        return
    if isinstance(result, list):
        _check_list(result)
        if strict:
            warnings.warn(_STRICT.format("list"), TracerWarning, stacklevel=4)
        return
    if isinstance(result, tuple):
        for each in result:
            check_result(_NOTHING if each is None else each, strict)
    elif not isinstance(result, Tensor | SizeNumber):
        raise RuntimeError(
            "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from"
            " traced functions"
        )


_NOTHING = object()


def _check_list(values: list[Any]) -> None:
    why = ""
    kinds = [type(v).__name__ if not isinstance(v, Tensor) else "Tensor" for v in values]
    other = next((k for k in kinds if k != kinds[0]), None)
    if not values:
        why = "List trace inputs must have elements"
    elif other is not None:
        why = (
            "List inputs to traced functions must have consistent element type. Found"
            f" {kinds[0]} and {other}"
        )
    if why:
        raise RuntimeError(f"Tracer cannot infer type of {values}\n:{why}")
    if kinds[0] != "Tensor":
        check_result(_NOTHING, False)


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
