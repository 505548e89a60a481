"""Owns tracing below autograd: a dispatch mode that makes a node of each operator's call.

Real tensors go through the function, so that gradients and batches are computed as in a call. A
tensor's node is known by the object, or by its memory and geometry where autograd keeps an alias.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

from .._autograd.grad_mode import LOCAL
from .._dispatch.dispatch_modes import TorchDispatchMode, unseen
from .._tensor.device import device as Device
from .._tensor.tensor import Tensor
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..ops.aten_overloads import call_of_function
from ..ops.namespaces import OpOverload, namespace, written_by
from ..ops.spec import OPS, aten
from ..utils._pytree import tree_flatten, tree_map
from .fake import default_mode, meta_like, plain_tensor_error
from .graph import Graph
from .node import Node
from .passes.shape_prop import _extract_tensor_metadata
from .recorder import Arguments, InnerTrace, Keywords, Naming
from .traceback import has_preserved_node_meta, note_current
from .view_inverses import ViewStep, undo

_VALUE = "_local_scalar_dense"
READS_VALUE = (
    "It appears that you're trying to get value out of a tracing tensor with"
    f" aten.{_VALUE}.default - erroring out! It's likely that this is caused by data-dependent"
    " control flow or similar.  It may be possible to trace this with dynamic shapes; try setting"
    " tracing_mode='symbolic' in your make_fx call."
)


_NONE: Mapping[str, object] = MappingProxyType({})


class DispatchRecorder(Naming, TorchDispatchMode):
    """The graph of what runs inside; tensors that no call made are attributes of `root`.

    Operators of `table` are what its functions call. With `functional`, a write is the operator
    that makes the new value; with `copies` too, a view is a copy. Without `takes_constants` such
    attributes are refused.
    """

    notes_lines = False
    copies = False
    takes_constants = True

    def __init__(
        self, functional: bool = False, table: Mapping[object, Callable[..., object]] | None = None
    ) -> None:
        self.functional, self.table = functional, table or {}
        self.graph, self.root = Graph(), Module()
        self.nested: InnerTrace | None = None
        self._nodes: dict[int, _Known] = {}
        self._places: dict[_Place, _Known] = {}
        self._bases: dict[int, Tensor] = {}  # by memory: what was seen first of it
        self._values: dict[int, Node] = {}  # by memory: what the last write made of that one
        self._writes: Counter[int] = Counter()

    def placeholder(self, name: str, tensor: Tensor) -> Node:
        """An input of the graph."""
        return self._note(tensor, self.graph.placeholder(name))

    def node_of(self, tensor: Tensor) -> Node:
        """The node of a tensor; an attribute where no call made it."""
        known = self._known(tensor)
        if self.nested is not None and (known is None or known.node.graph is not self.graph):
            return self.nested.capture(tensor)
        if known is None:
            return self._constant(tensor)
        if known.writes == self._writes[id(tensor._storage)]:
            return known.node
        return self._again(tensor)

    def _known(self, tensor: Tensor) -> _Known | None:
        return self._nodes.get(id(tensor)) or self._places.get(_place(tensor))

    def _steps(self, tensor: Tensor) -> tuple[ViewStep, ...]:
        """The views by which a tensor is made of the first one that was seen of its memory."""
        if (known := self._known(tensor)) is not None and known.steps is not None:
            return known.steps
        base = self._bases[id(tensor._storage)]
        if _place(base) == _place(tensor):
            return ()
        geom = tensor._geom
        args = (list(geom.shape), list(geom.strides), geom.offset)
        return (ViewStep(namespace("aten").as_strided.default, args, {}, None),)

    def _again(self, tensor: Tensor) -> Node:
        """A tensor's node after writes to its memory by others."""
        steps, node = self._steps(tensor), self._value(tensor)
        for step in steps:
            node = self._view(step, node)
        return self._note(tensor, node, steps)

    def _value(self, tensor: Tensor) -> Node:
        """The node of a tensor's memory, as the first tensor of it that was seen."""
        memory = id(tensor._storage)
        return self._values.get(memory) or self._nodes[id(self._bases[memory])].node

    def _view(self, step: ViewStep, node: Node) -> Node:
        node = self._call(step.function, (node, *step.args), step.kwargs)
        if step.part is None:
            return node
        parts = [self.getitem(node, at) for at in range(step.parts)]
        return parts[step.part]

    def _call(
        self,
        function: OpOverload,
        args: Places,
        kwargs: Mapping[str, object] = MappingProxyType({}),
    ) -> Node:
        label = self.graph._target_to_str(function.overloadpacket.__name__)
        node = self.graph.create_node("call_function", function, args, dict(kwargs), label)
        if has_preserved_node_meta():
            node.meta["original_aten"] = function
            note_current(node)
        return node

    def _write(self, tensor: Tensor, node: Node) -> None:
        """A write to a tensor gave a node: the memory's first tensor has it in its place."""
        memory = id(tensor._storage)
        base, steps = self._bases[memory], self._steps(tensor)
        self._writes[memory] += 1
        if not steps:
            self._values[memory] = node
            self._note(tensor, node, ())
            return
        wholes = [self._value(tensor)]
        for step in steps[:-1]:
            wholes.append(self._view(step, wholes[-1]))
        shapes = self._shapes(base, steps)
        for step, whole, shape in zip(steps[::-1], wholes[::-1], shapes[::-1], strict=True):
            node = undo(self._call, step, whole, shape, node)
        self._values[memory] = node
        self._again(tensor)

    def _shapes(self, base: Tensor, steps: Sequence[ViewStep]) -> list[tuple[int, ...]]:
        """The shapes that each view is made of."""
        shapes, value = list[tuple[int, ...]](), meta_like(base, base.shape)
        for step in steps:
            shapes.append(tuple(value.shape))
            result = unseen(lambda s=step, v=value: s.function(v, *s.args, **s.kwargs))
            value = result if step.part is None else result[step.part]
        return shapes

    def argument(self, value: object) -> object:
        """A node's argument: tensors are nodes."""
        return self.node_of(value) if isinstance(value, Tensor) else value

    def _constant(self, tensor: Tensor) -> Node:
        return self._note(tensor, self.graph.create_node("get_attr", constant(self.root, tensor)))

    def _note(
        self, tensor: Tensor, node: Node, steps: tuple[ViewStep, ...] | None = None,
        writes: int | None = None,
    ) -> Node:  # fmt: skip
        memory = id(tensor._storage)
        known = _Known(tensor, node, self._writes[memory] if writes is None else writes, steps)
        self._bases.setdefault(memory, tensor)
        self._nodes[id(tensor)] = self._places[_place(tensor)] = known
        meta = meta_like(tensor, tensor.shape)
        node.meta["val"] = default_mode().stand_in(meta, tensor.device)
        node.meta["tensor_meta"] = _extract_tensor_metadata(meta)
        return node

    @contextmanager
    def functionalized(self, inputs: object, copies: bool) -> Iterator[None]:
        """Inside, writes are operators; those to the inputs are copied back at the end."""
        before = self.functional, self.copies
        nodes = [(t, self.node_of(t)) for t in tree_flatten(inputs)[0] if isinstance(t, Tensor)]
        self.functional, self.copies = True, copies
        try:
            yield
            self.write_back(nodes)
        finally:
            self.functional, self.copies = before

    def write_back(self, inputs: Sequence[tuple[Tensor, Node]]) -> None:
        """Add the writes to inputs whose nodes are other than those given."""
        for tensor, node in inputs:
            value = self.node_of(tensor)
            if value is not node:
                geom, seen = tensor._geom, node.meta["val"]
                if (geom.shape, geom.strides) != (seen._geom.shape, seen._geom.strides):
                    sizes = list(geom.shape), list(geom.strides)
                    node = self._call(namespace("aten").as_strided_.default, (node, *sizes))
                self._call(namespace("aten").copy_.default, (node, value))

    def __torch_dispatch__(
        self, func: Any, types: object, args: Any = (), kwargs: Any = None
    ) -> object:
        kwargs = kwargs or {}
        if (rule := self.table.get(func)) is not None:
            outer = LOCAL.node, LOCAL.composite
            LOCAL.node, LOCAL.composite = None, False  # rules are Python's
            try:
                with self:
                    result = rule(*args, **kwargs)
            finally:
                LOCAL.node, LOCAL.composite = outer
            if result is not NotImplemented:
                return result
        name = func.overloadpacket.__name__
        if name == _VALUE:
            raise RuntimeError(READS_VALUE)
        if name == "lift_fresh":  # numbers of the program: a constant that each run copies
            func, name = namespace("aten").lift_fresh_copy.default, "lift_fresh_copy"
        elif not self.takes_constants:
            self._refuse_constants(func, args, kwargs)
        write = _value_of_write(func, args, kwargs) if self.functional else None
        if write is not None:
            pure, target, named = write
            if not self._captured(target):
                node_args, node_kwargs = tree_map(self.argument, (tuple(args), named))
                result = func(*args, **kwargs)
                self._write(target, self._call(pure, node_args, node_kwargs))
                return result
        result = func(*args, **kwargs)
        first = args[0] if self.functional and args and not write else None
        if isinstance(first, Tensor) and (parts := _aliases(result, first)):
            self._look(func, args, kwargs, parts, result)
            return result
        node = self._call(func, *tree_map(self.argument, (tuple(args), kwargs)))
        if isinstance(result, Tensor):
            self._note(result, node)
        elif isinstance(result, Sequence):
            values = list[object](result)
            for at, part in enumerate(result):
                item = self.getitem(node, at)
                if isinstance(part, Tensor):
                    values[at] = self._note(part, item).meta["val"]
            node.meta["val"] = tuple(values)
        return result

    def _captured(self, tensor: Tensor) -> bool:
        """Whether the program holds a tensor's memory outside of what is traced."""
        base = self._bases.get(id(tensor._storage))
        return base is None or self._nodes[id(base)].node.op == "get_attr"

    def _look(
        self,
        func: OpOverload,
        args: Arguments,
        kwargs: Keywords,
        parts: Sequence[Tensor],
        result: object,
    ) -> None:
        """Views of a tensor: of what it was when its node was made, until a view is used."""
        whole = args[0]
        if (known := self._known(whole)) is None:
            self._constant(whole)
            known = self._nodes[id(whole)]
        steps, name = self._steps(whole), func.overloadpacket.__name__
        if name[-1] == "_":
            parts = [whole]
            func = getattr(getattr(namespace("aten"), name[:-1]), func._overloadname)
        elif self.copies:
            func = getattr(getattr(namespace("aten"), f"{name}_copy"), func._overloadname)
        node = self._call(func, (known.node, *args[1:]), kwargs)
        for at, part in enumerate(parts):
            place = None if isinstance(result, Tensor) else at
            own = node if place is None else self.getitem(node, at)
            step = ViewStep(func, tuple(args[1:]), kwargs, place, len(parts))
            again = () if part is self._bases[id(whole._storage)] else (*steps, step)
            self._note(part, own, again, known.writes)

    def _refuse_constants(self, func: OpOverload, args: Places, kwargs: Keywords) -> None:
        """AssertionError for tensors of the program among those of the trace."""
        known = {id(t): self._known(t) for t in tree_flatten((args, kwargs))[0]
                 if isinstance(t, Tensor)}  # fmt: skip
        if None in known.values():
            values = tree_map(
                lambda t: k.node.meta["val"] if (k := known.get(id(t))) is not None else t, args
            )
            raise AssertionError(plain_tensor_error(func, values))

    # What operators of functions ask of a trace.

    def metas_of(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """A stand-in of a tensor on the meta device."""
        return (meta_like(tensor, tensor.shape),)

    def traced(self, metas: tuple[Tensor, ...], node: Node, device: Device) -> Tensor:
        """A tensor of a node: zeros, until values are computed."""
        geom = metas[0]._geom
        value: Tensor = unseen(
            lambda: aten.zeros(tuple(geom.shape), dtype=geom.dtype, device=device)
        )
        self._note(value, node)
        return value

    def getitem(self, node: Node, at: int) -> Node:
        """The node of one of several results."""
        return self.graph.call_function(operator.getitem, (node, at))

    def of_functions(self, call: Any, args: Arguments, kwargs: Keywords) -> object:
        """An operator of functions: its node, and what it computes."""
        places = call.trace(self, *args, **kwargs)
        results = unseen(lambda: call.run(*args, **kwargs))
        pairs = zip(tree_flatten(places)[0], tree_flatten(results)[0], strict=True)
        for place, result in pairs:
            self._note(result, self.node_of(place))
        return results


def constant(root: Module, tensor: Tensor) -> str:
    """The name under which a module has a tensor of the program from here on."""
    kind = "_param_constant" if isinstance(tensor, Parameter) else "_tensor_constant"
    name = f"{kind}{sum(n.startswith(kind) for n in (*root._parameters, *root._buffers))}"
    if isinstance(tensor, Parameter):
        root.register_parameter(name, tensor)
    else:
        root.register_buffer(name, tensor)
    return name


def _value_of_write(
    func: OpOverload, args: Arguments, kwargs: Keywords
) -> tuple[OpOverload, Tensor, Keywords] | None:
    """A write as the operator that makes the value, what is written, and the keywords."""
    name = func.overloadpacket.__name__
    if outs := [kwargs[n] for n in written_by(name, func._overloadname) if n in kwargs]:
        call = call_of_function(name, args, {k: v for k, v in kwargs.items() if k != "out"})
        if call is not None and len(outs) == 1:
            return call[0], outs[0], call[2]
    if name[-1] == "_" and name[:-1] in OPS and not OPS[name[:-1]].is_view:
        pure = getattr(getattr(namespace("aten"), name[:-1]), func._overloadname)
        return pure, args[0], dict(kwargs)
    return None


def _aliases(result: object, whole: Tensor) -> Sequence[Tensor]:
    """The results, where they are memory of `whole`; none otherwise."""
    parts = [result] if isinstance(result, Tensor) else result
    if not isinstance(parts, Sequence) or not parts:
        return ()
    part = parts[0]
    return parts if isinstance(part, Tensor) and part._storage is whole._storage else ()


class _Known(NamedTuple):
    """A tensor's node, after how many writes to its memory, and the views that it is made by."""

    tensor: Tensor
    node: Node
    writes: int
    steps: tuple[ViewStep, ...] | None


Places = tuple[object, ...]
_Place = tuple[int, tuple[int, ...], tuple[int, ...], int]


def _place(tensor: Tensor) -> _Place:
    geom = tensor._geom
    return id(tensor._storage), tuple(geom.shape), tuple(geom.strides), geom.offset
