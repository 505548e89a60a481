"""Owns calls: which declaration takes the arguments of a call, and the steps that convert them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .builtin_text import inlined_schemas, insert_inlined
from .errors import ScriptError
from .graph import Graph, NotLowered, Place, ScriptValue
from .kinds import FLOAT, INT, TENSOR, ScriptType, list_of, optional, without_none
from .schemas import MISSING, ScriptArgument, ScriptDeclaration, operators


@dataclass
class Supplied:
    """An argument of a call: a value, or a constant that becomes one when it is needed."""

    value: ScriptValue | None = None
    constant: Any = None
    place: Place | None = None
    name: str = ""

    def here(self, graph: Graph, kind: ScriptType | None = None) -> ScriptValue:
        """The value; a constant is inserted each time."""
        if self.value is not None:
            return self.value
        constant_kind = kind if isinstance(self.constant, list) else None
        return graph.constant(self.constant, self.place, constant_kind)


@dataclass
class MatchedCall:
    """A declaration with the values that its parameters take, and the types of its results."""

    schema: ScriptDeclaration
    inputs: list[ScriptValue]
    returns: list[ScriptType] = field(default_factory=list)


def bound(formal: ScriptType, actual: ScriptType, known: dict[str, ScriptType]) -> bool:
    """Whether the type variables of `formal` may stand for parts of `actual`; `known` learns."""
    if formal.kind == "Var":
        if formal.name not in known:
            known[formal.name] = actual
            return True
        return actual.is_a(known[formal.name])
    if not any(v.kind == "Var" for v in _parts(formal)):
        return True
    if formal.kind == "Optional":
        if actual.kind == "Optional":
            return bound(formal.args[0], actual.args[0], known)
        return actual.kind == "NoneType" or bound(formal.args[0], actual, known)
    if formal.kind == "List" and actual.kind == "Tuple" and actual.args:
        return all(a == actual.args[0] for a in actual.args) and bound(
            formal.args[0], actual.args[0], known
        )
    same = formal.kind == actual.kind and len(formal.args) == len(actual.args)
    return same and all(bound(f, a, known) for f, a in zip(formal.args, actual.args, strict=True))


def _parts(kind: ScriptType) -> list[ScriptType]:
    return [kind, *(p for a in kind.args for p in _parts(a))]


def filled(kind: ScriptType, known: Mapping[str, ScriptType]) -> ScriptType | None:
    """A type with its variables replaced; None where one is unknown."""
    if kind.kind == "Var":
        return known.get(kind.name)
    if not kind.args:
        return kind
    parts = [filled(a, known) for a in kind.args]
    if parts == list(kind.args):
        return kind
    if any(p is None for p in parts):
        return None
    if kind.kind == "Optional" and parts[0]:
        return optional(parts[0])
    return ScriptType(kind.kind, [p for p in parts if p], kind.name, kind.fields)


def may_be_list(kind: ScriptType, goal: ScriptType) -> bool:
    """Whether a value is a list of that type, or a tuple whose members are all of its members'."""
    if goal.kind != "List":
        return False
    return kind.is_a(goal) or (
        kind.kind == "Tuple" and all(a.is_a(goal.args[0]) for a in kind.args)
    )


def unpacked(graph: Graph, value: ScriptValue) -> list[ScriptValue]:
    """The members of a tuple."""
    if value.node.kind == "prim::TupleConstruct":
        return list(value.node.inputs)
    return list(graph.insert("prim::TupleUnpack", [value], value.kind.args).outputs)


def converted(
    graph: Graph, place: Place | None, goal: ScriptType, value: ScriptValue, numbers: bool
) -> ScriptValue:  # fmt: skip
    """`value`, or steps that bring it nearer to a type; numbers only where that is allowed."""
    if goal.kind == "Optional" and value.kind.kind not in ("Optional", "NoneType"):
        return converted(graph, place, goal.args[0], value, numbers)
    if value.kind.kind == "Tuple":
        inner = without_none(goal)
        if may_be_list(value.kind, inner):
            members = unpacked(graph, value)
            value = graph.insert("prim::ListConstruct", members, [list_of(inner.args[0])]).output
        same = goal.kind == "Tuple" and len(goal.args) == len(value.kind.args)
        if same and not value.kind.is_a(goal):
            members = unpacked(graph, value)
            pairs = zip(goal.args, members, strict=True)
            values = [converted(graph, place, k, v, numbers) for k, v in pairs]
            kind = ScriptType("Tuple", [v.kind for v in values])
            value = graph.insert("prim::TupleConstruct", values, [kind]).output
    if not numbers:
        return value
    if value.kind == TENSOR:
        operator = {"float": "FloatImplicit", "int": "IntImplicit", "Scalar": "ScalarImplicit",
                    "complex": "ComplexImplicit"}.get(goal.kind)  # fmt: skip
    elif value.kind.kind == "Scalar":
        operator = {"float": "Float", "int": "Int", "complex": "Complex"}.get(goal.kind)
    elif value.kind.kind == "bool":
        operator = {"float": "Float", "int": "Int", "Scalar": "Int"}.get(goal.kind)
    else:
        operator = None
    if operator:
        value = call_operator(graph, place, f"aten::{operator}", [Supplied(value)])
    if value.kind.kind == "str" and goal.kind == "Device":
        return call_operator(graph, place, "aten::device", [Supplied(value)])
    return value


