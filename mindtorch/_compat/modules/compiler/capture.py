"""Owns what torch.compile does with a backend: it gets each graph of a call once.

A call is traced each time it runs; a graph that was seen before runs what the backend gave for it.
What asks tensors for values ends a graph, and the next one begins behind it, as in torch. The
second shape of an input makes its size a symbol (`s77`), which the graph has as an input.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import operator
import re
import threading
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mindtorch._autograd.function import autograd_function_apply
from mindtorch._autograd.grad_mode import LOCAL
from mindtorch._compat.checks import SymInt
from mindtorch._dispatch.overrides import _public
from mindtorch._tensor.geometry import Size
from mindtorch._tensor.tensor import Tensor
from mindtorch.amp import autocast
from mindtorch.amp.switches import _enter_autocast, _exit_autocast
from mindtorch.fx import Graph, GraphModule
from mindtorch.fx.aten import TracedInt, traced_int
from mindtorch.fx.call_sites import (
    as_written,
    result_name,
    root_call,
    source_line,
    unpacked_names,
    variable_of,
)
from mindtorch.fx.fake import OF_UNKNOWN_SIZE, TRACING, default_mode, meta_like, of_sizes, outside
from mindtorch.fx.graph import inplace_methods, magic_methods
from mindtorch.fx.node import Node, Target, has_side_effect
from mindtorch.fx.recorder import (
    Arguments,
    Function,
    GraphRecorder,
    Keywords,
    TracedTensor,
    Untraceable,
    UntraceableFunction,
    become,
    real_of,
)  # fmt: skip
from mindtorch.nn.modules.module import Module
from mindtorch.nn.parameter import Parameter
from mindtorch.ops.spec import Op
from mindtorch.utils._config_module import SETTINGS
from mindtorch.utils._pytree import tree_flatten, tree_map

from .._C import _set_grad_enabled
from .._dynamo.exc import (
    BackendCompilerFailed,
    TorchDynamoException,
    TorchRuntimeError,
    Unsupported,
)  # fmt: skip
from . import graph_breaks
from .graph_breaks import GraphBreak
from .symbols import add_symbols, placeholder_name, size_symbol, with_sizes

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)


class _TracingState(threading.local):
    recorder: DynamoRecorder | None = None
    compiling = 0  # calls of compiled functions in which Python is
    exporting = False
    stance = "default"


CURRENT = _TracingState()
# What torch has graphs compute, without a break.
_IN_GRAPHS = OF_UNKNOWN_SIZE | {"__float__", "__getitem__", "__int__", "item", "numpy"}
importlib.import_module("mindtorch.amp.autocast_mode")  # whose names graphs have
_SWITCHES = (_set_grad_enabled, _enter_autocast, _exit_autocast)
_OPERATORS = {"div": "truediv", "bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor",
              "bitwise_not": "invert"}  # fmt: skip


class DynamoRecorder(GraphRecorder):
    """Traces one call; each graph goes to `compiled`, and what that gives is run."""

    value_key = "example_value"
    versions = 2  # of a size that changes: its own, and five times as much
    submodule_names = {
        "cond": ("cond_true", "cond_false"), "map": ("map_body",), "scan": ("scan_combine_fn",),
        "while_loop": ("cond_fn", "body_fn"),
    }  # fmt: skip
    operand_name = "child_{}"
    named_operands = "cond", "map_impl"

    def __init__(self, call: CapturedCall):
        self.symbols: dict[tuple[int, int], str] = {}  # of sizes that change, by two values of each
        super().__init__()
        self.owner, self.sources = call, dict[int, str]()
        self.grad, self.around = LOCAL.grad, (LOCAL.grad, LOCAL.autocast)
        self.contexts: list[tuple[autocast, Node]] = []
        self.originals: list[tuple[TracedTensor, Tensor]] = []

    def input(self, tensor: Tensor, source: str) -> TracedTensor:
        """What the function sees in place of a tensor that it was called with."""
        changing = self.owner.changing(placeholder_name(source), tensor)
        others = [s * 5 if d in changing else s for d, s in enumerate(tensor.shape)]
        metas = meta_like(tensor, tensor.shape), meta_like(tensor, others)
        for dim in changing:
            symbol = size_symbol(source, dim)
            self.symbols.setdefault((tensor.shape[dim], others[dim]), symbol)
        traced = self.traced(metas, Graph()._root, tensor._geom.device)
        self.sources[id(traced)], traced._real = source, tensor
        self.originals.append((traced, tensor))
        return traced

    def sizes(self, tensor: TracedTensor) -> Any:
        shape, others = (meta.shape for meta in tensor._metas)
        if shape == others:
            return shape
        columns = enumerate(zip(shape, others, strict=True))
        return tuple.__new__(Size, [
            traced_int(pair, functools.partial(self._size, tensor, dim, pair))
            for dim, pair in columns
        ])  # fmt: skip

    def _size(self, tensor: TracedTensor, dim: int, values: tuple[int, int]) -> Node:
        """The node of a size: an input of the graph, or what computes it."""
        symbol = self.symbols.get(values)
        if symbol is None:
            return self.graph.call_method("size", (self.node_of(tensor), dim))
        nodes = [n for n in self.graph.nodes if n.op == "placeholder"]
        known = next((n for n in nodes if n.target == symbol), None)
        if known is not None:
            return known
        with self.graph.inserting_before():
            return self.graph.create_node("placeholder", symbol, type_expr=SymInt)

    def argument(self, value: object) -> object:
        return value.make() if isinstance(value, TracedInt) else super().argument(value)

    def value_of(self, value: object, version: int) -> object:
        return value.values[version] if isinstance(value, TracedInt) else value

    def own_function(self, function: type[Any], args: Arguments, kwargs: Keywords) -> Any:
        """One node, whose results are in a tuple."""
        alone = False

        def call(*args: object, **kwargs: object) -> Any:
            nonlocal alone
            result = function.apply(*args, **kwargs)
            alone = isinstance(result, Tensor)
            return (result,) if alone else result

        spelling = "call_function", autograd_function_apply, (function, *args), kwargs
        results = self.call(None, "", call, args, kwargs, spelling)
        return results[0] if alone else results

    def lift(self, tensor: Tensor) -> Node:
        real = real_of(tensor)
        source = self.sources.get(id(tensor)) or self.sources.get(id(real))
        source = source or variable_of(tensor) or f"L['stack{len(self.inputs)}']"
        kind = Parameter if isinstance(real, Parameter) else Tensor
        last = next((n for n in reversed(self.graph.nodes) if n.op == "placeholder"), None)
        with self.graph.inserting_after(last) if last else self.graph.inserting_before():
            node = self.graph.create_node("placeholder", placeholder_name(source), type_expr=kind)
        self.inputs.append(real)
        node.meta.update(example_value=default_mode().from_tensor(real), source=source)
        return node

    def spelled(
        self,
        op: Op | None,
        form: str,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[str, Target, Arguments, Keywords]:
        for tensor in tree_flatten((args, kwargs))[0]:  # a module's come before arguments
            if isinstance(tensor, Tensor) and "." in self.sources.get(id(tensor), ""):
                self.node_of(tensor)
        name = func.__name__
        plain = _OPERATORS.get(name, name.strip("_"))
        if form == "operator" or (name[:2] == "__" and form != "inplace"):
            reflected = plain[0] == "r" and plain[1:] in magic_methods
            target = getattr(operator, plain[1:] if reflected else plain, None)
            if target is not None:
                return "call_function", target, args[::-1] if reflected else args, kwargs
        if form == "augmented" and f"i{plain}" in inplace_methods:
            return "call_function", getattr(operator, f"i{plain}"), args, kwargs
        if name == "__get__":  # of a property
            place = getattr(func, "__self__", None)
            at = next((n for n, v in vars(Tensor).items() if v is place), name)
            return "call_function", getattr, (*args, at), {}
        if form in ("method", "inplace") or getattr(Tensor, name, None) is func:
            many = len(args) == 2 and op is not None and isinstance(args[1], tuple)
            return "call_method", name, (args[0], *args[1]) if many else args, kwargs
        return "call_function", func, args, kwargs

    def row(self, op: Op, form: str, raw: Sequence[Any]) -> Any:
        args, kwargs = as_written(op, form, raw)
        func = _public(op, "inplace" if form in ("inplace", "augmented") else form)
        return self.call(op, form, func, args, kwargs)

    def call(
        self, op: Op | None, form: str, func: Function, args: Arguments, kwargs: Keywords,
        spelling: tuple[str, Target, Arguments, Keywords] | None = None,
    ) -> Any:  # fmt: skip
        try:
            if func.__name__ == "__setitem__":
                return self._set_items(func, args)
            return super().call(op, form, func, args, kwargs, spelling)
        except (TorchRuntimeError, Unsupported, UntraceableFunction):
            raise
        except (RuntimeError, ValueError) as error:
            text = self._described(op, form, func, args, kwargs, spelling)
            tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, Tensor)]
            if func.__name__ == "linear":
                tensors = [tensors[0], self.metas_of(tensors[1])[0].t()]
            cause = of_sizes(error, tensors)
            raise TorchRuntimeError(graph_breaks.failed_call(text, cause)) from error

    def _set_items(self, func: Function, args: Arguments) -> None:
        """The node of `x[index] = value`."""
        self.on_meta("__setitem__", func, args, {}, 0)
        nodes = tree_map(self.argument, args)
        self.add_node("call_function", operator.setitem, nodes, {})

    def _described(
        self, op: Op | None, form: str, func: Function, args: Arguments, kwargs: Keywords,
        spelling: tuple[str, Target, Arguments, Keywords] | None,
    ) -> str:  # fmt: skip
        """A call in torch's words: its target and fake tensors."""
        kind, target, args, kwargs = spelling or self.spelled(op, form, func, args, kwargs)

        def fake(value: object) -> object:
            if not isinstance(value, Tensor):
                return value
            stand_in = default_mode().stand_in(self.metas_of(value)[0], value._geom.device)
            return _Unquoted(f"Parameter({stand_in})" if isinstance(value, Parameter) else stand_in)

        args, kwargs = tree_map(fake, (args, kwargs))
        return f"{kind} {target}(*{args}, **{kwargs})"

    def add_node(self, kind: str, target: Target, args: Arguments, kwargs: Keywords) -> Node:
        self._follow(LOCAL.grad)
        node = self.graph.create_node(kind, target, args, kwargs)
        node.meta["from"] = source_line()
        if name := result_name():
            node._rename(name)
        return node

    def getitem(self, node: Node, at: int) -> Node:
        item = super().getitem(node, at)
        names = unpacked_names()
        if at < len(names):
            item._rename(names[at])
        return item

    def _follow(self, grad: bool) -> None:
        """Add the node that turns gradients on or off, as they are where the program is."""
        if grad != self.grad:
            self.grad = grad
            self.graph.call_function(has_side_effect(_set_grad_enabled), (grad,))

    def autocast(self, context: autocast | None) -> None:
        """Add the node that enters a context of autocast, or exits the last one (None)."""
        self._follow(LOCAL.grad)
        if context is not None:
            args = context.device_type, context.asked_dtype, context.enabled, None
            node = self.graph.call_function(has_side_effect(_enter_autocast), args)
            self.contexts.append((context, node))
        elif self.contexts:
            _, node = self.contexts.pop()
            self.graph.call_function(has_side_effect(_exit_autocast), (node,))

    def on_meta(
        self, name: str, func: Function, args: Arguments, kwargs: Keywords, version: int
    ) -> Any:
        before = LOCAL.autocast
        if before:  # of the program's devices
            kinds = [t._geom.device.type for t in tree_flatten((args, kwargs))[0]
                     if isinstance(t, Tensor)]  # fmt: skip
            lower = next((before[k] for k in kinds if k in before), None)
            LOCAL.autocast = {"meta": lower} if lower else None
        try:
            return super().on_meta(name, func, args, kwargs, version)
        except (IndexError, RuntimeError):
            if not version:
                raise
            return super().on_meta(name, func, args, kwargs, 0)  # which no other size fits
        finally:
            LOCAL.autocast = before

    def written(self, tensor: Tensor, node: Node) -> None:
        if node.op == "call_function":  # `a += b` gives a variable; a method's result is another
            super().written(tensor, node)

    def break_graph(self, func: Function | str | GraphBreak) -> None:
        name = getattr(func, "__name__", str(func))
        if self.nested is not None:
            raise UntraceableFunction(f"{name} in a function of a higher-order operator")
        if name in _IN_GRAPHS:
            self.flush()
            return
        reason = func if isinstance(func, GraphBreak) else self._reason(name)
        if self.owner.fullgraph:
            raise Unsupported(reason.located())
        jump = name == "__bool__"
        self.owner.breaks.append("generic_jump TensorVariable()" if jump else str(reason))
        before = self.owner.compilations
        self.flush()
        if self.owner.compilations > before or str(reason) not in self.owner.counted:
            self.owner.counted.add(str(reason))
            counters["graph_break"][str(reason)] += 1

    def settle(self, tensor: Tensor) -> None:
        """Run the graph so far where it may write to a tensor that is no traced one."""
        storages = [real_of(lifted)._storage for lifted, _ in self.lifted.values()]
        if not isinstance(tensor, TracedTensor) and any(tensor._storage is s for s in storages):
            self.flush()

    def _reason(self, name: str) -> GraphBreak:
        """Why a method ends a graph."""
        if name == "__bool__":
            last = next(iter(reversed(self.graph.nodes)), None)
            if last is None or last.op != "call_function":
                return graph_breaks.branch("")
            operands = ", ".join(map(str, last.args))
            plain = getattr(last.target, "__name__", last.name)
            path = str(last.meta["from"]).replace("# File: ", '# File "', 1)
            place = re.sub(r":(\d+) in ", r'", line \1, in ', path, count=1)
            return graph_breaks.branch(f"{place}\n{last} = {plain}({operands})")
        unknown = GraphBreak(f"Unsupported Tensor.{name}() call", f"Tensor.{name} has no graph")
        return graph_breaks.METHODS.get(name, unknown)

    def flush(self, first: Sequence[TracedTensor] = ()) -> None:
        """Run the graph so far, and begin another; its results are `first` and what is in use."""
        live = [t for ref in self.results if (t := ref()) is not None and t._real is None]
        order = {id(t): at for at, t in enumerate(first)}
        live.sort(key=lambda t: order.get(id(t), len(order)))
        contexts = [context for context, _ in self.contexts]
        if any(n.op.startswith("call") and n.target not in _SWITCHES for n in self.graph.nodes):
            outputs = tuple(self.node_of(t) for t in live)
            self._follow(self.around[0])
            while self.contexts:
                self.autocast(None)
            self.graph.output(outputs)
            inside, (LOCAL.grad, LOCAL.autocast) = (LOCAL.grad, LOCAL.autocast), self.around
            try:
                run = self.owner.compiled(self)
                with outside():
                    results = run(*self.owner.arguments)
            finally:
                LOCAL.grad, LOCAL.autocast = inside
            for traced, result in zip(live, results, strict=True):
                traced._real = result
        self.start()
        self.contexts.clear()
        for context in contexts:
            self.autocast(context)

    def finish(self, result: object) -> Any:
        """The function's result, of plain tensors."""
        leaves = [t for t in tree_flatten(result)[0] if isinstance(t, TracedTensor)]
        if any(t._real is None for t in leaves) or len(list(self.graph.nodes)):
            self.flush(leaves)
        originals = {id(traced): tensor for traced, tensor in self.originals}
        result = tree_map(
            lambda t: originals.get(id(t), t), result, is_leaf=lambda t: isinstance(t, Size)
        )
        for ref in self.results:
            if (traced := ref()) is not None and traced._real is not None:
                become(traced, traced._real)
        return result


