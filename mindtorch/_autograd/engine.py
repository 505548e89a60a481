"""Owns the backward pass: youngest node first, gradients added up before a node sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from heapq import heappop, heappush
from time import perf_counter
from typing import Any, NamedTuple

from .._compat.warn_once import warn_once
from .._tensor.dtype import COMPLEX, FLOAT
from .._tensor.geometry import Geometry
from .._tensor.subclass import DOOR
from .._tensor.tensor import Tensor
from ..ops.spec import OPS, aten
from .anomaly import watched
from .codegen import OpNode, edge
from .grad_mode import LOCAL, MODES
from .node import LEAF, STATE, AccumulateGrad, GradientEdge, Node, added, counter, hooked


class GraphTask(NamedTuple):
    """A backward pass as hooks may ask about it: where it starts and what it is to reach."""

    roots: Sequence[tuple[tuple[Node, int], Any]]
    needed: set[Node] | None
    captured: dict[Node, list[int]]
    watched: bool  # by a mode, or by the class of what it starts with
    # What hooks keep of it and programs ask for: its `number`, the `callbacks` that end it.
    more: dict[object, Any]

    def reached(self) -> set[Node]:
        """The nodes whose gradients this pass computes."""
        seen: set[Node] = set()
        stack = [root[0][0] for root in self.roots]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack.extend(e[0] for e in node.edges if e is not None)
        return seen if self.needed is None else seen & (self.needed | self.captured.keys())


# Set by the modes that see operators: gradients of a row that are one operator in torch.
WHOLE: dict[str, Callable[[Any, Sequence[Any]], Any]] = {}


class PassingStep(Node):
    """A view that torch's graph has between a row and what it was given: one gradient later."""

    def __init__(self, edge: tuple[Node, int], seq: float, grad: Tensor, view: Any):
        self.seq, self.edges, self.saved = seq, (edge,), ()  # type: ignore[assignment]
        self.outs, self._view = (grad._geom,), view

    def apply(self, grads: list[Any]) -> Any:
        return (self._view(grads[0]),)


# By the row: where its gradients go, when a mode sees them on their ways.
STEPS: dict[str, Callable[[Any, Sequence[Any]], Sequence[Any]]] = {}
# And what profilers see of those steps: torch's names of them, by the input that they lead to.
STEP_NAMES: dict[str, dict[int, str]] = {}


def steps() -> bool:
    """Whether a pass goes by torch's own steps: a mode looks on, and no graph of it is wanted."""
    task = LOCAL.task
    watched = MODES.active and LOCAL.dispatches and not LOCAL.grad
    return bool(watched and task is not None and task.watched and task.needed is None)


_CYCLES = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter"
    " and its gradient which can cause a memory leak. We recommend using autograd.grad when"
    " creating the graph to avoid this. If you have to use this function, make sure to reset the"
    " .grad fields of your parameters to None after use to break the cycle and avoid the leak."
)


def run(
    roots: Sequence[tuple[tuple[Node, int], Any]],
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[tuple[Node, int]] | None = None,
    accumulating: bool = True,
) -> list[Any]:
    """Send gradients from `roots` down the graph; returns those that arrived at `inputs`.

    With `inputs`, only nodes on a way to one of them are applied; those themselves too where
    gradients are `accumulating`, and nothing is returned.
    """
    if create_graph and accumulating:
        warn_once(_CYCLES)
    needed_nodes, captured = _nodes_on_path(roots, inputs)
    if needed_nodes is not None and accumulating:
        needed_nodes.update(captured)
        captured = {}
    pending: dict[Node, list[Any]] = {}
    heap: list[tuple[int, Node]] = []
    for (node, number), grad in roots:
        _arrive(pending, heap, node, number, grad)
    before, outer = LOCAL.grad, LOCAL.task
    watched, hooks = False, ()
    if MODES.active:
        watched, hooks = bool(LOCAL.dispatches), LOCAL.pack
    grads = [grad for _, grad in roots if grad.__class__ is not Tensor]
    if roots.__class__ is _ClassRoots:
        grads += roots.tensors
    if grads:
        watched = watched or any(map(DOOR["is_wrapper"], grads))
    task = GraphTask(roots, needed_nodes, captured, watched, {})
    LOCAL.grad, LOCAL.task = create_graph, task
    try:
        with _watching(grads) if grads else _ALONE:
            arrived = _drain(
                pending, heap, keep_graph, needed_nodes, captured, inputs, accumulating
            )
        if task.more:
            for callback in task.more.get("callbacks", ()):  # which may queue others
                callback()
        return arrived
    finally:
        LOCAL.grad, LOCAL.task = before, outer
        if MODES.active:
            LOCAL.pack = hooks


