"""Owns what is checked of a trace: that it is the same again, and that calls have its arguments."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from difflib import ndiff
from typing import Any

import mindtorch
from mindtorch._compat.torchscript.graph import NotLowered
from mindtorch._compat.torchscript.unit import LoweredFunction
from mindtorch._compat.torchscript.views import canonical_graph_of, graph_of
from mindtorch._tensor.tensor import Tensor
from mindtorch.testing import assert_close
from mindtorch.testing._comparison import default_tolerances
from mindtorch.utils._pytree import tree_flatten, tree_map

from .decisions import Decisions
from .sizes import SizeNumber, TracerWarning

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
Lowered = LoweredFunction | NotLowered
_NONDETERMINISTIC = (
    "dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal poisson"
    " binomial rrelu rrelu_with_noise rand rand_like randint randint_like randn randn_like randperm"
)


def _indented(text: str) -> str:
    return "".join(f"\t{line}\n" for line in text.splitlines()).removesuffix("\n")


class TracingCheckError(Exception):
    """A trace that is another one when the function is traced again."""

    def __init__(self, differences: str = "", constants: str = "", first: str = "") -> None:
        text = "Tracing failed sanity checks!\n" + (f"{first}\n" if first else "")
        if differences:
            text += "ERROR: Graphs differed across invocations!\n" + _indented(differences) + "\n"
        if constants:
            text += (
                "ERROR: Tensor-valued Constant nodes differed in value across invocations. This"
                " often indicates that the tracer has encountered untraceable code.\n"
                + _indented(constants) + "\n"
            )  # fmt: skip
        super().__init__(text)


TracingCheckError.__module__ = "mindtorch.jit._trace"


def copied(value: Any) -> Any:
    """Inputs again, of which a function may write the tensors."""
    return tree_map(
        lambda v: (
            v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, Tensor) else v
        ),
        value,
    )


def _same(one: Tensor, other: Tensor) -> str:
    """Nothing, or how two tensors differ."""
    try:
        assert_close(one, other, equal_nan=True)
    except AssertionError as error:
        return str(error)
    return ""


def _differences(first: LoweredFunction, second: LoweredFunction) -> tuple[str, str]:
    """How the graphs of two traces differ: as texts, and in the first constant."""
    both = [canonical_graph_of(f) for f in (first, second)]
    texts = [re.sub(r"___torch_mangle_\d+\.", "", str(graph)) for graph in both]
    graphs = constants = ""
    pairs = list(zip(*(graph.nodes() for graph in both), strict=False))
    if texts[0] != texts[1]:
        graphs = f"Graph diff:\n{_indented(_compared(*texts))}\n"
        one, other = next(((a, b) for a, b in pairs if str(a) != str(b)), (None, None))
        if one is not None and other is not None:
            graphs += "First diverging operator:\nNode diff:\n"
            graphs += _indented(_compared(str(one), str(other))) + "\n"
            for what, node in (("Trace", one), ("Check", other)):
                if node.sourceRange():
                    graphs += f"{what} source location:\n{_indented(node.sourceRange())}\n"
    for one, other in pairs:
        values = [n.output().toIValue() for n in (one, other) if n.kind() == "prim::Constant"]
        if one.kind() != other.kind():
            break
        if len(values) == 2 and all(isinstance(v, Tensor) for v in values):
            differing = _same(*values)
            if differing:
                place = f"Source Location:\n{_indented(one.sourceRange())}\n"
                constants = f"Node:\n{_indented(str(one))}\n{place}"
                constants += f"Comparison exception: {_indented(differing)}"
                break
    return graphs, constants


def _compared(one: str, other: str) -> str:
    return "".join(ndiff(one.splitlines(keepends=True), other.splitlines(keepends=True)))


class TraceCheck:
    """Compares a trace with the function, and with the trace of other inputs."""

    def __init__(
        self, traced: Callable[..., Any], function: Callable[..., Any], lowered: Lowered,
        again: Callable[[Inputs], tuple[Callable[..., Any], Decisions, Lowered]],
        first: Decisions, tolerance: float,
    ):  # fmt: skip
        self.traced, self.function, self.lowered = traced, function, lowered
        self.again, self.first, self.tolerance = again, first, tolerance

    def check(self, inputs: Inputs) -> None:
        """TracingCheckError where the graphs differ, a TracerWarning where results do."""
        repeated, decisions, lowered = self.again(copied(inputs))
        if isinstance(self.lowered, LoweredFunction) and isinstance(lowered, LoweredFunction):
            differing = _differences(self.lowered, lowered)
        else:
            changed = decisions.values != self.first.values
            differing = ("Other values were read of tensors", "") if changed else ("", "")
        with mindtorch.no_grad():
            results = self._results(self.traced, inputs, "trace", differing)
            expected = self._results(self.function, inputs, "Python function", differing)
            if self._compare(results, expected, "Python function"):
                other = self._results(repeated, inputs, "repeated trace", differing)
                self._compare(results, other, "repeated trace")
        if any(differing):
            raise TracingCheckError(*differing)

    def _results(
        self, function: Callable[..., Any], inputs: Inputs, what: str, differing: tuple[str, str]
    ) -> list[Tensor]:  # fmt: skip
        args, kwargs = copied(inputs)
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            first = f"encountered an exception while running the {what} with test inputs."
            first += f"\nException:\n{_indented(str(error))}"
            raise TracingCheckError(*differing, first) from error
        return [v for v in tree_flatten(result)[0] if isinstance(v, Tensor)]

    def _compare(self, results: list[Tensor], expected: list[Tensor], what: str) -> bool:
        same = True
        for number, (one, other) in enumerate(zip(results, expected, strict=False), 1):
            try:
                absolute = default_tolerances(one, other)[1]
                assert_close(
                    one.double(), other.double(), rtol=self.tolerance, atol=absolute, equal_nan=True
                )
            except AssertionError as error:
                self._warn_of_random_numbers()
                warnings.warn(
                    f"Output nr {number}. of the traced function does not match the corresponding"
                    f" output of the {what}. Detailed error:\n{error}",
                    TracerWarning,
                    stacklevel=6,
                )
                same = False
        return same

    def _warn_of_random_numbers(self) -> None:
        if not isinstance(self.lowered, LoweredFunction):
            return
        nodes = [
            n for n in graph_of(self.lowered).nodes() if n.kind()[6:] in _NONDETERMINISTIC.split()
        ]
        listed = "\n".join(_indented(str(n)) for n in nodes[:20])
        if nodes:
            warnings.warn(
                "Trace had nondeterministic nodes. Did you forget call .eval() on your model?"
                f" Nodes:\n{listed}\nThis may cause errors in trace checking. To disable trace"
                " checking, pass check_trace=False to torch.jit.trace()",
                TracerWarning,
                stacklevel=7,
            )


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
