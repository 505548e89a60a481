"""Owns operators of functions (torch.ops.higher_order): run as they are, traced as submodules.

In a trace each function becomes a module of its own. Its inputs are the operands, and then the
tensors of the trace around it that it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .._autograd.grad_mode import LOCAL
from .._tensor.tensor import Tensor
from ..nn.modules.module import Module
from ..ops.namespaces import namespace
from ..ops.spec import aten
from ..utils._pytree import TreeSpec, tree_flatten, tree_unflatten
from .aten import TracedBool
from .call_sites import source_line
from .dispatch_trace import DispatchRecorder
from .fake import outside
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .recorder import GraphRecorder, UntraceableFunction

Function = Callable[..., Any]
Recorder = GraphRecorder | DispatchRecorder


class HigherOrderOperator:
    """An operator of functions: `run` computes it, `trace` says how a recorder adds its node."""

    namespace = "higher_order"

    def __init__(self, name: str, run: Function, trace: Function):
        self.__name__, self.run, self.trace = name, run, trace
        setattr(namespace("higher_order"), name, self)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        recorder = active_recorder()
        if recorder is None:
            return self.run(*args, **kwargs)
        if isinstance(recorder, DispatchRecorder):
            return recorder.of_functions(self, args, kwargs)
        return self.trace(recorder, *args, **kwargs)

    def name(self) -> str:
        """The name."""
        return self.__name__

    def __str__(self) -> str:
        return self.__name__

    __repr__ = __str__


def active_recorder() -> Recorder | None:
    """The recorder of the trace that is on, None outside of traces."""
    modes = [m for m in (*LOCAL.dispatches, *LOCAL.functions) if isinstance(m, Recorder)]
    return modes[-1] if modes else None


@dataclass
class Subgraph:
    """A traced function: its graph, what it uses of the trace around it, what it gives."""

    graph: Graph
    root: Module
    inputs: list[Node]
    captured: dict[Node, Node]  # nodes of the trace around it, and their placeholders
    results: list[Any]
    outputs: list[Any]
    spec: TreeSpec

    def module(
        self, outer: Sequence[Node], names: Sequence[str], output: Callable[[list[Any]], Any]
    ) -> GraphModule:
        """The graph with placeholders `names` for its inputs and for the nodes around it."""
        graph, nodes = Graph(), dict[Node, Node]()
        places = [*self.inputs, *(self.captured.get(o, o) for o in outer)]
        for name, node in zip(names, places, strict=True):
            nodes[node] = graph.placeholder(name)
            nodes[node].meta = dict(node.meta)
            if name.endswith("_"):  # an input of torch.compile's graphs, which it names again
                nodes[node]._rename(f"{name}_1")
        for node in self.graph.nodes:
            if node not in nodes:
                nodes[node] = graph.node_copy(node, nodes.__getitem__)
        graph.output(output([nodes[v] if isinstance(v, Node) else v for v in self.outputs]))
        return GraphModule(self.root, graph)


class Nested:
    """Inside, a recorder's graph is that of a function; tensors around it become placeholders."""

    def __init__(self, recorder: Recorder):
        self.recorder, self.captured = recorder, dict[Node, Node]()

    def _swap(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        r = self.recorder
        before = r.graph, r.root, r.nested
        r.graph, r.root, r.nested = state
        return before

    def __enter__(self) -> Nested:
        self.outer = self._swap((Graph(), Module(), self))
        return self

    def __exit__(self, *error: object) -> None:
        self._swap(self.outer)

    def outer_node(self, tensor: Tensor) -> Node:
        """The node of a tensor in the trace around the function."""
        inner = self._swap(self.outer)
        try:
            return self.recorder.node_of(tensor)
        finally:
            self._swap(inner)

    def capture(self, tensor: Tensor) -> Node:
        """The placeholder of a tensor of the trace around the function."""
        outer = self.outer_node(tensor)
        if outer not in self.captured:
            graph = self.recorder.graph
            last = [n for n in graph.nodes if n.op == "placeholder"][-1:]
            with graph.inserting_after(last[0]) if last else graph.inserting_before():
                self.captured[outer] = graph.placeholder(outer.name)
            self.captured[outer].meta = dict(outer.meta)
        return self.captured[outer]


def subgraph(
    recorder: Recorder, function: Function, operands: Sequence[Any],
    metas: Sequence[tuple[Tensor, ...]] | None = None,
) -> Subgraph:  # fmt: skip
    """Trace a function of operands; `metas` are stand-ins of its inputs, if other than those.

    UntraceableFunction where it gives other than tensors.
    """
    values = [recorder.metas_of(o) for o in operands] if metas is None else metas
    with Nested(recorder) as nested:
        nodes = [recorder.graph.placeholder(nested.outer_node(o).name) for o in operands]
        inputs = [
            recorder.traced(value, node, operand.device)
            for value, node, operand in zip(values, nodes, operands, strict=True)
        ]
        results, spec = tree_flatten(function(*inputs))
        if not all(isinstance(r, Tensor) for r in results):
            raise UntraceableFunction("a function gives other than tensors")
        outputs = [recorder.node_of(r) for r in results]
        if any(recorder.node_of(i) is not n for i, n in zip(inputs, nodes, strict=True)):
            raise UntraceableFunction("a function writes to its inputs")
        return Subgraph(
            recorder.graph, recorder.root, nodes, nested.captured, results, outputs, spec
        )


def _captured(recorder: Recorder, *functions: Subgraph) -> list[Node]:
    """What functions use of the trace around them, by name."""
    nodes = {outer for function in functions for outer in function.captured}
    return sorted(nodes, key=lambda n: n.name)


def _submodule(recorder: Recorder, name: str, module: GraphModule) -> Node:
    """Put a module into the one that is traced, as the first `name_N` that is free."""
    at = 0
    while hasattr(recorder.root, f"{name}_{at}"):
        at += 1
    recorder.root.add_module(f"{name}_{at}", module)
    return _noted(recorder, recorder.graph.create_node("get_attr", f"{name}_{at}"))


def _noted(recorder: Recorder, node: Node) -> Node:
    if recorder.notes_lines:
        node.meta.update({"from": source_line(), "operator": "higher_order"})
    return node


def _results(
    recorder: Recorder, operator: HigherOrderOperator, args: tuple[Any, ...],
    results: Sequence[Tensor], metas: Sequence[tuple[Tensor, ...]],
) -> list[Tensor]:  # fmt: skip
    """Add the operator's node and those of its results."""
    node = recorder.graph.create_node("call_function", operator, args, {}, operator.__name__)
    _noted(recorder, node)
    return [
        recorder.traced(meta, _noted(recorder, recorder.getitem(node, at)), result.device)
        for at, (result, meta) in enumerate(zip(results, metas, strict=True))
    ]


def _names(
    recorder: Recorder, operator: HigherOrderOperator, nodes: Sequence[Node], first: int = 0
) -> list[str]:
    """The names of a function's inputs, numbered from `first` where they have those of none."""
    if operator.__name__ in recorder.named_operands:
        return [node.name for node in nodes]
    names = [recorder.operand_name.format(first + i) for i in range(len(nodes))]
    return ["child" if name == "child_0" else name for name in names]


def _of_flat(function: Function, spec: TreeSpec) -> Function:
    return lambda *leaves: function(*tree_unflatten(leaves, spec))


def _trace_cond(
    recorder: Recorder, pred: Any, true_fn: Function, false_fn: Function,
    operands: Sequence[Any] = (),
) -> Any:  # fmt: skip
    if not isinstance(pred, Tensor | TracedBool):
        return (true_fn if pred else false_fn)(*operands)
    leaves, spec = tree_flatten(tuple(operands))
    test = pred.make() if isinstance(pred, TracedBool) else recorder.node_of(pred)
    nodes = [recorder.node_of(leaf) for leaf in leaves]
    parts = [subgraph(recorder, _of_flat(f, spec), leaves) for f in (true_fn, false_fn)]
    if any(n.op == "placeholder" for part in parts for n in part.outputs):
        raise UntraceableFunction("a branch gives what it is given")
    if str(parts[0].spec) != str(parts[1].spec) or [
        (r.shape, r.dtype) for r in parts[0].results
    ] != [(r.shape, r.dtype) for r in parts[1].results]:
        raise UntraceableFunction("the branches give other results")
    outer = _captured(recorder, *parts)
    names = _names(recorder, COND, [*nodes, *outer])
    modules = [part.module(outer, names, tuple) for part in parts]
    attributes = [
        _submodule(recorder, name, module)
        for name, module in zip(recorder.submodule_names["cond"], modules, strict=True)
    ]
    args = (test, *attributes, (*nodes, *outer))
    first = parts[0]
    metas = [recorder.metas_of(r) for r in first.results]
    return tree_unflatten(_results(recorder, COND, args, first.results, metas), first.spec)


def _run_cond(
    pred: Any, true_fn: Function, false_fn: Function, operands: Sequence[Any] = ()
) -> Any:
    holds = pred.is_meta if isinstance(pred, Tensor) and pred.is_meta else bool(pred)
    return (true_fn if holds else false_fn)(*operands)


def _trace_while(
    recorder: Recorder, cond_fn: Function, body_fn: Function, carried: Sequence[Any],
    additional: Sequence[Any] = (),
) -> Any:  # fmt: skip
    leaves, spec = tree_flatten((*carried, *additional))
    nodes = [recorder.node_of(leaf) for leaf in leaves]
    test = subgraph(recorder, _of_flat(cond_fn, spec), leaves)
    body = subgraph(recorder, _of_flat(body_fn, spec), leaves)
    outer = _captured(recorder, test, body)
    inputs = [*nodes, *outer]
    first = test.module(outer, _names(recorder, WHILE, inputs), lambda r: r[0])
    start = 0 if recorder.operand_name.startswith("arg") else len(inputs)
    second = body.module(outer, _names(recorder, WHILE, inputs, start), tuple)
    if start:  # torch.compile names what a body gives as what it is given
        for result in second.graph.output_node().all_input_nodes:
            result._rename("child")
        second.recompile()
    modules = first, second
    attributes = [
        _submodule(recorder, name, module)
        for name, module in zip(recorder.submodule_names["while_loop"], modules, strict=True)
    ]
    count = len(tree_flatten(tuple(carried))[0])
    args = (*attributes, tuple(nodes[:count]), (*nodes[count:], *outer))
    metas = [recorder.metas_of(r) for r in body.results]
    _, spec = tree_flatten(tuple(carried))
    return tree_unflatten(_results(recorder, WHILE, args, body.results, metas), spec)


def _run_while(
    cond_fn: Function, body_fn: Function, carried: Sequence[Any], additional: Sequence[Any] = ()
) -> tuple[Any, ...]:
    values = tuple(carried)
    while True:
        test = cond_fn(*values, *additional)
        if isinstance(test, Tensor) and test.is_meta:
            return tuple(body_fn(*values, *additional))
        if not bool(test):
            return values
        result = body_fn(*values, *additional)
        values = tuple(result) if isinstance(result, tuple | list) else (result,)


def _slices(recorder: Recorder, leaf: Tensor) -> tuple[Tensor, ...]:
    with outside():
        return tuple(meta.select(0, 0) for meta in recorder.metas_of(leaf))


def _stacked(
    recorder: Recorder, result: Tensor, like: Tensor
) -> tuple[Tensor, ...]:  # fmt: skip
    """Stand-ins of as many results as the first operand has slices."""
    with outside():
        pairs = zip(recorder.metas_of(result), recorder.metas_of(like), strict=True)
        return tuple(m.new_empty((whole.shape[0], *m.shape)) for m, whole in pairs)


def _trace_map(
    recorder: Recorder, function: Function, xs: Sequence[Any], args: Sequence[Any]
) -> Any:
    leaves = [*xs, *args]
    nodes = [recorder.node_of(leaf) for leaf in leaves]
    metas = [*(_slices(recorder, x) for x in xs), *(recorder.metas_of(a) for a in args)]
    body = subgraph(recorder, function, leaves, metas)
    outer = _captured(recorder, body)
    names = _names(recorder, MAP, [*nodes, *outer])
    (name,) = recorder.submodule_names["map"]
    attribute = _submodule(recorder, name, body.module(outer, names, tuple))
    call = (attribute, nodes[: len(xs)], [*nodes[len(xs) :], *outer])
    whole = [_stacked(recorder, r, xs[0]) for r in body.results]
    return tree_unflatten(_results(recorder, MAP, call, body.results, whole), body.spec)


def _run_map(function: Function, xs: Sequence[Any], args: Sequence[Any]) -> Any:
    rows = [function(*(x[i] for x in xs), *args) for i in range(xs[0].shape[0])]
    return _stack(rows)


def _stack(rows: Sequence[Any]) -> Any:
    columns = zip(*(tree_flatten(row)[0] for row in rows), strict=True)
    return tree_unflatten([aten.stack(c, 0) for c in columns], tree_flatten(rows[0])[1])


def _trace_scan(
    recorder: Recorder, function: Function, init: Sequence[Any], xs: Sequence[Any],
    additional: Sequence[Any] = (),
) -> Any:  # fmt: skip
    leaves = [*init, *xs, *additional]
    nodes = [recorder.node_of(leaf) for leaf in leaves]
    metas = [*(recorder.metas_of(i) for i in init), *(_slices(recorder, x) for x in xs),
             *(recorder.metas_of(a) for a in additional)]  # fmt: skip
    body = subgraph(recorder, function, leaves, metas)
    outer = _captured(recorder, body)
    names = _names(recorder, SCAN, [*nodes, *outer])
    (name,) = recorder.submodule_names["scan"]
    attribute = _submodule(recorder, name, body.module(outer, names, list))
    count, end = len(init), len(init) + len(xs)
    call = (attribute, nodes[:count], nodes[count:end], (*nodes[end:], *outer))
    whole = [
        recorder.metas_of(r) if at < count else _stacked(recorder, r, xs[0])
        for at, r in enumerate(body.results)
    ]
    return tuple(_results(recorder, SCAN, call, body.results, whole))


def _run_scan(
    function: Function, init: Sequence[Any], xs: Sequence[Any], additional: Sequence[Any] = ()
) -> tuple[Any, ...]:
    carry, rows = list(init), list[list[Any]]()
    for at in range(xs[0].shape[0]):
        results = list(function(*carry, *(x[at] for x in xs), *additional))
        carry = results[: len(init)]
        rows.append(results[len(init) :])
    return (*carry, *_stack(rows))


COND = HigherOrderOperator("cond", _run_cond, _trace_cond)
WHILE = HigherOrderOperator("while_loop", _run_while, _trace_while)
MAP = HigherOrderOperator("map_impl", _run_map, _trace_map)
SCAN = HigherOrderOperator("scan", _run_scan, _trace_scan)
