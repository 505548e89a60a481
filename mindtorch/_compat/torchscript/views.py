"""Owns what a program may ask of a lowered function: its graph, node by node, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mindtorch.nn.modules.module import Module

from .folding import folded
from .graph import Block, Graph, Node, NotLowered, ScriptValue
from .graph_text import GraphText
from .inlining import inlined
from .kinds import TENSOR, ScriptType
from .python_text import PythonText
from .unit import LoweredFunction


class ValueView:
    """A value of a graph."""

    def __init__(self, value: ScriptValue):
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueView) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)

    def debugName(self) -> str:  # noqa: N802 - torch's name
        """The name, or the number."""
        return self._value.text

    def unique(self) -> int:
        """The number."""
        return self._value.number

    def type(self) -> KindView:
        """The type."""
        return KindView(self._value.kind)

    def node(self) -> NodeView:
        """The node that gives it."""
        return NodeView(self._value.node)

    def uses(self) -> list[NodeView]:
        """The nodes that take it."""
        return [NodeView(n) for n, _ in self._value.uses]

    def toIValue(self) -> Any:  # noqa: N802 - torch's name
        """What a constant holds; None for other values."""
        return self._value.node.attributes.get("value")

    def __repr__(self) -> str:
        node = "\n".join(GraphText.of_node(self._value.node))
        return f"{self._value.text} defined in ({node})"


class KindView:
    """A type."""

    def __init__(self, kind: ScriptType):
        self._kind = kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KindView) and other._kind == self._kind

    def __hash__(self) -> int:
        return hash(self._kind)

    def kind(self) -> str:
        """The name of the kind of type."""
        return {"NoneType": "NoneType", "Device": "DeviceObjType", "Scalar": "NumberType",
                "str": "StringType"}.get(
            self._kind.kind, f"{self._kind.kind[:1].upper()}{self._kind.kind[1:]}Type"
        )  # fmt: skip

    @property
    def annotation_str(self) -> str:
        """The type as a program annotates it."""
        return self._kind.annotation()

    def __repr__(self) -> str:
        return self._kind.annotation()

    def str(self) -> Any:
        """The type as a graph shows it, a text."""
        return f"{self._kind}"


class NodeView:
    """A node of a graph."""

    def __init__(self, node: Node):
        self._node = node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeView) and other._node is self._node

    def __hash__(self) -> int:
        return id(self._node)

    def kind(self) -> str:
        """The operator, `aten::add`."""
        return self._node.kind

    def inputs(self) -> Iterator[ValueView]:
        """What it takes."""
        return iter([ValueView(v) for v in self._node.inputs])

    def outputs(self) -> Iterator[ValueView]:
        """What it gives."""
        return iter([ValueView(v) for v in self._node.outputs])

    def inputsSize(self) -> int:  # noqa: N802 - torch's name
        """How many values it takes."""
        return len(self._node.inputs)

    def outputsSize(self) -> int:  # noqa: N802 - torch's name
        """How many values it gives."""
        return len(self._node.outputs)

    def input(self) -> ValueView:
        """Its only input."""
        return self.inputsAt(0)

    def output(self) -> ValueView:
        """Its only output."""
        return self.outputsAt(0)

    def inputsAt(self, index: int) -> ValueView:  # noqa: N802 - torch's name
        """One input."""
        return ValueView(self._node.inputs[index])

    def outputsAt(self, index: int) -> ValueView:  # noqa: N802 - torch's name
        """One output."""
        return ValueView(self._node.outputs[index])

    def blocks(self) -> Iterator[BlockView]:
        """The blocks that it runs."""
        return iter([BlockView(b) for b in self._node.blocks])

    def _shown(self) -> dict[str, Any]:
        node = self._node
        keys = ("name", "value", "types") if node.kind != "prim::Constant" else ("value", "name")
        hit = {k: node.attributes[k] for k in keys if k in node.attributes}
        return {} if hit.get("value", 0) is None else hit

    def attributeNames(self) -> list[str]:  # noqa: N802 - torch's name
        """The names of its attributes."""
        return list(self._shown())

    def hasAttribute(self, name: str) -> bool:  # noqa: N802 - torch's name
        """Whether it has an attribute."""
        return name in self._shown()

    def _attribute(self, name: str) -> Any:
        if name not in self._shown():
            raise IndexError(f"required keyword attribute '{name}' is undefined")
        return self._shown()[name]

    s = i = f = t = ival = _attribute

    def scopeName(self) -> str:  # noqa: N802 - torch's name
        """The modules around it, of a traced graph."""
        return str(self._node.attributes.get("scope", ""))

    def sourceRange(self) -> str:  # noqa: N802 - torch's name
        """Where its text begins."""
        return "{}:{}:{}".format(*self._node.place) if self._node.place else ""

    def schema(self) -> str:
        """The operator's declaration; RuntimeError for nodes without one."""
        schema = self._node.attributes.get("schema")
        if schema is None:
            return "(no schema)"
        full = schema.name if "::" in schema.name else f"aten::{schema.name}"
        return str(schema).replace(
            schema.name, full + f".{schema.overload}" * bool(schema.overload), 1
        )

    def findNode(self, kind: str) -> NodeView | None:  # noqa: N802 - torch's name
        """The first node of a kind in its blocks."""
        return next((NodeView(n) for n in self._node.walk() if n.kind == kind), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[NodeView]:  # noqa: N802
        """The nodes of a kind in its blocks."""
        return [NodeView(n) for n in self._node.walk() if n.kind == kind]

    def __repr__(self) -> str:
        return "\n".join(GraphText.of_node(self._node)) + "\n"


class BlockView:
    """A block of a graph."""

    def __init__(self, block: Block):
        self._block = block

    def nodes(self) -> Iterator[NodeView]:
        """The nodes, in order."""
        return iter([NodeView(n) for n in self._block.nodes])

    def inputs(self) -> Iterator[ValueView]:
        """The parameters."""
        return iter([ValueView(v) for v in self._block.inputs])

    def outputs(self) -> Iterator[ValueView]:
        """The results."""
        return iter([ValueView(v) for v in self._block.outputs])

    def paramNode(self) -> NodeView:  # noqa: N802 - torch's name
        """The node that gives the parameters."""
        return NodeView(self._block.entry)

    def returnNode(self) -> NodeView:  # noqa: N802 - torch's name
        """The node that takes the results."""
        return NodeView(self._block.exit)

    def findNode(self, kind: str, recurse: bool = True) -> NodeView | None:  # noqa: N802
        """The first node of a kind."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[NodeView]:  # noqa: N802
        """The nodes of a kind, those of inner blocks with them."""
        hit = []
        for node in self._block.nodes:
            every = [node, *node.walk()] if recurse else [node]
            hit += [NodeView(n) for n in every if n.kind == kind]
        return hit


class GraphView(BlockView):
    """A graph."""

    __module__, __qualname__ = "torch._C", "Graph"

    def __init__(self, graph: Graph):
        super().__init__(graph.block)
        self._graph = graph

    def copy(self) -> GraphView:
        """A graph with the same nodes, numbered anew."""
        new = Graph()
        new.block.copy_from(self._graph.block, lambda v: v)
        return GraphView(new)

    def param_node(self) -> NodeView:
        """The node that gives the parameters."""
        return self.paramNode()

    def return_node(self) -> NodeView:
        """The node that takes the results."""
        return self.returnNode()

    def __str__(self) -> str:
        return GraphText(self._graph).text

    __repr__ = __str__


class ConstMap:
    """The tensors that a text names: `c0`, `c1`."""

    def __init__(self, constants: list[Any]):
        self.const_mapping = {f"c{i}": v for i, v in enumerate(constants)}

    def __getattr__(self, name: str) -> Any:
        return self.const_mapping[name]


ConstMap.__module__ = "torch.jit._script"


def _graph(function: LoweredFunction) -> Graph:
    if function.graph is None:
        raise NotLowered(f"{function.qualified}: its text is torch's own")
    return function.graph


def code_with_constants_of(function: LoweredFunction) -> tuple[str, ConstMap]:
    """A function's text, and the tensors that it names."""
    if function.text is not None:
        return function.text[0], ConstMap(function.text[1])
    text = PythonText(function.name, function.schema, _graph(function))
    return text.text, ConstMap(text.constants)


def code_of(function: LoweredFunction) -> str:
    """A function's text."""
    return code_with_constants_of(function)[0]


def graph_of(function: LoweredFunction) -> GraphView:
    """A function's graph."""
    return GraphView(_graph(function))


def folded_graph_of(function: LoweredFunction, module: Module) -> GraphView:
    """The graph of a frozen module's method."""
    return GraphView(folded(_graph(function), module))


def inlined_graph_of(function: LoweredFunction) -> GraphView:
    """A function's graph, with those that it calls put in."""
    return GraphView(inlined(_graph(function)))


def canonical_graph_of(function: LoweredFunction) -> GraphView:
    """The inlined graph without what a trace saw of tensors, numbered from its start."""
    graph = inlined(_graph(function))
    nodes = [graph.block.entry, *(n for top in graph.block.nodes for n in (top, *top.walk()))]
    for number, value in enumerate(v for n in nodes for v in n.outputs):
        value.number = number
        value.kind = TENSOR if value.kind.kind == "Tensor" else value.kind
    return GraphView(graph)


def saved(function: LoweredFunction) -> LoweredFunction:
    """A function with its text in place of its graph, which files can hold."""
    text, constants = code_with_constants_of(function)
    listed = list(constants.const_mapping.values())
    return LoweredFunction(function.name, function.qualified, function.schema, text=(text, listed))
