"""Brings a graph of variables to static single assignment.

The emitter leaves a variable's writes and reads as `prim::Store` and `prim::Load`. Ifs and loops
get outputs for what their blocks write, breaks and returns become results of their blocks, and the
stores and loads go.
"""

from __future__ import annotations

from .exits import remove_exits
from .graph import Block, Graph, Node, ScriptValue
from .kinds import ScriptType, unified


def has_meaning(name: str) -> bool:
    """Whether a variable's name is worth keeping: not `_3`, not a temporary's."""
    if not name or name[0] == "$":
        return False
    return name[0] != "_" or (not name[1:].isdigit() and len(name) > 1)


class _Frames:
    """Types of variables by block, the innermost last."""

    def __init__(self) -> None:
        self.frames: list[dict[str, ScriptType]] = []

    def find(self, name: str) -> ScriptType | None:
        """The type of a variable in any frame."""
        return next((f[name] for f in reversed(self.frames) if name in f), None)


def _load_at(block: Block, kind: ScriptType, name: str) -> None:
    graph = block.graph
    with graph.at(block):
        value = graph.insert("prim::Load", (), (kind,), name=name).output
    block.exit.add_input(value)


def _node_output(node: Node, kind: ScriptType, name: str) -> None:
    value = node.add_output(kind)
    if has_meaning(name):
        value.named(name)
    node.graph.create("prim::Store", [value], name=name).place_after(node)


def _add_outputs(block: Block, frames: _Frames) -> dict[str, ScriptType]:
    """Give the ifs and loops of a block outputs for the variables that they write."""
    frames.frames.append({})
    for node in list(block.nodes):
        match node.kind:
            case "prim::Store":
                frames.frames[-1][node.attributes["name"]] = node.inputs[0].kind
            case "prim::If":
                _outputs_of_if(node, frames)
            case "prim::Loop":
                _outputs_of_loop(node, frames)
            case "prim::fork" | "prim::ComprehensionScope":
                _add_outputs(node.blocks[0], frames)
    return frames.frames.pop()


def _outputs_of_if(node: Node, frames: _Frames) -> None:
    first, second = (_add_outputs(b, frames) for b in node.blocks)
    for name in sorted({*first, *second}):
        kinds = [f.get(name) or frames.find(name) for f in (first, second)]
        if kinds[0] is None or kinds[1] is None:
            continue
        both = unified(kinds[0], kinds[1])
        if both is None:
            continue
        _load_at(node.blocks[0], kinds[0], name)
        _load_at(node.blocks[1], kinds[1], name)
        _node_output(node, both, name)
        frames.frames[-1][name] = both


def _outputs_of_loop(node: Node, frames: _Frames) -> None:
    body = node.blocks[0]
    mutated = _add_outputs(body, frames)
    for name in sorted(mutated):
        outer = frames.find(name)
        if outer is None:
            continue
        both = unified(outer, mutated[name]) or outer
        graph = node.graph
        load = graph.create("prim::Load", (), (outer,), name=name).place_before(node)
        node.add_input(load.output)
        value = body.entry.add_output(both)
        if has_meaning(name):
            value.named(name)
        graph.create("prim::Store", [value], name=name).place_after(body.entry)
        _load_at(body, mutated[name], name)
        _node_output(node, both, name)
        frames.frames[-1][name] = both


def _jumps(block: Block, loop: Node | None, false: ScriptValue) -> None:
    """Replace breaks and continues by what the loop's body would give then."""
    graph = block.graph
    for node in list(block.nodes):
        if node.kind == "prim::If":
            for inner in node.blocks:
                _jumps(inner, loop, false)
        elif node.kind == "prim::fork":
            _run_jumps(node.blocks[0])
        elif node.kind == "prim::Loop":
            _jumps(node.blocks[0], node, false)
        elif node.kind in ("prim::ContinueStmt", "prim::BreakStmt"):
            assert loop is not None
            jump = graph.create("prim::LoopContinuation").place_after(node)
            if node.kind == "prim::ContinueStmt":
                jump.add_input(_condition_before(loop, node))
            else:
                jump.add_input(false)
            for result in loop.blocks[0].outputs:
                load = graph.copied(result.node, lambda v: v).place_before(jump)
                jump.add_input(load.output)
            node.destroy()


def _condition_before(loop: Node, node: Node) -> ScriptValue:
    """The loop's condition, computed before a node."""
    header = Block(loop.graph, None)
    header.copy_from(loop.blocks[1], lambda v: v)
    for inner in list(header.nodes):
        inner.place_before(node)
    value = header.outputs[0]
    header.exit.destroy()
    return value


def _run_jumps(block: Block) -> None:
    graph = block.graph
    with graph.at(block.first):
        false = graph.constant(False)
    _jumps(block, None, false)


def _place_conditions(block: Block) -> None:
    """Compute a loop's condition before it and at the end of its body."""
    for node in list(block.nodes):
        for inner in node.blocks:
            _place_conditions(inner)
        if node.kind == "prim::Loop":
            node.add_input(_condition_before(node, node), 1)
            body, header = node.blocks
            for inner_node in list(header.nodes):
                inner_node.place_before(body.exit)
            body.exit.add_input(header.outputs[0], 0)
            header.exit.destroy()
            node.blocks.pop()


def _erase(block: Block, frames: list[dict[str, ScriptValue]]) -> None:
    """Let reads of variables be what was written."""
    frames.append({})
    for node in list(block.nodes):
        if node.kind == "prim::Store":
            frames[-1][node.attributes["name"]] = node.inputs[0]
            node.destroy()
        elif node.kind == "prim::Load":
            name = node.attributes["name"]
            value = next(f[name] for f in reversed(frames) if name in f)
            node.output.replace_with(value)
            node.destroy()
        elif node.kind == "prim::ComprehensionScope":
            _erase(node.blocks[0], frames)
            for inner_node in list(node.blocks[0].nodes):
                inner_node.place_before(node)
            node.destroy()
        else:
            for inner in node.blocks:
                _erase(inner, frames)
    frames.pop()


def to_single_assignment(graph: Graph) -> None:
    """Remove variables, jumps and returns from a graph."""
    _add_outputs(graph.block, _Frames())
    _run_jumps(graph.block)
    _place_conditions(graph.block)
    _erase(graph.block, [])
    remove_exits(graph)