_ALONE: AbstractContextManager[None] = nullcontext()


def _watching(tensors: Sequence[Tensor]) -> AbstractContextManager[None]:
    """Inside, classes with `__torch_dispatch__` among those of `tensors` see what a mode does."""
    wrapped = any(map(DOOR["is_wrapper"], tensors))
    context: AbstractContextManager[None] = DOOR["asking_classes"](0) if wrapped else _ALONE
    return context


def _drain(
    pending: Any, heap: Any, keep_graph: bool, needed_nodes: Any, captured: Any, inputs: Any,
    accumulating: bool,
) -> list[Any]:  # fmt: skip
    kept_grads: dict[tuple[Node, int], Any] = {}
    uses = _uses_of_leaves(heap) if hooked.leaves or MODES.active else None
    while heap:
        node = heappop(heap)[1]
        grads = pending.pop(node, None)
        if grads is None:  # a leaf that went before its place
            continue
        if node.tensor_hooks:
            _run_tensor_hooks(node, grads)
        if captured:
            for number in captured.get(node, ()):
                kept_grads[node, number] = grads[number]
        if needed_nodes is not None and node not in needed_nodes:
            continue
        if node.__class__ is AccumulateGrad:
            if not accumulating:
                continue
            if node.prehooks or node.hooks:
                _step(node, grads, pending, heap, None, None)
            else:
                _applied(node, grads)
            continue
        edges = _step(node, grads, pending, heap, needed_nodes, captured)
        if uses:
            _count_down(_in_torchs_order(node, edges), uses, pending, heap)
        if not keep_graph and node.saved:
            node.free()
    return [kept_grads.get((n, i)) for n, i in inputs or ()]


def _uses_of_leaves(heap: Sequence[tuple[int, Node]]) -> dict[Node, int]:
    """How many edges lead to each leaf: with hooks on leaves, one goes as soon as it is whole."""
    uses: dict[Node, int] = {}
    stack = [node for _, node in heap]
    seen = set(stack)
    while stack:
        for to in stack.pop().edges:
            if to is None:
                continue
            target = to[0]
            if target.__class__ is AccumulateGrad:
                uses[target] = uses.get(target, 0) + 1
            elif target not in seen:
                seen.add(target)
                stack.append(target)
    return uses


def _in_torchs_order(node: Node, edges: Sequence[Any]) -> Sequence[Any]:
    """The edges of a node by when torch's leaves get their gradients: a layer's go over views."""
    if not (isinstance(node, OpNode) and node.op.name == "linear"):
        return edges
    data, weight, *bias = edges
    return (*bias, data, weight) if node.outs[0].ndim == 2 or not bias else (*bias, weight, data)


def _count_down(edges: Any, uses: dict[Node, int], pending: Any, heap: Any) -> None:
    """Put leaves that wait for nobody else at the front."""
    for to in edges:
        if to is not None and to[0] in uses:
            uses[to[0]] -= 1
            if not uses[to[0]] and to[0] in pending:
                heappush(heap, (LEAF + next(counter), to[0]))


def _applied(node: Node, grads: Any) -> Any:
    """What a node makes of gradients; profilers see it as two ranges of torch's names."""
    if MODES.active and LOCAL.dispatches:
        name = node.op.name if isinstance(node, OpNode) else type(node).__name__
        whole = WHOLE.get(name)
        if whole is not None and (results := whole(node, grads)) is not NotImplemented:
            return results
        outer = LOCAL.node, LOCAL.grads
        LOCAL.node, LOCAL.grads = node, grads
        try:
            return node.apply(grads)
        finally:
            LOCAL.node, LOCAL.grads = outer
    if not (MODES.active and LOCAL.profilers):
        return watched(node.apply, node, grads) if STATE.on else node.apply(grads)
    first = isinstance(node, AccumulateGrad) and getattr(node.variable, "grad", 0) is None
    start = perf_counter()
    try:
        return node.apply(grads)
    finally:
        stop = perf_counter()
        for note in LOCAL.profilers:
            for name in ("detach", "aten::detach") if first else ():
                note(name, start, stop)
            _note_node(note, node.name(), start, stop)
            passing = STEP_NAMES.get(node.op.name, {}) if isinstance(node, OpNode) else {}
            for place, name in passing.items():
                if node.edges[place]:
                    _note_node(note, name, stop, perf_counter())


