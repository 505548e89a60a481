"""Owns what torch.compile does with a backend: it gets each graph of a call once.

A call is traced each time it runs; a graph that was seen before runs what the backend gave for it.
What asks tensors for values ends a graph, and the next one begins behind it, as in torch. The
second shape of an input makes its size a symbol (`s77`), which the graph has as an input.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import logging
import operator
import threading
import weakref
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any

from mindtorch._autograd.grad_mode import LOCAL
from mindtorch._compat.checks import SymInt
from mindtorch._tensor.tensor import Tensor
from mindtorch.fx import Graph, GraphModule
from mindtorch.fx.call_sites import root_call
from mindtorch.fx.fake import TRACING, default_mode, outside
from mindtorch.fx.recorder import (
    Arguments,
    Keywords,
    TracedTensor,
    Untraceable,
    UntraceableTransform,
    real_of,
)
from mindtorch.library.symbols import ConstraintViolationError
from mindtorch.nn.modules.module import Module
from mindtorch.nn.parameter import Parameter
from mindtorch.utils._config_module import SETTINGS
from mindtorch.utils._pytree import tree_flatten, tree_map

from .._dynamo.exc import (
    BackendCompilerFailed,
    FailOnRecompileLimitHit,
    RecompileError,
    TorchDynamoException,
    Unsupported,
)
from . import graph_breaks
from .guards import CallFacts, facts_of, reasons, stride_order
from .marks import may_change
from .recorder import DynamoRecorder, counters
from .symbols import add_symbols, with_sizes


class _TracingState(threading.local):
    recorder: DynamoRecorder | None = None
    compiling = 0  # calls of compiled functions in which Python is
    exporting = False
    stance = "default"

    def is_eager(self) -> bool:
        """Whether nothing is compiled; RuntimeError where the program asked for nothing known."""
        if self.stance not in STANCES:
            described = f"stance={self.stance!r}, skip_guard_eval_unsafe=False, backend=None"
            raise RuntimeError(f"invalid torch.compile stance 'DynamoStance({described})'")
        return self.stance == "force_eager"


STANCES = frozenset((
    "default", "eager_on_recompile", "eager_then_compile", "aot_eager_then_compile",
    "fail_on_recompile", "force_eager",
))  # fmt: skip
CURRENT = _TracingState()


def _free(function: object) -> tuple[str, ...]:
    return getattr(getattr(function, "__code__", None), "co_freevars", ())


def _traced(recorder: DynamoRecorder, source: str, value: Any) -> Any:
    """An argument with traced tensors in place of those in it."""
    if isinstance(value, Tensor):
        return recorder.input(value, source) if type(value) in (Tensor, Parameter) else value
    if type(value) in (list, tuple):
        return type(value)(_traced(recorder, f"{source}[{i}]", v) for i, v in enumerate(value))
    if type(value) is dict:
        return {k: _traced(recorder, f"{source}[{k!r}]", v) for k, v in value.items()}
    return value


@contextmanager
def _print_breaks(recorder: DynamoRecorder) -> Iterator[None]:
    """Inside, `print` ends a graph."""
    plain = builtins.print

    def show(*values: object, **options: Any) -> None:
        if CURRENT.recorder is recorder:
            kinds = ["Tensor" if isinstance(v, Tensor) else type(v).__name__ for v in values]
            recorder.break_graph(graph_breaks.builtin("print", kinds, bool(options)))
            values = tree_map(real_of, values)
        plain(*values, **options)

    builtins.print = show
    try:
        yield
    finally:
        builtins.print = plain


CALLS: weakref.WeakSet[CapturedCall] = weakref.WeakSet()


class CapturedCall:
    """Calls `target` through what `backend` makes of its graphs."""

    needs_graphs = True

    def __init__(
        self, target: Callable[..., Any], backend: Callable[..., Any], fullgraph: bool = False,
        dynamic: bool | None = None, limit: int | None = None,
    ):  # fmt: skip
        self.target, self.backend = target, backend
        self.fullgraph, self.dynamic, self.limit = fullgraph, dynamic, limit
        self.entries: dict[Any, list[tuple[Any, Any, Any]]] = {}
        self.breaks: list[str] = []
        self.compilations, self.counted = 0, set[str]()  # of graphs; reasons of breaks
        self.sizes: dict[str, list[int | None]] = {}
        self.arguments: list[Any] = []
        self.guards: list[CallFacts] = []  # of the first graphs of calls
        self.is_past_limit = False
        self.changing_attributes = set[str]()  # of modules, by calls themselves
        functools.update_wrapper(self, target, updated=())
        CALLS.add(self)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if (
            CURRENT.is_eager() or CURRENT.recorder is not None
        ):  # a call inside another's is part of its graph
            return self.target(*args, **kwargs)
        recorder, plain = DynamoRecorder(self), (args, kwargs)
        CURRENT.recorder = recorder
        CURRENT.compiling += 1
        try:
            with recorder, _print_breaks(recorder):
                args, kwargs = self._named(recorder, args, kwargs)
                facts = recorder.facts
                result = root_call(self.target, args, kwargs)
            if facts is not None and isinstance(self.target, Module):
                self.changing_attributes |= facts.changes(self.target)
            return recorder.finish(result)
        except Untraceable as error:
            if self.fullgraph and (
                self.needs_graphs or not isinstance(error, UntraceableTransform)
            ):
                raise Unsupported("Unsupported gradients of traced tensors") from None
        except Exception as error:
            refusal = isinstance(error, TorchDynamoException | ConstraintViolationError)
            if refusal or not self.fullgraph:
                raise
            raise Unsupported(graph_breaks.observed(error).located(error)) from error
        finally:
            CURRENT.recorder = None
            CURRENT.compiling -= 1
        return self.target(*plain[0], **plain[1])

    def function(self) -> Callable[..., Any]:
        """A function that calls this."""

        @functools.wraps(self.target)
        def compiled(*args: object, **kwargs: object) -> Any:
            return self(*args, **kwargs)

        return compiled

    def _named(self, recorder: DynamoRecorder, args: Arguments, kwargs: Keywords) -> Any:
        """The arguments as traced tensors, named after their parameters, as are modules'."""
        function = getattr(self.target, "forward", self.target)
        if isinstance(self.target, Module):
            first = next(iter(inspect.signature(type(self.target).forward).parameters))
            torchs = type(self.target).forward.__module__.startswith("mindtorch.nn.modules.")
            self._name_module(recorder, "fn" if torchs else first, self.target)
        for name, cell in zip(_free(function), getattr(function, "__closure__", None) or (),
                              strict=True):  # fmt: skip
            if isinstance(cell.cell_contents, Module):
                self._name_module(recorder, name, cell.cell_contents)
        if getattr(function, "__module__", "").startswith("mindtorch.nn.modules."):
            signature = inspect.signature(lambda *args, **kwargs: None)  # of torch's wrapper
        else:
            signature = inspect.signature(function)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return args, kwargs  # as Python says it when the function is called
        recorder.facts = facts_of(self.target, bound.arguments)
        for name, value in bound.arguments.items():
            if isinstance(value, Module):
                self._name_module(recorder, name, value)
            bound.arguments[name] = _traced(recorder, f"L[{name!r}]", value)
        return bound.args, bound.kwargs

    @staticmethod
    def _name_module(recorder: DynamoRecorder, root: str, module: Module) -> None:
        for path, inner in module.named_modules():
            parts = [f"._modules[{p!r}]" for p in path.split(".") if p]
            source = "".join([f"L[{root!r}]", *parts])
            for kind in ("_parameters", "_buffers"):
                for name, tensor in getattr(inner, kind).items():
                    recorder.sources[id(tensor)] = f"{source}.{kind}[{name!r}]"
            for name, value in vars(inner).items():
                if isinstance(value, Tensor):
                    recorder.sources[id(value)] = f"{source}.{name}"

    def compiled(self, recorder: DynamoRecorder) -> Callable[..., Any]:
        """What runs a graph; the backend is asked where none of its kind and sizes was seen."""
        graph, inputs = recorder.graph, recorder.inputs
        for node in [n for n in graph.nodes if n.target is operator.getitem and not n.users]:
            graph.erase_node(node)
        self.arguments = inputs
        kinds = tuple(
            (t.dtype, t.dim(), t.requires_grad, t.device, LOCAL.grad, stride_order(t))
            for t in inputs
        )
        text = tuple((n.op, str(n.target), str(n.args), str(n.kwargs)) for n in graph.nodes)
        shapes = [size for t in inputs for size in t.shape]
        facts, recorder.facts = recorder.facts, None
        key = None if facts is None else facts.key(self.changing_attributes)
        versions = self.entries.setdefault((kinds, text, key), [])
        for fixed, symbols, run in versions:
            if all(s == at or (at is None and s > 1) for s, at in zip(shapes, fixed, strict=True)):
                self.arguments = with_sizes(inputs, symbols)
                return run
        if facts is not None:
            self.is_past_limit = self._look_at_recompile(facts)
        if self.is_past_limit:
            return GraphModule(recorder.root, graph).forward
        fixed = self._dynamic_sizes(graph, inputs, recorder.marks.fixed)
        symbols = add_symbols(graph, inputs, fixed)
        self.arguments = with_sizes(inputs, symbols)
        self.compilations += 1
        counters["frames"].update(("total", "ok"))
        calls = sum(n.op not in ("placeholder", "output", "get_attr") for n in graph.nodes)
        counters["stats"].update(calls_captured=calls, unique_graphs=1)
        CURRENT.recorder = None
        try:
            TRACING.mode = default_mode()
            with outside():
                run = self._backend_of(GraphModule(recorder.root, graph))
        finally:
            CURRENT.recorder, TRACING.mode = recorder, None
        recorder.marks.refuse()
        versions.append((fixed, symbols, run))
        return run

    def _look_at_recompile(self, facts: CallFacts) -> bool:
        """Whether a call is to run as it is, not to be compiled another time; an error where the
        program asked for that."""
        again = bool(self.guards)
        settings = SETTINGS["mindtorch._dynamo.config"]
        code = getattr(getattr(self.target, "forward", self.target), "__code__", None)
        place = (code.co_filename, code.co_name, code.co_firstlineno) if code else (None,) * 3
        why = reasons(self.target, self.guards, facts, self.sizes)
        if CURRENT.stance == "fail_on_recompile":
            raise RuntimeError(
                "Detected recompile when torch.compile stance is 'fail_on_recompile'. filename:"
                f" {place[0]!r}, function name: {place[1]!r}, line number: {place[2]}{why}"
            )
        if again and settings["error_on_recompile"]:
            name = f"{place[1]} in {place[0]}:{place[2]}"
            raise RecompileError(f"Recompiling function {name}{why}")
        if again and CURRENT.stance == "eager_on_recompile":
            return True
        limit: int = settings["recompile_limit"] if self.limit is None else self.limit
        if len(self.guards) < limit:
            self.guards.append(facts)
            return False
        if self.fullgraph or settings["fail_on_recompile_limit_hit"]:
            raise FailOnRecompileLimitHit(
                "Hard failure due to fullgraph=True"
                if self.fullgraph
                else "Hard failure due to fail_on_recompile_limit_hit"
            )
        if not self.is_past_limit:
            last = why.rpartition("\n    - ")[2] if why else ""
            logging.getLogger("torch._dynamo").warning(
                "torch._dynamo hit config.recompile_limit (%s)\n   function: '%s' (%s:%s)\n"
                "   last reason: %s", limit, place[1], place[0], place[2], last,
            )  # fmt: skip
        return True

    def _backend_of(self, module: GraphModule) -> Callable[..., Any]:
        """What the backend gives for a graph; BackendCompilerFailed where it raises."""
        try:
            run: Callable[..., Any] = self.backend(module, self.arguments)
            if not callable(run):
                raise AssertionError("compiler_fn did not return callable")
            return run
        except Exception as error:
            if SETTINGS["mindtorch._dynamo.config"]["suppress_errors"]:
                return module.forward
            raise BackendCompilerFailed(self.backend, error) from error

    def changing(self, name: str, tensor: Tensor) -> list[int]:
        """The dims of an input whose sizes were others before, or may be others."""
        if self.dynamic is False:
            return []
        seen = self.sizes.get(name, list(tensor.shape))
        if len(seen) != tensor.dim():  # of another rank, after which each size may change
            seen = [None] * tensor.dim()
        return [
            d for d, (size, before) in enumerate(zip(tensor.shape, seen, strict=True))
            if size > 1 and may_change(tensor, d, bool(self.dynamic) or before != size)
        ]  # fmt: skip

    def _dynamic_sizes(
        self, graph: Graph, inputs: list[Tensor], fixed: Container[tuple[str, int]]
    ) -> list[int | None]:
        """The sizes that a graph is for, None for any: those that were others before, but for
        those that the program fixed."""
        nodes = [n for n in graph.nodes if n.op == "placeholder" and n.type is not SymInt]
        sizes: list[int | None] = []
        for node, tensor in zip(nodes, inputs, strict=True):
            name = str(node.target)
            changing = [
                d for d in self.changing(name, tensor) if (node.meta["source"], d) not in fixed
            ]
            shape = [None if d in changing else s for d, s in enumerate(tensor.shape)]
            seen = self.sizes.setdefault(name, shape)
            if len(seen) != tensor.dim():
                seen[:] = [None] * tensor.dim()
            seen[:] = [s if s == at else None for s, at in zip(shape, seen, strict=True)]
            sizes += shape
        return sizes


