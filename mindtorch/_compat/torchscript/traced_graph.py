"""Owns graphs of traces: what ran, flat, and the methods of the modules whose calls it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .dead_code import remove_dead_code
from .graph import Graph, Node, Place, ScriptValue
from .kinds import INT, NONE, SCALAR, TENSOR, ScriptType, list_of
from .schemas import ScriptArgument, ScriptDeclaration, operators, parse
from .unit import CLASSES, ClassType, LoweredFunction, unique_name

Path = tuple[str, ...]
_CONVOLUTION = parse(
    "_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[]"
    " dilation, bool transposed, int[] output_padding, int groups, bool benchmark, bool"
    " deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor"
)


class TracedType(ScriptType):
    """The type of a tensor that a trace saw: its shape is in the graph's text alone."""

    def __init__(self, text: str):
        super().__init__("Tensor", name=text)

    def _key(self) -> tuple[object, ...]:
        return TENSOR._key()

    def annotation(self) -> str:
        return "Tensor"


def untraced(kind: ScriptType) -> ScriptType:
    """A type without what a trace saw."""
    if isinstance(kind, TracedType):
        return TENSOR
    return ScriptType(kind.kind, map(untraced, kind.args), kind.name) if kind.args else kind


@dataclass(eq=False)
class ModuleCall:
    """A call of a module in a trace: its path, and the call around it."""

    path: Path
    around: ModuleCall | None
    class_name: str = ""
    method: str = "forward"

    def chain(self) -> list[ModuleCall]:
        """This call and those around it, the innermost first."""
        return [self, *(self.around.chain() if self.around else [])]


def declaration_of(name: str, overload: str) -> ScriptDeclaration | None:
    """The declaration of an operator of aten."""
    if name == "_convolution":
        return _CONVOLUTION
    choices = operators(f"aten::{name}")
    plain_name = "" if overload == "default" else overload
    return next((s for s in choices if s.overload == plain_name), None)


class TracedGraph:
    """The flat graph of a trace, as it grows."""

    def __init__(self, root: ModuleCall | None):
        self.graph, self.root = Graph(), root
        self.current = root
        if root is not None:
            self.graph.block.entry.add_output(ScriptType("Class"))
        self.attributes: dict[Path, ScriptValue] = {}
        self.class_names: dict[Path, str] = {}
        self.place: Place | None = None
        self.calls = False  # whether the module calls others

    def node(
        self, kind: str, inputs: Sequence[ScriptValue], outputs: Sequence[ScriptType],
        place: bool = True, **attributes: Any,
    ) -> Node:  # fmt: skip
        """One more step."""
        where = self.place if place else None
        node = self.graph.insert(kind, inputs, outputs, where, **attributes)
        node.attributes.update(call=self.current, scope=self.scope)
        return node

    @property
    def scope(self) -> str:
        """The path of the module that is called, as a graph's text has it."""
        calls = self.current.chain() if self.current else []
        paths = [".".join(("__module", *c.path)) for c in reversed(calls) if c.path]
        return "/".join(paths)

    def constant(self, value: Any, kind: ScriptType | None = None) -> ScriptValue:
        """A constant."""
        constant = self.graph.constant(value, None if value is None else self.place, kind)
        constant.node.attributes.update(call=self.current, scope=self.scope)
        return constant

    def listed(self, values: Sequence[ScriptValue], kind: ScriptType) -> ScriptValue:
        """A list of values of a type."""
        return self.node("prim::ListConstruct", values, [list_of(kind)], False).output

    def attribute(self, path: Path) -> ScriptValue:
        """A tensor of the traced module."""
        if path not in self.attributes:
            count = self.graph.count
            node = self.graph.create("prim::GetAttr", (), [TENSOR], name=path[-1], path=path)
            block = self.graph.block
            node.place_before(block.first)
            self.attributes[path] = node.output
            self.graph.count = count  # torch has these before it begins
        return self.attributes[path]

    def number(self, value: ScriptValue, step: str = "Int", place: bool = False) -> ScriptValue:
        """A number out of a tensor of one, behind the step that makes it."""
        kind, schema = (INT if step == "Int" else SCALAR), operators(f"aten::{step}")[0]
        node = self.node(f"aten::{step}", [value], [kind], place, schema=schema)
        block = self.graph.block
        if block.after(value.node) is not node:
            node.place_after(value.node)
        return node.output