def _accepted(
    graph: Graph, place: Place | None, argument: ScriptArgument, passed: Supplied, numbers: bool,
    known: dict[str, ScriptType],
) -> ScriptValue | str:  # fmt: skip
    """The value that a parameter takes, or why it takes none."""
    value = passed.here(graph, without_none(argument.kind))
    inner = without_none(argument.kind)
    if value.kind in (FLOAT, INT) and inner == list_of(value.kind) and argument.length:
        repeated = [value] * argument.length
        value = graph.insert("prim::ListConstruct", repeated, [list_of(value.kind)]).output
    if not bound(argument.kind, value.kind, known):
        return (
            f"Could not match type {value.kind.annotation()} to {argument.kind.annotation()} in"
            f" argument '{argument.name}'"
        )
    concrete = filled(argument.kind, known)
    if concrete is None:
        return (
            f"Type variables in type {argument.kind.annotation()} could not be inferred from actual"
            f" type {value.kind.annotation()}"
        )
    value = converted(graph, place, concrete, value, numbers)
    if not value.kind.is_a(concrete):
        return (
            f"Expected a value of type '{concrete.annotation()}' for argument '{argument.name}' but"
            f" instead found type '{value.kind.annotation()}'."
        )
    return value


def matched(
    graph: Graph, place: Place | None, schema: ScriptDeclaration, args: Sequence[Supplied],
    kwargs: Mapping[str, Supplied], self_value: Supplied | None, numbers: bool,
) -> MatchedCall | str:  # fmt: skip
    """The call as one declaration takes it, or why it does not."""
    if schema.name == "view" and schema.overload == "dtype":
        return "not for programs"
    known: dict[str, ScriptType] = {}
    inputs: list[ScriptValue] = []
    named, used, rest = set(), 0, self_value
    of_aten = "::" not in schema.name and not schema.name.startswith(("torch.", "__torch__"))
    for index, argument in enumerate(schema.arguments):
        alias = "input" if of_aten and argument.name == "self" else argument.name
        if argument.name == "self" and rest is not None:
            passed, rest = rest, None
        elif not argument.keyword and used < len(args):
            last = index + 1 == len(schema.arguments) or schema.arguments[index + 1].keyword
            if numbers and last and argument.kind.kind == "List" and not argument.length:
                actual = args[used].here(graph).kind
                if actual.kind != "List" and not may_be_list(actual, argument.kind) and (
                    argument.kind.args[0].kind != "Var"
                ):  # fmt: skip
                    member = ScriptArgument("<varargs>", argument.kind.args[0])
                    values = []
                    for each in args[used:]:
                        value = _accepted(graph, place, member, each, numbers, known)
                        if isinstance(value, str):
                            return value
                        values.append(value)
                    node = graph.insert("prim::ListConstruct", values, [argument.kind])
                    inputs.append(node.output)
                    used = len(args)
                    continue
            passed = args[used]
            used += 1
        elif argument.name in kwargs or alias in kwargs:
            name = argument.name if argument.name in kwargs else alias
            passed = kwargs[name]
            named.add(name)
        elif argument.default is not MISSING:
            passed = Supplied(constant=argument.default)
        else:
            return f"Argument {argument.name} not provided."
        value = _accepted(graph, place, argument, passed, numbers, known)
        if isinstance(value, str):
            return value
        inputs.append(value)
    if schema.variadic:
        inputs += [a.here(graph) for a in args[used:]]
        used = max(used, len(args))
    if used < len(args):
        return f"Expected at most {used} arguments but found {len(args)} positional arguments."
    for name in kwargs:
        if name not in named:
            return f"Keyword argument {name} unknown."
    returns = [filled(r, known) for r in schema.returns]
    return MatchedCall(schema, inputs, [r for r in returns if r is not None])


def best_match(
    graph: Graph, place: Place | None, name: str, schemas: Sequence[ScriptDeclaration],
    args: Sequence[Supplied], kwargs: Mapping[str, Supplied], self_value: Supplied | None = None,
) -> MatchedCall:  # fmt: skip
    """The first declaration that takes the call as it is, or else with numbers converted."""
    reasons: list[str] = []
    for numbers in (False, True) if len(schemas) > 1 else (True,):
        reasons = []
        for schema in schemas:
            match = matched(graph, place, schema, args, kwargs, self_value, numbers)
            if isinstance(match, MatchedCall):
                return match
            reasons.append(f"\n{schema.text or schema}:\n{match}\n")
    if len(schemas) == 1:
        raise ScriptError(reasons[0])
    listed = "".join(f"  {line}\n" for reason in reasons for line in reason.splitlines())
    raise ScriptError(
        "Arguments for call are not valid.\nThe following variants are available:\n"
        f"{listed}\nThe original call is"
    )


def call_operator(
    graph: Graph, place: Place | None, name: str, args: Sequence[Supplied],
    kwargs: Mapping[str, Supplied] | None = None, self_value: Supplied | None = None,
) -> ScriptValue:  # fmt: skip
    """The result of an operator's call; several results are a tuple."""
    local = operators(name)
    schemas = [*local, *inlined_schemas(name)]
    if not schemas:
        raise NotLowered(f"Unknown builtin op: {name}.")
    match = best_match(graph, place, name, schemas, args, kwargs or {}, self_value)
    if not any(match.schema is s for s in local):
        return insert_inlined(graph, match.schema, match.inputs)
    node = graph.insert(name, match.inputs, match.returns, place, schema=match.schema)
    if len(node.outputs) == 1:
        return node.output
    kind = ScriptType("Tuple", match.returns, fields=match.schema.return_names)
    return graph.insert("prim::TupleConstruct", node.outputs, [kind]).output