class _Unquoted(str):
    """A text that is shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


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

    def __init__(
        self, target: Callable[..., Any], backend: Callable[..., Any], fullgraph: bool = False,
        dynamic: bool | None = None,
    ):  # fmt: skip
        self.target, self.backend = target, backend
        self.fullgraph, self.dynamic = fullgraph, dynamic
        self.entries: dict[Any, list[tuple[Any, Any, Any]]] = {}
        self.breaks: list[str] = []
        self.compilations, self.counted = 0, set[str]()  # of graphs; reasons of breaks
        self.sizes: dict[str, list[int | None]] = {}
        self.arguments: list[Any] = []
        functools.update_wrapper(self, target, updated=())
        CALLS.add(self)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        eager = CURRENT.stance == "force_eager"
        if eager or CURRENT.recorder is not None:  # a call inside another's is part of its graph
            return self.target(*args, **kwargs)
        recorder, plain = DynamoRecorder(self), (args, kwargs)
        CURRENT.recorder = recorder
        CURRENT.compiling += 1
        try:
            with recorder, _print_breaks(recorder):
                args, kwargs = self._named(recorder, args, kwargs)
                result = root_call(self.target, args, kwargs)
            return recorder.finish(result)
        except Untraceable:
            if self.fullgraph:
                raise Unsupported("Unsupported gradients of traced tensors") from None
        except Exception as error:
            if not self.fullgraph or isinstance(error, TorchDynamoException):
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
        kinds = tuple((t.dtype, t.dim(), t.requires_grad, t.device, LOCAL.grad) for t in inputs)
        text = tuple((n.op, str(n.target), str(n.args), str(n.kwargs)) for n in graph.nodes)
        shapes = [size for t in inputs for size in t.shape]
        versions = self.entries.setdefault((kinds, text), [])
        for fixed, symbols, run in versions:
            if all(s == at or (at is None and s > 1) for s, at in zip(shapes, fixed, strict=True)):
                self.arguments = with_sizes(inputs, symbols)
                return run
        fixed = self._dynamic_sizes(graph, inputs)
        symbols = add_symbols(graph, inputs, fixed)
        self.arguments = with_sizes(inputs, symbols)
        if CURRENT.stance == "fail_on_recompile":
            self._refuse_recompile()
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
        versions.append((fixed, symbols, run))
        return run

    def _refuse_recompile(self) -> None:
        code = getattr(getattr(self.target, "forward", self.target), "__code__", None)
        place = (code.co_filename, code.co_name, code.co_firstlineno) if code else (None,) * 3
        raise RuntimeError(
            "Detected recompile when torch.compile stance is 'fail_on_recompile'. filename:"
            f" {place[0]!r}, function name: {place[1]!r}, line number: {place[2]}"
        )

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
        marks = getattr(tensor, "_dynamo_dynamic_indices", ())
        seen = self.sizes.get(name, list(tensor.shape))
        if len(seen) != tensor.dim():  # of another rank, after which each size may change
            seen = [None] * tensor.dim()
        return [
            d for d, (size, before) in enumerate(zip(tensor.shape, seen, strict=True))
            if size > 1 and (self.dynamic or d in marks or before != size)
        ]  # fmt: skip

    def _dynamic_sizes(self, graph: Graph, inputs: list[Tensor]) -> list[int | None]:
        """The sizes that a graph is for, None for any: those that were others before."""
        names = [
            str(n.target) for n in graph.nodes if n.op == "placeholder" and n.type is not SymInt
        ]
        sizes: list[int | None] = []
        for name, tensor in zip(names, inputs, strict=True):
            changing = self.changing(name, tensor)
            shape = [None if d in changing else s for d, s in enumerate(tensor.shape)]
            seen = self.sizes.setdefault(name, shape)
            if len(seen) != tensor.dim():
                seen[:] = [None] * tensor.dim()
            seen[:] = [s if s == at else None for s, at in zip(shape, seen, strict=True)]
            sizes += shape
        return sizes


class EagerCall(CapturedCall):
    """Calls `target` as it is; with `traces`, makes its graphs once for each kind of arguments."""

    def __init__(self, target: Callable[..., Any], fullgraph: bool, traces: bool):
        super().__init__(target, lambda module, inputs: module.forward, fullgraph)
        self.traces, self.traced = traces or fullgraph, set[Any]()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if self.traces and CURRENT.recorder is None and CURRENT.stance != "force_eager":
            leaves = tree_flatten((args, kwargs))[0]
            key = tuple(v._geom if isinstance(v, Tensor) else repr(v) for v in leaves)
            if key not in self.traced:
                result = super().__call__(*args, **kwargs)
                self.traced.add(key)
                return result
        eager = CURRENT.stance == "force_eager"
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