def _note_node(note: Callable[[str, float, float], None], name: str, *times: float) -> None:
    note(name, *times)
    note(f"autograd::engine::evaluate_function: {name}", *times)


def _step(node: Node, grads: Any, pending: Any, heap: Any, needed_nodes: Any, captured: Any) -> Any:
    if node.prehooks:
        for hook in list(node.prehooks.values()):
            changed = hook(tuple(grads))
            if changed is not None:
                grads = list(_all_changed(hook, tuple(grads), changed))
            changed = None  # holds what a leaf may take over
    results = _applied(node, grads)
    if node.hooks:
        results = _run_hooks(node, results, grads)
    edges = node.edges
    if MODES.active and isinstance(node, OpNode) and node.op.name in STEPS and steps():
        edges = STEPS[node.op.name](node, results)
    i = -1
    for to in edges:
        i += 1
        if to is None:
            continue
        grad = results[i]
        if grad is None:
            continue
        target, number = to
        if needed_nodes is not None and target not in needed_nodes and target not in captured:
            continue
        geom = target.outs[number]
        geometry = grad._geom
        if geometry is not geom and (
            geometry.shape != geom.shape or geometry.dtype is not geom.dtype
        ):
            grad = _conform(node, i, grad, geom)
        waiting = pending.get(target)
        if waiting is None:
            if len(target.outs) == 1:
                pending[target] = [grad]
            else:
                pending[target] = waiting = [None] * len(target.outs)
                waiting[number] = grad
            heappush(heap, (-target.seq, target))
        else:
            first = waiting[number]
            waiting[number] = grad if first is None else added(first, grad)
    return edges


def _arrive(pending: Any, heap: Any, node: Node, number: int, grad: Tensor) -> None:
    waiting = pending.get(node)
    if waiting is None:
        pending[node] = waiting = [None] * len(node.outs)
        heappush(heap, (-node.seq, node))
    first = waiting[number]
    waiting[number] = grad if first is None else added(first, grad)


def _conform(node: Node, number: int, grad: Tensor, geom: Geometry) -> Tensor:
    if grad._geom.shape != geom.shape:
        if not _broadcasts(geom.shape, grad._geom.shape):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {number} - got"
                f" {list(grad.shape)} but expected shape compatible with {list(geom.shape)}"
            )
        grad = _summed(grad, geom)
    if grad._geom.dtype is not geom.dtype:
        if geom.dtype.category == FLOAT and grad._geom.dtype.is_complex:
            grad = aten.real(grad)
        grad = aten.to(grad, geom.dtype)
    return grad


def _broadcasts(shape: Sequence[int], to: Sequence[int]) -> bool:
    """Whether `shape` expands to `to`."""
    ends = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(n in (1, wide) for n, wide in ends)


_leading: dict[tuple[Any, Any], tuple[int, ...] | None] = {}


def _summed(grad: Tensor, geom: Geometry) -> Tensor:
    """`grad` summed to the shape that was broadcast to give its own."""
    key = (grad._geom, geom)
    if key not in _leading:
        if len(_leading) > 4096:
            _leading.clear()
        extra = grad._geom.ndim - geom.ndim
        same = extra > 0 and grad._geom.shape[extra:] == geom.shape
        _leading[key] = tuple(range(extra)) if same else None
    dims = _leading[key]
    if dims is None:
        return aten.sum_to_size(grad, geom.shape)
    if MODES.active and LOCAL.dispatches:
        return aten.view(aten.sum(grad, dims, True), geom.shape)
    return aten.sum(grad, dims)


def _run_tensor_hooks(node: Node, grads: list[Any]) -> None:
    for number, table in (node.tensor_hooks or {}).items():
        for hook in list(table.values()):
            changed = hook(grads[number])  # None for one of several that is undefined
            if changed is not None:
                _refuse_change(hook, grads[number], changed)
                grads[number] = changed


def _refuse_change(hook: Any, before: Tensor | None, after: Any) -> None:
    """What torch says of a hook's result that is no tensor, or of another size or dtype."""
    if before is None and after is not None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if after is None:
        return
    if not isinstance(after, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(after).__name__}'")
    assert before is not None
    name = getattr(hook, "__name__", "<unknown>")
    if after.dtype is not before.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was {before.type()} got {after.type()})"
        )
    if after.shape != before.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")


