"""Owns torch._dynamo.export: a function as the one graph that a compiler would get."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mindtorch._tensor.tensor import Tensor
from mindtorch.fx import Graph, GraphModule, Node
from mindtorch.fx.graph import _PyTreeCodeGen, _PyTreeInfo
from mindtorch.nn.parameter import Parameter
from mindtorch.utils._pytree import tree_flatten

from ..compiler import compile

_DEPRECATED = (
    "export(f, *args, **kwargs) is deprecated, use export(f)(*args, **kwargs) instead.  If you"
    " don't migrate, we may break your export call in the future if your user defined kwargs"
    " conflict with future kwargs added to export(f)."
)


class ExportResult(NamedTuple):
    """A graph, and what it depends on besides its inputs: nothing that is kept."""

    graph_module: GraphModule
    guards: set[object]


def export(f: Callable[..., object], *extra_args: object, **extra_kwargs: object) -> object:
    """What gives the graph of `f` for arguments; Unsupported where that is more than one."""
    if extra_args:
        warnings.warn(_DEPRECATED, FutureWarning, stacklevel=2)
        return _exported(f, extra_args, {})
    return lambda *args, **kwargs: _exported(f, args, kwargs)


def _inputs(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]


def _results(graph: Graph) -> Sequence[Node]:
    values: Any = graph.output_node().args[0]
    return values if isinstance(values, tuple) else (values,)


def _as_attribute(module: GraphModule, node: Node, value: object) -> None:
    """Let an input that is a module's state be read from the graph's module."""
    root, *path = re.split("_modules_|_parameters_|_buffers_", str(node.target)[2:-1])
    name = f"L__{root}___{'_'.join(path)}"
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    elif isinstance(value, Tensor):
        module.register_buffer(name, value)
    first = next(user for user in module.graph.nodes if user in node.users)
    with module.graph.inserting_before(first):
        again = module.graph.get_attr(name)
    again.meta = dict(node.meta)
    node.replace_all_uses_with(again)
    module.graph.erase_node(node)
    again.name = f"l{name[1:]}"


def _exported(
    f: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> ExportResult:
    graphs: list[tuple[GraphModule, Sequence[object]]] = []

    def collect(module: GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
        graphs.append((module, inputs))
        return module.forward

    result = compile(f, backend=collect, fullgraph=True)(*args, **kwargs)
    module, inputs = graphs[0]
    graph, (leaves, in_spec) = module.graph, tree_flatten((args, kwargs))
    places = {id(leaf): at for at, leaf in enumerate(leaves)}
    used = {places[id(t)]: node for t, node in zip(inputs, _inputs(graph), strict=True)
            if id(t) in places}  # fmt: skip
    state = [t for t in inputs if id(t) not in places]
    first, nodes = next(n for n in graph.nodes if n.op != "placeholder"), list[Node]()
    for at in range(len(leaves)):
        with graph.inserting_before(first):
            again = graph.placeholder(f"arg{at}")
        if (node := used.get(at)) is not None:
            node.replace_all_uses_with(again)
            again.meta, name = dict(node.meta), node.name
            graph.erase_node(node)
            again.name = name
        nodes.append(again)
    for node, value in zip(_inputs(graph)[: len(state)], state, strict=True):
        _as_attribute(module, node, value)
    rest = iter(_results(graph))
    results, out_spec = tree_flatten(result)
    graph.output_node().args = (
        [nodes[places[id(r)]] if id(r) in places else next(rest) for r in results],
    )
    names = list(inspect.signature(f).parameters)[: len(args)]
    graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo([*names, *kwargs], in_spec, out_spec)))
    return ExportResult(GraphModule(module, graph), set())