class EagerCall(CapturedCall):
    """Calls `target` as it is; with `traces`, makes its graphs once for each kind of arguments."""

    needs_graphs = False

    def __init__(self, target: Callable[..., Any], fullgraph: bool, kind: object):
        super().__init__(target, lambda module, inputs: module.forward, fullgraph)
        self.traces = kind in ("eager", "aot_eager") or fullgraph
        self.is_aot, self.traced = kind == "aot_eager", set[Any]()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        result = self._run(*args, **kwargs)
        if not self.is_aot or not LOCAL.grad or CURRENT.recorder is not None or CURRENT.is_eager():
            return result
        from .._functorch.aot_autograd import without_second_derivatives

        state = list(self.target.parameters()) if isinstance(self.target, Module) else []
        values = [v for v in (*tree_flatten((args, kwargs))[0], *state) if isinstance(v, Tensor)]
        return without_second_derivatives(result, values)

    def _run(self, *args: object, **kwargs: object) -> Any:
        if self.traces and CURRENT.recorder is None and CURRENT.stance != "force_eager":
            leaves = tree_flatten((args, kwargs))[0]
            of = ((v._geom, v.requires_grad) if isinstance(v, Tensor) else repr(v) for v in leaves)
            key = (*of, *facts_of(self.target, {}).values.items(), LOCAL.grad)
            if key not in self.traced:
                result = super().__call__(*args, **kwargs)
                self.traced.add(key)
                return result
        eager = CURRENT.is_eager()
        CURRENT.compiling += not eager
        try:
            return self.target(*args, **kwargs)
        finally:
            CURRENT.compiling -= not eager


def outside_graphs(fn: Callable[..., Any], reason: str | None = None) -> Callable[..., Any]:
    """A function that ends a graph, and runs as it is."""

    @functools.wraps(fn)
    def call(*args: object, **kwargs: object) -> Any:
        recorder, compiling = CURRENT.recorder, CURRENT.compiling
        if recorder is not None:
            recorder.break_graph(graph_breaks.disabled(fn, reason))
            args, kwargs = tree_map(real_of, (args, kwargs))
        CURRENT.recorder, CURRENT.compiling = None, 0
        try:
            with outside():
                return fn(*args, **kwargs)
        finally:
            CURRENT.recorder, CURRENT.compiling = recorder, compiling

    return call


def one_node(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls in a graph are a node each, whatever it calls."""

    @functools.wraps(fn)
    def call(*args: object, **kwargs: object) -> Any:
        recorder = CURRENT.recorder
        leaves = tree_flatten((args, kwargs))[0]
        if recorder is None or not any(isinstance(v, TracedTensor) for v in leaves):
            return fn(*args, **kwargs)
        return recorder.call(None, "", fn, args, kwargs, ("call_function", fn, args, kwargs))

    return call