def _all_changed(hook: Any, before: Sequence[Any], after: Any) -> Sequence[Any]:
    """The gradients that a node's hook gives instead; refused as those of a tensor's hook."""
    if not isinstance(after, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(after).__name__}'")
    if len(before) != len(after):
        name = getattr(hook, "__name__", "<unknown>")
        raise RuntimeError(
            f"hook '{name}' has returned an incorrect number of values (got {len(after)}, but"
            f" expected {len(before)})"
        )
    for one, other in zip(before, after, strict=True):
        _refuse_change(hook, one, other)
    return after


def _run_hooks(node: Node, results: Any, grads: Any) -> Any:
    for hook in list((node.hooks or {}).values()):
        changed = hook(tuple(results), tuple(grads))
        if changed is not None:
            results = _all_changed(hook, tuple(results), changed)
    return results


def _nodes_on_path(roots: Any, inputs: Any) -> tuple[set[Node] | None, dict[Node, list[int]]]:
    """Nodes on a way to an input (None: all), and which outputs of which nodes to capture."""
    if inputs is None:
        return None, {}
    captured: dict[Node, list[int]] = {}
    for node, number in inputs:
        captured.setdefault(node, []).append(number)
    seen: set[Node] = set()
    stack = [r[0][0] for r in roots]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        stack.extend(e[0] for e in node.edges if e is not None)
    needed_nodes: set[Node] = set()
    for node in sorted(seen, key=lambda n: n.seq):
        if any(e is not None and (e[0] in captured or e[0] in needed_nodes) for e in node.edges):
            needed_nodes.add(node)
    return needed_nodes, captured


class _ClassRoots(list[Any]):
    """Roots, among them those of tensors of classes that see the pass."""

    def __init__(self, roots: Iterable[Any], tensors: list[Tensor]):
        super().__init__(roots)
        self.tensors = tensors


def root_edges(tensors: Sequence[Tensor], grads: Sequence[Any]) -> list[Any]:
    """Roots for `run`; RuntimeError in torch's words for a tensor or gradient that cannot be."""
    roots: list[Any] = []
    unreached = None
    watching: tuple[Tensor, ...] = ()
    if len(grads) < len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    for i, (tensor, grad) in enumerate(zip(tensors, grads, strict=False)):
        if isinstance(tensor, GradientEdge):
            geom = tensor.node.outs[tensor.output_nr]
            roots.append(((tensor.node, tensor.output_nr), _root_grad(geom, grad, i)))
            continue
        to = edge(tensor)
        if to is None:
            unreached = i if unreached is None else unreached
            if grad is None:
                continue
        roots.append((to, _root_grad(tensor._geom, grad, i, tensor)))
        if tensor.__class__ is not Tensor:
            watching = (*watching, tensor)
    if unreached is not None:
        raise RuntimeError(
            f"element {unreached} of tensors does not require grad and does not have a grad_fn"
        )
    if watching:
        return _ClassRoots(roots, [t for t in watching if DOOR["is_wrapper"](t)])
    return roots


def _root_grad(geom: Geometry, grad: Tensor | None, i: int, tensor: Tensor | None = None) -> Tensor:
    if grad is None:
        if geom.numel != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if geom.dtype.category != FLOAT:
            raise RuntimeError(
                "grad can be implicitly created only for real scalar outputs but got"
                f" {geom.dtype!r}"
            )
        if tensor is not None and (MODES.active or tensor.__class__ is not Tensor):
            with _watching((tensor,)):
                if MODES.active and LOCAL.dispatches:
                    return DOOR["through_mode"]("ones_like", tensor)
        ones = OPS["ones"].entry("aten")
        if MODES.active and LOCAL.profilers:
            arguments = geom.shape, geom.dtype, geom.device
            return DOOR["profiled_function"]("ones_like", ones, arguments, {})
        return ones(geom.shape, geom.dtype, geom.device)
    if not isinstance(grad, Tensor):
        raise TypeError("gradients can be either Tensors or None, but got " + type(grad).__name__)
    if grad.shape != geom.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {grad.shape} and output[{i}] has"
            f" a shape of {geom.shape}."
        )
    if (grad.dtype.category == COMPLEX) != (geom.dtype.category == COMPLEX):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype."
            f" Mismatch in dtype: grad_output[{i}] has a dtype of {grad.dtype} and output[{i}] has"
            f" a dtype of {geom.dtype}."
        )
    return grad
