"""Owns tracing a call for torch.compile: nodes by torch's names, and where a graph ends."""

from __future__ import annotations

import functools
import importlib
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mindtorch._autograd.function import autograd_function_apply
from mindtorch._autograd.grad_mode import LOCAL
from mindtorch._compat.checks import SymInt
from mindtorch._dispatch.new_sizes import SizeOfValues
from mindtorch._dispatch.overrides import _public
from mindtorch._tensor.geometry import Size
from mindtorch._tensor.tensor import Tensor
from mindtorch.amp import autocast
from mindtorch.amp.switches import _enter_autocast, _exit_autocast
from mindtorch.fx import Graph
from mindtorch.fx.aten import TracedInt
from mindtorch.fx.call_sites import (
    as_written,
    result_name,
    source_line,
    unpacked_names,
    variable_of,
)
from mindtorch.fx.fake import OF_UNKNOWN_SIZE, default_mode, meta_like, of_sizes, outside
from mindtorch.fx.graph import inplace_methods, magic_methods
from mindtorch.fx.node import Node, Target, has_side_effect
from mindtorch.fx.recorder import (
    Arguments,
    Function,
    GraphRecorder,
    Keywords,
    TracedTensor,
    UntraceableFunction,
    become,
    real_of,
)  # fmt: skip
from mindtorch.nn.parameter import Parameter
from mindtorch.ops.spec import Op
from mindtorch.utils._pytree import tree_flatten, tree_map

from .._C import _set_grad_enabled
from .._dynamo.exc import TorchRuntimeError, Unsupported
from . import graph_breaks
from .graph_breaks import GraphBreak
from .guards import CallFacts
from .marks import SizeMarks
from .read_numbers import plain_number, read_number
from .symbols import placeholder_name, size_symbol

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)


# What torch has graphs compute, without a break.
_IN_GRAPHS = OF_UNKNOWN_SIZE | {"__float__", "__getitem__", "__int__", "item", "numpy"}
importlib.import_module("mindtorch.amp.autocast_mode")  # whose names graphs have
_SWITCHES = (_set_grad_enabled, _enter_autocast, _exit_autocast)
_OPERATORS = {"div": "truediv", "bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor",
              "bitwise_not": "invert"}  # fmt: skip


class _Unquoted(str):
    """A text that is shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


class TracedCall(Protocol):
    """What a recorder asks of the call that it traces."""

    fullgraph: bool
    breaks: list[str]
    compilations: int
    counted: set[str]
    arguments: list[Any]

    def compiled(self, recorder: DynamoRecorder) -> Callable[..., Any]:
        """What runs the recorder's graph."""

    def changing(self, name: str, tensor: Tensor) -> list[int]:
        """The dims of an input that may have other sizes."""


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

    def __init__(self, call: TracedCall):
        self.symbols: dict[tuple[int, int], str] = {}  # of sizes that change, by two values of each
        self.marks = SizeMarks()
        super().__init__()
        self.owner, self.sources = call, dict[int, str]()
        self.read = 0  # numbers
        self.facts: CallFacts | None = None  # until the first graph
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
            self.marks.add(tensor, source, dim, (tensor.shape[dim], others[dim]))
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
            self.marks.size(pair, functools.partial(self._size, tensor, dim, pair))
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
        except SizeOfValues:
            self.flush()
            return self.on_real(func, args, kwargs)
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
            leaves = tree_flatten((args, kwargs))[0]
            self.marks.fix_all([self.metas_of(t) for t in leaves if isinstance(t, TracedTensor)])
            return super().on_meta(name, func, args, kwargs, 0)  # which no other size fits
        finally:
            LOCAL.autocast = before

    def written(self, tensor: Tensor, node: Node) -> None:
        if node.op == "call_function":  # `a += b` gives a variable; a method's result is another
            super().written(tensor, node)
        else:
            self.note_value(tensor, node)

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

    def on_real(self, func: Function, args: Arguments, kwargs: Keywords) -> Any:
        result = super().on_real(func, args, kwargs)
        if not self.owner.fullgraph or getattr(func, "__name__", "") != "item":
            return result
        self.read += 1
        return read_number(result, self.read - 1)

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
                values = self.owner.arguments
                of_class = any(
                    isinstance(v, Tensor) and type(v) not in (Tensor, Parameter) for v in values
                )
                with outside(classes=not of_class):
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
            lambda t: originals.get(id(t), plain_number(t)),
            result,
            is_leaf=lambda t: isinstance(t, Size),
        )
        for ref in self.results:
            if (traced := ref()) is not None and traced._real is not None:
                become(traced, traced._real)
        return result
