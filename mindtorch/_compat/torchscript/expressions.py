"""Lowers expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from .cleanup import computed
from .errors import FrontendError, ScriptError, UnsupportedNodeError
from .graph import NotLowered, Place, ScriptValue
from .indexing import Indexing
from .kinds import ANY, BOOL, NONE, STR, TENSOR, ScriptType, list_of, unified
from .matching import Supplied
from .scope import Condition, Refinements
from .sugar import OperatorCall, Simple, Sugar

_BINARY = {
    ast.Add: ("add", "__add__"), ast.Sub: ("sub", "__sub__"), ast.Mult: ("mul", "__mul__"),
    ast.Div: ("div", "__truediv__"), ast.Mod: ("remainder", "__mod__"),
    ast.Pow: ("pow", "__pow__"), ast.BitAnd: ("__and__", "__and__"),
    ast.BitOr: ("__or__", "__or__"), ast.BitXor: ("__xor__", "__xor__"),
    ast.LShift: ("__lshift__", "__lshift__"), ast.RShift: ("__rshift__", "__rshift__"),
    ast.FloorDiv: ("floordiv", ""), ast.MatMult: ("matmul", ""),
    ast.Eq: ("eq", "__eq__"), ast.NotEq: ("ne", "__ne__"), ast.Lt: ("lt", "__lt__"),
    ast.LtE: ("le", "__le__"), ast.Gt: ("gt", "__gt__"), ast.GtE: ("ge", "__ge__"),
    ast.In: ("__contains__", "__contains__"), ast.NotIn: ("__contains__", "__contains__"),
    ast.USub: ("neg", "__neg__"), ast.Invert: ("bitwise_not", "__invert__"),
}  # fmt: skip


def _members(kind: ScriptType) -> list[ScriptType]:
    if kind.kind == "Optional":
        return [kind.args[0], NONE]
    return list(kind.args) if kind.kind == "Union" else [kind]


def _together(kinds: Sequence[ScriptType]) -> ScriptType:
    result = kinds[0]
    for kind in kinds[1:]:
        result = unified(result, kind) or ScriptType("Union", (result, kind))
    return result


class Expressions(Indexing):
    """Expressions, over items, calls and attributes."""

    def value(self, node: ast.expr, hint: ScriptType | None = None) -> ScriptValue:
        """An expression's value; `hint` is the type that is expected of it."""
        value = self.as_value(self.sugar(node, hint))
        if hint == ANY and value.kind != ANY:
            return self.graph.insert("prim::unchecked_cast", [value], (ANY,)).output
        return value

    def sugar(self, node: ast.expr, hint: ScriptType | None = None) -> Sugar:
        """What an expression stands for."""
        try:
            return self._sugar(node, hint)
        except (ScriptError, FrontendError) as error:
            error.found_at(self.source, node)
            raise

    def _sugar(self, node: ast.expr, hint: ScriptType | None) -> Sugar:
        match node:
            case ast.Name():
                return self.name(node.id)
            case ast.Attribute():
                return self.attribute(self.sugar(node.value), node.attr, self.place(node))
            case ast.Call():
                return self.call(node, hint)
            case ast.Subscript():
                return self.subscript(node)
        lower = getattr(self, f"_{type(node).__name__.lower()}", None)
        if lower is None:
            raise UnsupportedNodeError(f"{type(node).__name__} aren't supported")
        value: ScriptValue = lower(node, hint)
        return Simple(value)

    # Literals.

    def _constant(self, node: ast.Constant, hint: ScriptType | None) -> ScriptValue:
        value, place = node.value, self.place(node)
        if isinstance(value, int | float | complex) and not isinstance(value, bool):
            return self.number(value, place)
        if value is None or isinstance(value, bool | str):
            return self.graph.constant(value, place)
        raise NotLowered(f"{type(value).__name__} literals")

    def _joinedstr(self, node: ast.JoinedStr, hint: ScriptType | None) -> ScriptValue:
        parts, inner = [], []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                if value.conversion != -1 or value.format_spec is not None:
                    raise NotLowered("Don't support conversion or format specs in JoinedStr")
                inner.append(value.value)
                parts.append("{}")
            elif isinstance(value, ast.Constant):
                parts.append(str(value.value).replace("{", "{{").replace("}", "}}"))
        place = self.place(node)
        text = self.graph.constant("".join(parts), place)
        passed = [Supplied(self.value(i)) for i in inner]
        return self.as_value(
            self.call_sugar(OperatorCall("aten::format", Supplied(text)), place, passed, {})
        )

    def values(self, nodes: Sequence[ast.expr]) -> list[ScriptValue]:
        """Values of expressions, those with a star taken apart."""
        return [g.here(self.graph) for g in self.passed(nodes)]

    def _list(self, node: ast.List, hint: ScriptType | None) -> ScriptValue:
        values = self.values(node.elts)
        inner = TENSOR
        if hint is not None and hint.kind == "Optional":
            hint = hint.args[0]
        if hint is not None and hint.kind == "List":
            inner = hint.args[0]
        elif hint is not None and hint != ANY:
            raise ScriptError(f"Expected a List type hint but instead got {hint.annotation()}")
        elif values:
            inner = values[0].kind
            for value in values[1:]:
                both = unified(inner, value.kind)
                if both is None:
                    both = ScriptType("Union", (inner, value.kind))
                inner = both
        for value in values:
            if not value.kind.is_a(inner):
                raise ScriptError(
                    f"Lists must contain only a single type, expected: {inner.annotation()} but"
                    f" found {value.kind.annotation()} instead.\n"
                )
        return self.graph.insert("prim::ListConstruct", values, (list_of(inner),)).output

    def _tuple(self, node: ast.Tuple, hint: ScriptType | None) -> ScriptValue:
        return self.tuple_of(self.values(node.elts))

    def _dict(self, node: ast.Dict, hint: ScriptType | None) -> ScriptValue:
        pairs: list[ScriptValue] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise NotLowered("a dict taken apart in a dict")
            pairs += [self.value(key), self.value(value)]
        if hint is not None and hint.kind == "Dict":
            kind = hint
        elif not pairs:
            kind = ScriptType("Dict", (STR, TENSOR))
        else:
            kind = ScriptType("Dict", (pairs[0].kind, pairs[1].kind))
        for index, fresh in enumerate(pairs):
            if not fresh.kind.is_a(kind.args[index % 2]):
                what = ("keys", "values")[index % 2]
                raise ScriptError(
                    f"Dict {what} must contain only a single type, expected:"
                    f" {kind.args[index % 2].annotation()} but found"
                    f" {fresh.kind.annotation()} instead.\n"
                )
        return self.graph.insert("prim::DictConstruct", pairs, (kind,)).output

    def _listcomp(
        self, node: ast.ListComp | ast.GeneratorExp, hint: ScriptType | None
    ) -> ScriptValue:
        if len(node.generators) != 1:
            raise NotLowered("Only a single generator is currently supported")
        place = self.place(node)
        result = self.graph.insert("prim::ListConstruct", (), (list_of(TENSOR),)).output
        known = hint is not None and hint.kind == "List"
        if known and hint is not None:
            result.kind = hint

        def add() -> None:
            nonlocal known
            value = self.value(node.elt)
            if not known:
                result.kind, known = list_of(value.kind), True
            self.call_sugar(
                OperatorCall("aten::append", Supplied(result)), place, [Supplied(value)], {}
            )

        self._comprehension(place, node.generators[0], add)
        return result

    _generatorexp = _listcomp

    def _dictcomp(self, node: ast.DictComp, hint: ScriptType | None) -> ScriptValue:
        if len(node.generators) != 1:
            raise NotLowered("Only a single generator is currently supported")
        place = self.place(node)
        kind = ScriptType("Dict", (STR, TENSOR))
        result = self.graph.insert("prim::DictConstruct", (), (kind,)).output
        known = hint is not None and hint.kind == "Dict"
        if known and hint is not None:
            result.kind = hint

        def add() -> None:
            nonlocal known
            key, value = self.value(node.key), self.value(node.value)
            if not known:
                result.kind, known = ScriptType("Dict", (key.kind, value.kind)), True
            self.operator(place, "aten::_set_item", result, key, value)

        self._comprehension(place, node.generators[0], add)
        return result

    def _comprehension(
        self, place: Place, generator: ast.comprehension, add: Callable[[], None]
    ) -> None:
        node = self.graph.insert("prim::ComprehensionScope", (), (), place)
        with self.framed(node.add_block()):
            self.for_comprehension(place, generator, add)

    def for_comprehension(
        self, place: Place, generator: ast.comprehension, body: Callable[[], None]
    ) -> None:
        """The loop of a comprehension; statements have it."""
        raise NotImplementedError

    # Operators.

    def _magic(
        self, name: str, magic: str, place: Place, values: Sequence[ScriptValue]
    ) -> ScriptValue:
        passed = [Supplied(v) for v in values]
        return self.as_value(
            self.call_sugar(OperatorCall(f"aten::{name}", None, magic), place, passed, {})
        )

    def _binop(self, node: ast.BinOp, hint: ScriptType | None) -> ScriptValue:
        name, magic = _BINARY[type(node.op)]
        place = self.place(node)
        if isinstance(node.op, ast.Mod):
            left = self.value(node.left)
            if left.kind == STR:
                values = [self.value(node.left), self.value(node.right)]
                schema = self.schema_of("aten::percentFormat")
                fresh = self.graph.insert(
                    "aten::percentFormat", values, (STR,), place, schema=schema
                )
                return fresh.output
        values = [self.value(node.left), self.value(node.right)]
        return self._magic(name, magic, place, values)

    def _unaryop(self, node: ast.UnaryOp, hint: ScriptType | None) -> ScriptValue:
        if isinstance(node.op, ast.Not):
            return self.condition(node).value
        if isinstance(node.op, ast.UAdd):
            raise NotLowered("unary plus")
        name, magic = _BINARY[type(node.op)]
        value = self._magic(name, magic, self.place(node), [self.value(node.operand)])
        known = computed(value.node) if value.node.kind == f"aten::{name}" else None
        return value if known is None else self.graph.constant(known[0], self.place(node))

    def _compare(self, node: ast.Compare, hint: ScriptType | None) -> ScriptValue:
        if len(node.ops) > 1 or isinstance(node.ops[0], ast.Is | ast.IsNot | ast.NotIn):
            return self.condition(node).value
        name, magic = _BINARY[type(node.ops[0])]
        left, right = self.value(node.left), self.value(node.comparators[0])
        values = [right, left] if isinstance(node.ops[0], ast.In) else [left, right]
        return self._magic(name, magic, self.place(node), values)

    def _boolop(self, node: ast.BoolOp, hint: ScriptType | None) -> ScriptValue:
        return self.condition(node).value

    def _ifexp(self, node: ast.IfExp, hint: ScriptType | None) -> ScriptValue:
        condition = self.condition(node.test)
        if condition.known is not None:
            return self.value(node.body if condition.known else node.orelse, hint)
        return self._choice(
            self.place(node), condition,
            lambda: self.value(node.body, hint), lambda: self.value(node.orelse, hint),
        )  # fmt: skip

    def _choice(
        self, place: Place, condition: Condition,
        true: Callable[[], ScriptValue], false: Callable[[], ScriptValue],
    ) -> ScriptValue:  # fmt: skip
        node = self.graph.insert("prim::If", [condition.value], (), place)
        blocks = node.add_block(), node.add_block()
        refined = condition.refinements, condition.refinements.swapped()
        for block, expression, refinements in zip(blocks, (true, false), refined, strict=True):
            with self.framed(block):
                self.refine(place, refinements.true)
                block.exit.add_input(expression())
        one, other = (b.outputs[0].kind for b in blocks)
        both = unified(one, other)
        if both is None:
            raise ScriptError(
                f"if-expression's true branch has type {one.annotation()} but false branch has"
                f" type {other.annotation()}"
            )
        return node.add_output(both)

    # Conditions.

    def truth(self, value: ScriptValue, place: Place) -> ScriptValue:
        """A value as a bool."""
        try:
            result = self.as_value(self.call_sugar(self.name("bool"), place, [Supplied(value)], {}))
        except ScriptError as error:
            raise ScriptError(
                f"Could not cast value of type {value.kind.annotation()} to bool"
            ) from error
        if not result.kind.is_a(BOOL):
            raise ScriptError(
                f"expected a bool expression for condition but found {result.kind.annotation()}"
            )
        return result

    def condition(self, node: ast.expr) -> Condition:
        """An expression as the condition of an if."""
        match node:
            case ast.BoolOp(op=op, values=values):
                result = self.condition(values[0])
                for each in values[1:]:
                    result = self._logical(self.place(node), result, each, isinstance(op, ast.Or))
                return result
            case ast.UnaryOp(op=ast.Not()):
                return self._negated(self.place(node), self.condition(node.operand))
            case ast.Compare() if len(node.ops) > 1:
                return self._chain(node)
            case ast.Compare(ops=[ast.NotIn()]):
                plain = ast.copy_location(
                    ast.Compare(node.left, [ast.In()], node.comparators), node
                )
                return self._negated(self.place(node), self.condition(plain))
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                return self._is(node)
            case ast.Call(func=ast.Name(id="isinstance"), args=[what, classes]):
                return self.is_instance(what, classes)
            case ast.Call(func=ast.Name(id="hasattr"), args=[what, attribute]):
                return self.has_attribute(what, attribute)
            case ast.Call(func=ast.Attribute(attr="isinstance"), args=[what, classes]):
                self.sugar(node.func)
                return self.is_instance(what, classes)
        if isinstance(node, ast.Call):
            self.sugar(node.func)
        value = self.truth(self.value(node), self.place(node))
        known: bool | None = None
        if value.node.kind == "aten::is_scripting":
            known = True
        elif value.node.kind == "aten::has_torch_function":
            known = False
        elif value.node.kind == "prim::Constant":
            known = bool(value.node.attributes["value"])
        return Condition(value, None, known)

    def _chain(self, node: ast.Compare) -> Condition:
        result: Condition | None = None
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            part = ast.copy_location(ast.Compare(left, [operator], [right]), left)
            if result is None:
                result = self.condition(part)
            else:
                result = self._logical(self.place(node), result, part, False)
            left = right
        assert result is not None
        return result

    def _negated(self, place: Place, condition: Condition) -> Condition:
        value = self.operator(place, "aten::__not__", condition.value)
        known = None if condition.known is None else not condition.known
        return Condition(value, condition.refinements.swapped(), known)

    def _logical(self, place: Place, left: Condition, node: ast.expr, is_or: bool) -> Condition:
        right: list[Condition] = []

        def rest() -> ScriptValue:
            right.append(self.condition(node))
            return right[0].value

        def settled() -> ScriptValue:
            return self.graph.constant(is_or, place)

        value = self._choice(place, left, *((settled, rest) if is_or else (rest, settled)))
        one, other = left.known, right[0].known
        known = None
        if one is is_or or other is is_or:
            known = is_or
        elif one is not None and other is not None:
            known = not is_or
        both = left.refinements.or_ if is_or else left.refinements.and_
        return Condition(value, both(right[0].refinements), known)

    def _is(self, node: ast.Compare) -> Condition:
        positive = isinstance(node.ops[0], ast.Is)
        left, right = self.value(node.left), self.value(node.comparators[0])
        states = [self._none_state(v) for v in (left, right)]
        if states == ["always", "always"]:
            return Condition(self.graph.constant(positive, self.place(node)), None, positive)
        if sorted(states) == ["always", "never"]:
            known = not positive
            return Condition(self.graph.constant(known, self.place(node)), None, known)
        name = "aten::__is__" if positive else "aten::__isnot__"
        value = self.operator(self.place(node), name, left, right)
        return Condition(value, self._none_refinements(node, left, right, positive))

    @staticmethod
    def _none_state(value: ScriptValue) -> str:
        node = value.node
        if node.kind == "prim::Constant" and node.attributes.get("value", 0) is None:
            return "always"
        if value.kind.kind == "NoneType":
            return "always"
        return "maybe" if value.kind.kind in ("Optional", "Any", "Union") else "never"

    @staticmethod
    def _none_refinements(
        node: ast.Compare, left: ScriptValue, right: ScriptValue, positive: bool
    ) -> Refinements:
        name, value, other = node.left, left, node.comparators[0]
        if isinstance(name, ast.Constant) and name.value is None:
            name, value, other = other, right, name
        none = isinstance(other, ast.Constant) and other.value is None
        if not none or not isinstance(name, ast.Name) or value.kind.kind != "Optional":
            return Refinements()
        present = {name.id: value.kind.args[0]}
        return Refinements({}, present) if positive else Refinements(present, {})

    def is_instance(self, what: ast.expr, classes: ast.expr) -> Condition:
        """`isinstance`: settled by types where they say enough."""
        kinds = self._classes(classes)
        value = self.value(what)
        actual = value.kind
        refinements = Refinements()
        if isinstance(what, ast.Name):
            members = _members(actual)
            ones = [m for m in members if any(m.is_a(k) for k in kinds)]
            ones = ones or [k for k in kinds if k.is_a(actual)]
            others = [m for m in members if not any(m.is_a(k) for k in kinds)]
            refinements = Refinements(
                {what.id: _together(ones)} if ones else {},
                {what.id: _together(others)} if others else {},
            )
        place = self.place(what)
        if any(actual.is_a(k) for k in kinds):
            return Condition(self.graph.constant(True, place), refinements, True)
        inner = actual.args[0].kind if actual.kind == "Optional" else actual.kind
        open_ = any(
            k.is_a(actual)
            or (k.kind == "AnyList" and inner in ("List", "Any"))
            or (k.kind == "AnyTuple" and inner in ("Tuple", "Any"))
            for k in kinds
        )
        if not open_:
            return Condition(self.graph.constant(False, place), refinements, False)
        node = self.graph.insert("prim::isinstance", [value], (BOOL,), types=kinds)
        return Condition(node.output, refinements)

    def _classes(self, node: ast.expr) -> list[ScriptType]:
        if isinstance(node, ast.Tuple):
            return [kind for each in node.elts for kind in self._classes(each)]
        return [self.annotation(node)]

    def has_attribute(self, what: ast.expr, attribute: ast.expr) -> Condition:
        """`hasattr`, which types settle."""
        owner = self.sugar(what)
        if not isinstance(attribute, ast.Constant) or not isinstance(attribute.value, str):
            raise ScriptError("hasattr's second argument must be a string literal")
        known = self.owns(owner, attribute.value)
        return Condition(self.graph.constant(known, self.place(what)), None, known)