@dataclass
class _Part:
    """What is in a method: steps, and calls of modules with what they take and give."""

    call: ModuleCall | None
    steps: list[Node | _Part] = field(default_factory=list)

    def nodes(self) -> list[Node]:
        """All steps, those of inner calls too."""
        return [n for s in self.steps for n in (s.nodes() if isinstance(s, _Part) else [s])]


def _parts(trace: TracedGraph) -> _Part:
    top = _Part(trace.root)
    open_parts: list[_Part] = [top]
    for node in trace.graph.block.nodes:
        if "path" in node.attributes:
            continue
        call: ModuleCall | None = node.attributes.get("call") or trace.root
        chain: list[ModuleCall | None] = [*call.chain()] if call else [None]
        while open_parts[-1].call not in chain:
            open_parts.pop()
        for inner in reversed(chain[: chain.index(open_parts[-1].call)]):
            part = _Part(inner)
            open_parts[-1].steps.append(part)
            open_parts.append(part)
        open_parts[-1].steps.append(node)
    return top


class _Methods:
    """Makes methods of the parts of a trace."""

    def __init__(self, trace: TracedGraph, classes: dict[Path, ClassType]):
        self.trace, self.classes = trace, classes
        self.counts: dict[tuple[Path, str], int] = {}
        self.added = 0  # values that torch adds where it makes methods, before their calls

    def class_at(self, call: ModuleCall) -> ClassType:
        """The type of a module, which is its own."""
        if call.path not in self.classes:
            name = unique_name(call.class_name)
            kind = ScriptType("Class", name=name)
            known = ClassType(name, kind, is_module=True)
            self.classes[call.path] = CLASSES[name] = known
        return self.classes[call.path]

    def free(self, part: _Part) -> list[ScriptValue]:
        """What a part takes of the calls around it, in the order of use."""
        nodes = part.nodes()
        inside = {v for n in nodes for v in n.outputs}
        path = part.call.path if part.call else ()
        values = dict.fromkeys(v for n in nodes for v in n.inputs if v not in inside)
        return [
            v for v in values
            if "path" not in v.node.attributes or v.node.attributes["path"][: len(path)] != path
        ]  # fmt: skip

    def results_of(self, part: _Part, results: Sequence[ScriptValue]) -> list[ScriptValue]:
        """What others use of a part, in the order of its steps."""
        nodes = part.nodes()
        inner = set(nodes)
        return [
            v for n in nodes for v in n.outputs
            if v in results or any(u not in inner for u, _ in v.uses)
        ]  # fmt: skip

    def method(
        self, part: _Part, arguments: Sequence[ScriptValue], names: Sequence[str],
        results: Sequence[ScriptValue], name: str,
    ) -> LoweredFunction:  # fmt: skip
        """The method that a part is; the class has it."""
        graph, call = Graph(), part.call
        env: dict[ScriptValue, ScriptValue] = {}
        owners: dict[Path, ScriptValue] = {}
        listed: list[ScriptArgument] = []
        known = self.class_at(call) if call else None
        if call and known:
            owners[call.path] = graph.block.entry.add_output(known.kind)
            owners[call.path].named("self.1" if self.trace.calls else "self")
            listed.append(ScriptArgument("self", known.kind))
        for value, label in zip(arguments, names, strict=True):
            env[value] = graph.block.entry.add_output(value.kind)
            if label:
                env[value].named(label)
            name_of = label or f"argument_{len(listed)}"
            listed.append(ScriptArgument(name_of, untraced(value.kind)))

        def owner(path: Path, kind: ScriptType) -> ScriptValue:
            if path not in owners:
                outer = owner(path[:-1], ScriptType("Class", name=self.name_of(path[:-1])))
                owners[path] = attribute(outer, path, kind)
            return owners[path]

        def attribute(outer: ScriptValue, path: Path, kind: ScriptType) -> ScriptValue:
            self.added += 1
            node = graph.create("prim::GetAttr", [outer], [kind], name=path[-1])
            if outer.node is graph.block.entry:
                node.place_before(graph.block.first)
            else:
                node.place_after(outer.node)
            return node.output.named(f"_{path[-1]}" if path[-1][0].isdigit() else path[-1])

        def here(value: ScriptValue) -> ScriptValue:
            if value not in env:
                if "path" not in value.node.attributes:
                    raise LookupError("a value of no call")
                env[value] = owner(value.node.attributes["path"], value.kind)
            return env[value]

        called: list[ScriptValue] = []
        for step in part.steps:
            if isinstance(step, _Part):
                called += self._call(step, results, graph, env, here, owner)
                continue
            copy = graph.copied(step, here).place_before(graph.block.exit)
            env.update(zip(step.outputs, copy.outputs, strict=True))
            if call is self.trace.root:
                for old, new in zip(step.outputs, copy.outputs, strict=True):
                    new.number = old.number
        for value in results:
            graph.block.exit.add_input(here(value))
        kinds = [v.kind for v in graph.block.outputs]
        returned = kinds[0] if len(kinds) == 1 else ScriptType("Tuple", kinds)
        if len(kinds) > 1:
            node = graph.insert("prim::TupleConstruct", list(graph.block.outputs), [returned])
            graph.block.replace_outputs([node.output])
        last = self.trace.graph.count + self.added if call is self.trace.root else graph.count
        for number, value in enumerate(called, last):
            value.number = number
        schema = ScriptDeclaration(name, "", listed, [untraced(returned) if kinds else NONE])
        qualified = f"{known.qualified}.{name}" if known else name
        function = LoweredFunction(name, qualified, schema, graph)
        if known:
            known.compiled[name] = function
        return function

    def name_of(self, path: Path) -> str:
        """The class of the module at a path."""
        name = self.trace.class_names.get(path, "__torch__.Module")
        return self.class_at(ModuleCall(path, None, name)).qualified

    def _call(
        self, part: _Part, results: Sequence[ScriptValue], graph: Graph,
        env: dict[ScriptValue, ScriptValue], here: Callable[[ScriptValue], ScriptValue],
        owner: Callable[[Path, ScriptType], ScriptValue],
    ) -> list[ScriptValue]:  # fmt: skip
        assert part.call is not None
        arguments, outputs = self.free(part), self.results_of(part, results)
        if not outputs and not part.nodes():
            return []
        self.added += 1 + len(outputs)
        known = self.class_at(part.call)
        count = self.counts.get((part.call.path, "forward"), 0)
        self.counts[part.call.path, "forward"] = count + 1
        name = f"forward{count or ''}"
        target = owner(part.call.path, known.kind)
        passed = [here(v) for v in arguments]
        labels = [v.name.rpartition(".")[0] or v.name for v in passed]
        self.method(part, arguments, labels, outputs, name)
        kinds: list[ScriptType] = [TENSOR for _ in outputs]
        whole = kinds if len(kinds) == 1 else [ScriptType("Tuple", kinds)] if kinds else [NONE]
        node = graph.insert("prim::CallMethod", [target, *passed], whole, name=name)
        values = every = list(node.outputs)
        if len(outputs) > 1:
            values = graph.insert("prim::TupleUnpack", values, kinds).outputs
            every = every + values
        env.update(zip(outputs, values, strict=False))
        return every


def finished(
    trace: TracedGraph, name: str, arguments: Sequence[tuple[str, ScriptValue]],
    result: ScriptValue, classes: dict[Path, ClassType],
) -> LoweredFunction:  # fmt: skip
    """The traced function, or the method of the traced module; its modules' classes have theirs."""
    graph = trace.graph
    graph.block.replace_outputs([result])
    remove_dead_code(graph)
    if trace.root is None:
        kind = graph.block.outputs[0].kind
        listed = [ScriptArgument(n, untraced(v.kind)) for n, v in arguments]
        schema = ScriptDeclaration(name, "", listed, [untraced(kind)])
        return LoweredFunction(name, unique_name(f"__torch__.{name}"), schema, graph)
    methods = _Methods(trace, classes)
    methods.class_at(trace.root)
    values = [v for _, v in arguments]
    return methods.method(_parts(trace), values, [n for n, _ in arguments], [result], name)
