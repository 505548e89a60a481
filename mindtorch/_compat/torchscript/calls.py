"""Lowers calls."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from .attributes import Attributes
from .errors import ScriptError
from .forks import lower_fork
from .graph import NotLowered, Place, ScriptValue, constant_of
from .iteration import add_child, iterable, static_length
from .kinds import NONE, STR, TENSOR, ScriptType, list_of
from .matching import Supplied, best_match, call_operator, converted
from .schemas import ScriptArgument, ScriptDeclaration
from .sugar import (
    Cast,
    ClassObject,
    FunctionChoice,
    IgnoredFunction,
    Method,
    ModuleObject,
    NamedTuple,
    OperatorCall,
    Printing,
    Raised,
    Range,
    Returning,
    Simple,
    Special,
    Sugar,
    TensorCast,
    Together,
    TupleOfThings,
)

_MOST = 2**63 - 1
_NONE = TupleOfThings([])  # what a statement gives


class Calls(Attributes):
    """Calls, over attributes."""

    def passed(self, nodes: Sequence[ast.expr]) -> list[Supplied]:
        """The arguments of a call; those with a star are taken apart."""
        result = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                for member in self.members(self.sugar(node.value), None):
                    result.append(Supplied(self.as_value(member), place=self.place(node)))
            else:
                result.append(Supplied(self.value(node), place=self.place(node)))
        return result

    def members(self, sugar: Sugar, count: int | None) -> list[Sugar]:
        """What a tuple consists of; statements have it."""
        raise NotImplementedError

    def call(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        """A call's result."""
        callee = self.sugar(node.func)
        if isinstance(callee, Special):
            return self._special(callee.form, node, hint)
        args = self.passed(node.args)
        kwargs = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise NotLowered("keyword-arg expansion is not supported")
            kwargs[keyword.arg] = Supplied(
                self.value(keyword.value), place=self.place(keyword.value)
            )
        return self.call_sugar(callee, self.place(node.func), args, kwargs)

    def call_sugar(
        self, callee: Sugar, place: Place, args: Sequence[Supplied], kwargs: Mapping[str, Supplied]
    ) -> Sugar:
        """What a call of something gives."""
        graph = self.graph
        match callee:
            case OperatorCall(name=name, self_value=owner, magic=magic):
                if magic and args:
                    method = self.method_of(args[0].here(graph), magic)
                    if method is not None:
                        return self.call_sugar(method, place, args[1:], kwargs)
                return Simple(call_operator(graph, place, name, args, kwargs, owner))
            case Cast(name=name, kind=kind, magic=magic):
                zero = graph.constant(0) if len(args) == 1 else None
                value = args[0].here(graph) if args else None
                if value is not None and (method := self.method_of(value, magic)):
                    return self.call_sugar(method, place, args[1:], kwargs)
                if value is not None and len(args) == 1 and value.kind.is_a(kind):
                    return Simple(value)
                sized = value is not None and value.kind.kind in ("List", "str", "Dict")
                if value is not None and zero is not None and sized and name == "aten::Bool":
                    size = self.operator(place, "aten::len", value)
                    return Simple(self.operator(place, "aten::gt", size, zero))
                return Simple(call_operator(graph, place, name, args, kwargs))
            case TensorCast(dtype=number, value=value):
                options = {
                    "self": Supplied(value),
                    "dtype": Supplied(graph.constant(number, place)),
                }
                return Simple(call_operator(graph, place, "aten::to", [], options))
            case FunctionChoice():
                return self._function(callee, place, args, kwargs)
            case Method(owner=owner, name=name, function=function):
                with_self = [Supplied(owner), *args]
                schemas = [function.schema]
                match_ = best_match(graph, place, name, schemas, with_self, kwargs)
                node = graph.insert(
                    "prim::CallMethod", match_.inputs, match_.returns, place, name=name
                )
                return Simple(node.output)
            case ModuleObject():
                forward = self.attribute(callee, "forward", place)
                return self.call_sugar(forward, place, args, kwargs)
            case ClassObject(type=known):
                fresh = graph.insert("prim::CreateObject", (), (known.kind,), place).output
                start = self.method_of(fresh, "__init__")
                if start is None:
                    raise ScriptError("Class does not have an __init__ function defined")
                self.call_sugar(start, place, args, kwargs)
                return Simple(fresh)
            case NamedTuple(kind=kind, source=source):
                return self._named_tuple(kind, source, place, args, kwargs)
            case Returning(result=result):
                return result
            case Printing():
                graph.insert("prim::Print", [a.here(graph) for a in args], (), place)
                return _NONE
            case Raised():
                return self._raised(callee, place, args)
            case IgnoredFunction():
                return self._ignored(callee, place, args, kwargs)
            case Simple(value=value) if method := self.method_of(value, "__call__"):
                return self.call_sugar(method, place, args, kwargs)
        raise ScriptError(f"cannot call a {type(callee).__name__.lower()}")

    def _function(
        self,
        callee: FunctionChoice,
        place: Place,
        args: Sequence[Supplied],
        kwargs: Mapping[str, Supplied],
    ) -> Sugar:
        candidates = callee.candidates
        graph = self.graph
        if callee.flag:
            names = [a.name for a in candidates[0].schema.arguments]
            index = names.index(callee.flag)
            flag = args[index] if index < len(args) else kwargs.get(callee.flag)
            known = constant_of(flag.here(graph)) if flag else (False,)
            if known is None:
                raise ScriptError("value for boolean dispatch was not constant")
            candidates = [candidates[1 if known[0] else 0]]
        schemas = [c.schema for c in candidates]
        match = best_match(graph, place, schemas[0].name, schemas, args, kwargs)
        options = next(c for c in candidates if c.schema is match.schema)
        function = graph.function(options.name, options)
        inputs = [function, *match.inputs]
        node = graph.insert("prim::CallFunction", inputs, match.returns, place)
        return Simple(node.output)

    def _ignored(
        self,
        callee: IgnoredFunction,
        place: Place,
        args: Sequence[Supplied],
        kwargs: Mapping[str, Supplied],
    ) -> Sugar:
        first = [Supplied(callee.owner)] if callee.owner is not None else []
        schema, graph = callee.schema, self.graph
        match = best_match(graph, place, "", [schema], [*first, *args], kwargs)
        returns = match.returns or [TENSOR]
        if not callee.dropped:
            kind = f"^{schema.name}"
            return Simple(graph.insert(kind, match.inputs, returns, place).output)
        message = graph.constant(
            "This Python function is annotated to be ignored and cannot be run"
        )
        call_operator(graph, place, "prim::RaiseException", [Supplied(message)])
        return Simple(graph.insert("prim::Uninitialized", (), returns).output)

    def _named_tuple(
        self, kind: ScriptType, source: Any, place: Place, args: Sequence[Supplied],
        kwargs: Mapping[str, Supplied],
    ) -> Sugar:  # fmt: skip
        defaults = getattr(source, "_field_defaults", {})
        arguments = [ScriptArgument(f, k) for f, k in zip(kind.fields, kind.args, strict=True)]
        for argument in arguments:
            if argument.name in defaults:
                argument.default = defaults[argument.name]
        schema = ScriptDeclaration(kind.name, "", arguments, [kind])
        match = best_match(self.graph, place, kind.name, [schema], args, kwargs)
        return Simple(
            self.graph.insert("prim::TupleConstruct", match.inputs, (kind,), place).output
        )

    def _raised(self, callee: Raised, place: Place, args: Sequence[Supplied]) -> Sugar:
        graph = self.graph
        if callee.name == "AssertionError":
            message = graph.constant("AssertionError: ", place)
            for each in args:
                text = each.here(graph)
                if not text.kind.is_a(STR):
                    text = self.operator(place, "aten::str", text)
                message = self.operator(place, "aten::add", message, text)
            return Raised(callee.name, message)
        if not args:
            message = graph.constant("", place)
        elif len(args) == 1:
            message = args[0].here(graph)
        else:
            message = self.tuple_of([a.here(graph) for a in args])
        return Raised(callee.name, message, graph.constant(callee.name, place))

    # Forms that look at the text of their arguments.

    def _special(self, form: str, node: ast.Call, hint: ScriptType | None) -> Sugar:
        lower = getattr(self, f"_special_{form}", None)
        if lower is None:
            raise NotLowered(f"{form}() in TorchScript")
        result: Sugar = lower(node, hint)
        return result

    def _special_annotate(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        kind = self.annotation(node.args[0])
        place = self.place(node)
        value = self.value(node.args[1], kind)
        value = converted(self.graph, place, kind, value, True)
        if not value.kind.is_a(kind):
            raise ScriptError(
                f"expected an expression of type {kind.annotation()} but found"
                f" {value.kind.annotation()}\n"
            )
        if kind.kind == "Optional" and value.kind == NONE:
            value = self.graph.constant(None, None, kind)
        return Simple(value)

    def _special_isinstance(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        return Simple(self.is_instance(node.args[0], node.args[1]).value)

    def _special_hasattr(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        return Simple(self.has_attribute(node.args[0], node.args[1]).value)

    def is_instance(self, what: ast.expr, classes: ast.expr) -> Any:
        """`isinstance`; expressions have it."""
        raise NotImplementedError

    def has_attribute(self, what: ast.expr, attribute: ast.expr) -> Any:
        """`hasattr`; expressions have it."""
        raise NotImplementedError

    def _special_getattr(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        owner, name = self.sugar(node.args[0]), node.args[1]
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            raise ScriptError("getattr's second argument must be a string literal")
        return self.attribute(owner, name.value, self.place(node))

    def _special_range(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        values = [g.here(self.graph) for g in self.passed(node.args)]
        return self._range(self.place(node), values)

    def _range(self, place: Place, values: list[ScriptValue], length: int | None = None) -> Range:
        for index, value in enumerate(values):
            if value.kind.kind != "int":
                raise ScriptError(
                    f"all inputs of range must be ints, found {value.kind.annotation()} in"
                    f" argument {index}"
                )
        graph = self.graph
        if not 1 <= len(values) <= 3:
            count = "at least 1 arguments" if not values else "at most 3 arguments"
            raise ScriptError(f"range expected {count}, got {len(values)}")
        if len(values) == 1:
            start, step = graph.constant(0, place), graph.constant(1, place)
            return Range(start, values[0], step, True, length)
        step = values[2] if len(values) == 3 else graph.constant(1, place)
        return Range(values[0], values[1], step, False, length)

    def _special_enumerate(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        place = self.place(node)
        values = []
        if len(node.args) == 2:
            values.append(self.value(node.args[1]))
        elif node.keywords:
            raise NotLowered("enumerate's start by name")
        values.append(self.number(_MOST, place))
        things = iterable(self, place, self.sugar(node.args[0]))
        numbers = self._range(place, values, static_length(things))
        tree = Together()
        add_child(tree, numbers)
        add_child(tree, things)
        return tree

    def _special_zip(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        tree, place = Together(), self.place(node)
        for each in node.args:
            add_child(tree, iterable(self, place, self.sugar(each)))
        return tree

    def _special_list(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        place = self.place(node)
        if not node.args:
            kind = hint if hint is not None and hint.kind == "List" else list_of(TENSOR)
            return Simple(self.graph.insert("prim::ListConstruct", (), (kind,)).output)
        what = self.sugar(node.args[0])
        if isinstance(what, Simple) and what.value.kind.kind in ("List", "str"):
            return Simple(self.operator(place, "aten::list", what.value))
        name, each = self.temporary("$_iter"), self.temporary("$_elem")
        self.set(place, name, what)

        def read(text: str) -> ast.expr:
            return ast.copy_location(ast.Name(text, ast.Load()), node.func)

        loop = ast.comprehension(read(each), read(name), [], 0)
        fresh = ast.copy_location(ast.ListComp(read(each), [loop]), node.func)
        return Simple(self.value(fresh, hint))

    def _special_dict(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        if not node.args and not node.keywords:
            kind = (
                hint
                if hint is not None and hint.kind == "Dict"
                else ScriptType("Dict", (STR, TENSOR))
            )
            return Simple(self.graph.insert("prim::DictConstruct", (), (kind,)).output)
        if len(node.args) == 1 and not node.keywords:
            what = self.sugar(node.args[0])
            if isinstance(what, Simple) and what.value.kind.kind == "Dict":
                return Simple(self.operator(self.place(node), "aten::dict", what.value))
        raise NotLowered("dict() of something else than a dict")

    def _special_tuple(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        members = self.members(self.sugar(node.args[0]), None)
        return Simple(self.tuple_of([self.as_value(m) for m in members]))

    def _special_tolist(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        assert isinstance(node.func, ast.Attribute)
        value = self.value(node.func.value)
        if hint is None:
            raise ScriptError("Expected type hint for result of tolist()")
        return Simple(self.graph.insert("prim::tolist", [value], (hint,)).output)

    def _special_fork(self, node: ast.Call, hint: ScriptType | None) -> Sugar:
        return lower_fork(self, node)
