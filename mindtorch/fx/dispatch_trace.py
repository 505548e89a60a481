"""Owns tracing below autograd: a dispatch mode that makes a node of each operator's call.

Real tensors go through the function, so that gradients and batches are computed as in a call. A
tensor's node is known by the object, or by its memory and geometry where autograd keeps an alias.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._dispatch.dispatch_modes import TorchDispatchMode
from .._tensor.tensor import Tensor
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..ops.namespaces import namespace
from ..ops.spec import OPS
from ..utils._pytree import tree_map
from .fake import default_mode, meta_like
from .graph import Graph
from .node import Node
from .passes.shape_prop import _extract_tensor_metadata

_VALUE = "_local_scalar_dense"
READS_VALUE = (
    "It appears that you're trying to get value out of a tracing tensor with"
    f" aten.{_VALUE}.default - erroring out! It's likely that this is caused by data-dependent"
    " control flow or similar.  It may be possible to trace this with dynamic shapes; try setting"
    " tracing_mode='symbolic' in your make_fx call."
)


class DispatchRecorder(TorchDispatchMode):
    """The graph of what runs inside; tensors that no call made are attributes of `root`.

    With `functional`, a write is the operator that makes the new value.
    """

    def __init__(self, functional: bool = False) -> None:
        self.functional = functional
        self.graph, self.root = Graph(), Module()
        self._nodes: dict[int, _Known] = {}
        self._places: dict[_Place, _Known] = {}
        self._bases: dict[int, Tensor] = {}  # by memory: what was seen first of it
        self._writes: Counter[int] = Counter()

    def placeholder(self, name: str, tensor: Tensor) -> Node:
        """An input of the graph."""
        return self._note(tensor, self.graph.placeholder(name))

    def node_of(self, tensor: Tensor) -> Node:
        """The node of a tensor; an attribute where no call made it."""
        known = self._nodes.get(id(tensor)) or self._places.get(_place(tensor))
        if known is None:
            return self._constant(tensor)
        if known.writes == self._writes[id(tensor._storage)]:
            return known.node
        base = self._bases[id(tensor._storage)]
        if _place(base) == _place(tensor):
            return self.node_of(base)
        view = namespace("aten").as_strided.default
        return self._note(
            tensor, self.graph.call_function(view, (self.node_of(base), *_sizes(tensor)))
        )

    def _write(self, tensor: Tensor, node: Node) -> None:
        """A write to a tensor gave a node: the memory's first tensor has it in its place."""
        memory = id(tensor._storage)
        base = self._bases[memory]
        if _place(base) != _place(tensor):
            before = self.node_of(base)
            scatter = namespace("aten").as_strided_scatter.default
            self._writes[memory] += 1
            self._note(base, self.graph.call_function(scatter, (before, node, *_sizes(tensor))))
        else:
            self._writes[memory] += 1
            self._note(base, node)
        self._note(tensor, node)

    def argument(self, value: object) -> object:
        """A node's argument: tensors are nodes."""
        return self.node_of(value) if isinstance(value, Tensor) else value

    def _constant(self, tensor: Tensor) -> Node:
        parameter = isinstance(tensor, Parameter)
        kind = "_param_constant" if parameter else "_tensor_constant"
        at = sum(n.startswith(kind) for n in (*self.root._parameters, *self.root._buffers))
        if isinstance(tensor, Parameter):
            self.root.register_parameter(f"{kind}{at}", tensor)
        else:
            self.root.register_buffer(f"{kind}{at}", tensor)
        return self._note(tensor, self.graph.create_node("get_attr", f"{kind}{at}"))

    def _note(self, tensor: Tensor, node: Node) -> Node:
        memory = id(tensor._storage)
        known = _Known(tensor, node, self._writes[memory])
        self._bases.setdefault(memory, tensor)
        self._nodes[id(tensor)] = self._places[_place(tensor)] = known
        meta = meta_like(tensor, tensor.shape)
        node.meta["val"] = default_mode().stand_in(meta, tensor.device)
        node.meta["tensor_meta"] = _extract_tensor_metadata(meta)
        return node

    def __torch_dispatch__(
        self, func: Any, types: object, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if name == _VALUE:
            raise RuntimeError(READS_VALUE)
        if name == "lift_fresh":  # numbers of the program: a constant that each run copies
            func, name = namespace("aten").lift_fresh_copy.default, "lift_fresh_copy"
        node_args, node_kwargs = tree_map(self.argument, (tuple(args), kwargs or {}))
        result = func(*args, **(kwargs or {}))
        writes = self.functional and name[-1] == "_" and name[:-1] in OPS
        if writes:
            name = name[:-1]
            func = getattr(getattr(namespace("aten"), name), func._overloadname)
        label = self.graph._target_to_str(name)
        node = self.graph.create_node("call_function", func, node_args, node_kwargs, label)
        if writes:
            self._write(args[0], node)
        elif isinstance(result, Tensor):
            self._note(result, node)
        elif isinstance(result, Sequence):
            for at, part in enumerate(result):
                if isinstance(part, Tensor):
                    self._note(part, self.graph.call_function(operator.getitem, (node, at)))
        return result


class _Known(NamedTuple):
    """A tensor's node, after how many writes to its memory."""

    tensor: Tensor
    node: Node
    writes: int


_Place = tuple[int, tuple[int, ...], tuple[int, ...], int]


def _sizes(tensor: Tensor) -> tuple[list[int], list[int], int]:
    geom = tensor._geom
    return list(geom.shape), list(geom.strides), geom.offset


def _place(tensor: Tensor) -> _Place:
    geom = tensor._geom
    return id(tensor._storage), tuple(geom.shape), tuple(geom.strides), geom.offset
