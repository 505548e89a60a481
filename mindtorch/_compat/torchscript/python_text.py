"""Prints a function's graph as a program of Python, as `.code` shows it.

A result that is used once, unnamed, in the order of evaluation, is written where it is used; lines
that grow beyond 40 letters are split.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .graph import Block, Graph, Node, NotLowered, ScriptValue, constant_of
from .kinds import ScriptType
from .schemas import MISSING, ScriptArgument, ScriptDeclaration, constant_text

_RESERVED_TEXT = (
    "_ as aten attribute CONSTANTS fork getattr inf nan infj nanj ops __torch__ and assert async"
    " await break class continue def del elif else except False finally for from global if import"
    " in is lambda None nonlocal not or pass raise return True try with while yield uninitialized"
    " unchecked_cast"
)
_RESERVED = frozenset(_RESERVED_TEXT.split())
_CALLS = {"aten::Int": "int", "aten::Float": "float", "aten::Bool": "bool", "aten::str": "str",
          "prim::Print": "print", "aten::sorted": "sorted"}  # fmt: skip
_OPERATORS = {"aten::backward": "torch.autograd.backward", "aten::grad": "torch.autograd.grad"}
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_LONG = 40


def _known_by_members(kind: ScriptType) -> bool:
    return kind.kind not in ("Optional", "Union", "Any", "Scalar", "Interface")


def _necessary(schema: ScriptDeclaration, inputs: Sequence[ScriptValue]) -> int:
    """How many arguments a call must write: those at the end that are defaults are left out."""
    count = len(inputs)
    while 0 < count <= len(schema.arguments):
        default, known = schema.arguments[count - 1].default, constant_of(inputs[count - 1])
        if default is MISSING or known is None or type(known[0]) is not type(default):
            break
        if known[0] != default:
            break
        count -= 1
    return count


class PythonText:
    """Prints one function: `constants` grows by the tensors that the text names."""

    def __init__(
        self, name: str, schema: ScriptDeclaration, graph: Graph, typed_self: bool = False
    ):
        self.constants: list[Any] = []
        self.lines: list[str] = []
        self.level = 0
        self.inline: set[Node] = set()
        self.split: dict[Node, int] = {}
        self.used: set[str] = set()
        self.next: dict[str, int] = {}
        self.texts: dict[ScriptValue, str] = {}
        self.names: dict[ScriptValue, str] = {}
        self._head(name, schema, graph, typed_self)
        self._body(graph.block)
        self.text = "\n".join(self.lines) + "\n"

    def _head(self, name: str, schema: ScriptDeclaration, graph: Graph, typed_self: bool) -> None:
        parts = []
        for argument, value in zip(schema.arguments, graph.block.inputs, strict=True):
            local = self._new_name(argument.name)
            bare = (
                argument.kind.kind == "Class" and value is graph.block.inputs[0] and not typed_self
            )
            text = (
                local
                if bare and argument.name == "self"
                else f"{local}: {argument.kind.annotation()}"
            )
            parts.append(text + self._default(argument))
            self.names[value] = local
        returned = schema.returns[0].annotation()
        self.line(f"def {name}(" + ",\n    ".join(parts) + f") -> {returned}:")

    def _default(self, argument: ScriptArgument) -> str:
        value = argument.default
        if value is MISSING:
            return ""
        if argument.length and isinstance(value, int | float):
            value = [value] * argument.length
        return f"={constant_text(value, argument.kind)}"

    def line(self, text: str) -> None:
        """One more line at the present level."""
        self.lines.append("  " * self.level + text)

    def _body(self, block: Block) -> None:
        constants: dict[Node, None] = {}
        self._find_constants(block, constants)
        self._scan_block(block)
        self.level += 1
        for node in constants:
            self._print(node)
        self._print_block(block, bool(block.outputs))
        if block.outputs:
            self.line(f"return {self._list(block.outputs)}")
        self.level -= 1

    def _find_constants(self, block: Block, constants: dict[Node, None]) -> None:
        for node in (*block.nodes, block.exit):
            for value in node.inputs:
                if value.node.kind == "prim::Constant":
                    constants.setdefault(value.node)
            for inner in node.blocks:
                self._find_constants(inner, constants)

    # What is written where it is used.

    def _may_inline(self, value: ScriptValue) -> bool:
        node = value.node
        if len(node.outputs) != 1 or len(value.uses) != 1 or node.blocks:
            return False
        user, index = value.uses[0]
        if value.name and user.kind != "prim::Return":
            return False
        looped = user.kind == "prim::Loop" and index >= 2
        return not looped and user.kind != "prim::fork" and node.kind != "prim::isinstance"

    def _before(self, node: Node) -> Node:
        block = node.block
        assert block is not None
        at = len(block.nodes) if node is block.exit else block.nodes.index(node)
        while at and block.nodes[at - 1].kind == "prim::Constant":
            at -= 1
        return block.nodes[at - 1] if at else block.entry

    def _scan_value(self, point: Node, value: ScriptValue) -> Node:
        node = value.node
        if node is point and self._may_inline(value):
            point = self._scan(point)
            self.inline.add(node)
        elif node.kind == "prim::Constant":
            self.inline.add(node)
        return point

    def _scan(self, node: Node) -> Node:
        if node in self.inline or node.kind == "prim::Param":
            return node
        for block in node.blocks:
            self._scan_block(block)
        point = self._before(node)
        for value in reversed(node.inputs):
            point = self._scan_value(point, value)
        return point

    def _scan_block(self, block: Block) -> None:
        self._scan(block.exit)
        for node in reversed(block.nodes):
            self._scan(node)

    # Names.

    def _new_name(self, goal: str) -> str:
        name = goal
        while name in self.used or name in _RESERVED:
            number = self.next.get(name, 0)
            self.next[name] = number + 1
            name = f"{goal}{number}"
        self.used.add(name)
        return name

    def _name_of(self, value: ScriptValue) -> str:
        base = value.name
        head, dot, end = base.rpartition(".")
        base = head if dot and end.isdigit() else base
        if not base:
            return self._new_name("_")
        base = re.sub(r"[^A-Za-z0-9_]", "_", base)
        return self._new_name(f"_{base}" if base[0].isdigit() else base)

    def _assign_names(self, values: Sequence[ScriptValue]) -> None:
        for value in values:
            self.names[value] = self._name_of(value)

    def _use(self, value: ScriptValue) -> str:
        return self.names[value] if value in self.names else self.texts[value]

    def _list(self, values: Sequence[ScriptValue]) -> str:
        return ", ".join(self._use(v) for v in values)

    # Lines.

    def _is_long(self, text: str) -> bool:
        return len(text) + 2 * self.level >= _LONG

    def _define(self, node: Node, text: str) -> None:
        self._assign_names(node.outputs)
        left = f"{self._list(node.outputs)} = " if node.outputs else ""
        self.line(left + text)

    def _split_long(self, value: ScriptValue) -> None:
        hit: list[ScriptValue] = []
        user, index = value.uses[0]
        self._scan_long(user, index, hit)
        for each in reversed(hit):
            self._define(each.node, self.texts[each])

    def _scan_long(self, user: Node, index: int, hit: list[ScriptValue]) -> None:
        first_time = user not in self.split
        for i in range(index, -1 if first_time else self.split[user], -1):
            value = user.inputs[i]
            if value.node.kind != "prim::Constant" and value.node in self.inline:
                hit.append(value)
        self.split[user] = index
        if first_time and user in self.inline:
            following, at = user.output.uses[0]
            self._scan_long(following, at - 1, hit)

    def _print_block(self, block: Block, more: bool) -> None:
        if not more and not block.nodes:
            self.line("pass")
        for node in block.nodes:
            if node.kind != "prim::Constant":
                self._print(node)

    def _assign(self, left: Sequence[ScriptValue], right: Sequence[ScriptValue]) -> None:
        if left:
            self.line(f"{self._list(left)} = {self._list(right)}")

    def _print(self, node: Node) -> None:
        match node.kind:
            case "prim::If":
                self._print_if(node)
            case "prim::Loop":
                self._print_loop(node)
            case "prim::TupleUnpack" | "prim::ListUnpack":
                self._assign_names(node.outputs)
                left = f"{self._list(node.outputs)}, = " if node.outputs else ""
                self.line(left + self._use(node.inputs[0]))
            case "prim::SetAttr":
                owner, value = (self._use(v) for v in node.inputs)
                self.line(f"{owner}.{node.attributes['name']} = {value}")
            case "prim::fork":
                self._print_fork(node)
            case "prim::Enter":
                entered = f"with {self._use(node.inputs[0])}"
                if node.output.uses:
                    self._assign_names(node.outputs)
                    entered += f" as {self._use(node.output)}"
                self.line(entered + ":")
                self.level += 1
            case "prim::Exit":
                if self._before(node).kind == "prim::Enter":
                    self.line("pass")
                self.level -= 1
            case _:
                self._print_value(node)

    def _print_value(self, node: Node) -> None:
        text = self._expression(node)
        constant = node.kind == "prim::Constant"
        if node not in self.inline or (constant and self._is_long(text)):
            self._define(node, text)
            return
        self.texts[node.output] = text
        if (not constant and self._is_long(text)) or (constant and self._is_long(text)):
            self._split_long(node.output)

    def _print_if(self, node: Node) -> None:
        self._assign_names(node.outputs)
        for word, block in zip(
            (f"if {self._use(node.inputs[0])}", "else"), node.blocks, strict=True
        ):
            self.line(word + ":")
            self.level += 1
            self._print_block(block, bool(node.outputs))
            self._assign(node.outputs, block.outputs)
            self.level -= 1

    def _print_loop(self, node: Node) -> None:
        body = node.blocks[0]
        counted = constant_of(body.outputs[0]) == (True,) and constant_of(node.inputs[1]) == (True,)
        self._assign_names(node.outputs)
        for value, output in zip(body.inputs[1:], node.outputs, strict=True):
            self.names[value] = self._use(output)
        for output, first in zip(node.outputs, node.inputs[2:], strict=True):
            kind = "" if output.kind == first.kind else f": {output.kind.annotation()}"
            self.line(f"{self._use(output)}{kind} = {self._use(first)}")
        self._assign_names(body.inputs[:1])
        index = self._use(body.inputs[0])
        if counted:
            self.line(f"for {index} in range({self._use(node.inputs[0])}):")
        else:
            self.line(f"{index} = {self._use(node.inputs[1])}")
            self.line(f"while {index}:")
        self.level += 1
        changed = body.inputs[int(counted) :]
        self._print_block(body, bool(changed))
        self._assign(changed, body.outputs[int(counted) :])
        self.level -= 1

    def _print_fork(self, node: Node) -> None:
        name = self._new_name("__forked_function")
        self.line(f"def {name}():")
        inner: Graph = node.attributes["subgraph"]
        for value, source in zip(inner.block.inputs, node.inputs, strict=True):
            self.names[value] = self._use(source)
        self._body(inner.block)
        self._define(node, f"fork({name})")

    # Expressions.

    def _constant(self, node: Node) -> str:
        if node.output.kind.kind == "Function":
            return node.output.kind.name
        value, kind = node.attributes["value"], node.output.kind
        text = value if isinstance(value, str) else ""
        if kind.kind == "Tensor" or not text.isascii():
            if not any(value is c for c in self.constants):
                self.constants.append(value)
            at = next(i for i, c in enumerate(self.constants) if value is c)
            return f"CONSTANTS.c{at}"
        if kind.kind == "Device":
            return f'torch.device("{value}")'
        return constant_text(value, kind)

    def _expression(self, node: Node) -> str:
        inputs = node.inputs
        kind = node.outputs[0].kind if node.outputs else ScriptType("NoneType")
        match node.kind:
            case "prim::Constant":
                return self._constant(node)
            case "prim::Uninitialized":
                return f"uninitialized({kind.annotation()})"
            case "aten::ScalarImplicit" | "aten::FloatImplicit" | "aten::IntImplicit":
                return f"annotate({kind.annotation()}, {self._use(inputs[0])})"
            case "aten::__getitem__":
                base = self._use(inputs[0])
                base = base if _IDENTIFIER.fullmatch(base) else f"({base})"
                return f"{base}[{self._use(inputs[1])}]"
            case "prim::TupleConstruct":
                name = kind.annotation() if kind.name else ""
                return f"{name}({self._list(inputs)}{',' if len(inputs) == 1 else ''})"
            case "prim::TupleIndex":
                return f"({self._use(inputs[0])})[{self._use(inputs[1])}]"
            case "prim::TupleSlice":
                bounds = f"{node.attributes['beg']}:{node.attributes['end']}"
                return f"({self._use(inputs[0])})[{bounds}]"
            case "prim::ListConstruct":
                text = f"[{self._list(inputs)}]"
                if inputs and _known_by_members(kind.args[0]):
                    return text
                return f"annotate({kind.annotation()}, {text})"
            case "prim::DictConstruct":
                pairs = zip(inputs[::2], inputs[1::2], strict=True)
                text = ", ".join(f"{self._use(k)}: {self._use(v)}" for k, v in pairs)
                if inputs and all(_known_by_members(a) for a in kind.args):
                    return f"{{{text}}}"
                return f"annotate({kind.annotation()}, {{{text}}})"
            case "prim::CreateObject":
                return f"{kind.annotation()}.__new__({kind.annotation()})"
            case "prim::GetAttr":
                name, owner = node.attributes["name"], self._use(inputs[0])
                if _IDENTIFIER.fullmatch(name):
                    return f"{owner}.{name}"
                return f"getattr({owner}, {constant_text(name)})"
            case "prim::CallFunction":
                passed = "".join(f"{self._use(v)}, " for v in inputs[1:])
                return f"{self._use(inputs[0])}({passed})"
            case "prim::CallMethod":
                passed = "".join(f"{self._use(v)}, " for v in inputs[1:])
                return f"({self._use(inputs[0])}).{node.attributes['name']}({passed})"
            case "prim::unchecked_cast":
                return f"unchecked_cast({kind.annotation()}, {self._use(inputs[0])})"
            case "prim::isinstance":
                kinds = [k.annotation() for k in node.attributes["types"]]
                listed = kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
                return f"isinstance({self._use(inputs[0])}, {listed})"
            case "prim::tolist":
                return f"annotate({kind.annotation()}, {self._use(inputs[0])}.tolist())"
            case "prim::EnumValue" | "prim::EnumName":
                return f"({self._use(inputs[0])}).{node.kind[10:].lower()}"
            case name if name[0] == "^":
                return f"{name}()({self._list(inputs)})"
        return self._call(node)

    def _call(self, node: Node) -> str:
        if node.kind in _CALLS:
            return f"{_CALLS[node.kind]}({self._list(node.inputs)})"
        space, _, bare = node.kind.partition("::")
        name = _OPERATORS.get(node.kind) or (
            f"torch.{bare}" if space == "aten" else f"ops.{space}.{bare}"
        )
        schema = node.attributes.get("schema")
        if schema is None:
            raise NotLowered(f"no declaration of {node.kind}")
        parts = []
        for index, value in enumerate(node.inputs[: _necessary(schema, node.inputs)]):
            argument = schema.arguments[index] if index < len(schema.arguments) else None
            keyword = f"{argument.name}=" if argument and argument.keyword else ""
            parts.append(keyword + self._use(value))
        return f"{name}({', '.join(parts)})"
