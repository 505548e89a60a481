"""Owns what a loop can run over, and its length and elements."""

from __future__ import annotations

from .errors import ScriptError
from .graph import Place, ScriptValue
from .kinds import INT, TENSOR, list_of
from .matching import unpacked
from .scope import Lowering
from .sugar import ModuleObject, Range, Simple, Sugar, Together, TupleOfThings


def iterable(scope: Lowering, place: Place, sugar: Sugar) -> Sugar:
    """What a loop over something runs over: of a dict its keys, of a tuple its members."""
    if isinstance(sugar, Simple):
        value = sugar.value
        if value.kind == TENSOR or value.kind.kind in ("List", "str"):
            return sugar
        if value.kind.kind == "Dict":
            return Simple(scope.operator(place, "aten::keys", value))
        if value.kind.kind == "Tuple":
            return TupleOfThings([Simple(v) for v in unpacked(scope.graph, value)])
        raise ScriptError(f"'{value.kind.annotation()}' object is not iterable")
    if isinstance(sugar, ModuleObject) and sugar.type.source.__name__ == "ParameterList":
        kinds = {n: k for n, k in sugar.type.attributes.items() if n.isdigit()}
        values = [scope.get_attribute(sugar.value, n, k) for n, k in kinds.items()]
        return TupleOfThings([Simple(v) for v in values])
    if isinstance(sugar, ModuleObject):
        return TupleOfThings(scope.submodules(sugar)[1])
    if isinstance(sugar, Range | Together | TupleOfThings):
        return sugar
    raise ScriptError("this cannot be iterated over")


def static_length(sugar: Sugar) -> int | None:
    """How many elements there are, where the program says so."""
    if isinstance(sugar, TupleOfThings):
        return len(sugar.members)
    return sugar.length if isinstance(sugar, Range | Together) else None


def is_unrolled(sugar: Sugar) -> bool:
    """Whether a loop is written out."""
    return isinstance(sugar, TupleOfThings | Together) and static_length(sugar) is not None


def _leaves(sugar: Sugar) -> list[Sugar]:
    if isinstance(sugar, Together):
        return [leaf for child in sugar.children for leaf in _leaves(child)]
    return [sugar]


def length(scope: Lowering, place: Place, sugar: Sugar) -> ScriptValue:
    """How often a loop runs."""
    if isinstance(sugar, Range):
        if sugar.length is not None:
            return scope.graph.constant(sugar.length, place)
        if sugar.only_end:
            return sugar.end
        name = "aten::__range_length"
        return scope.operator(place, name, sugar.start, sugar.end, sugar.step)
    if isinstance(sugar, Together):
        lengths = [length(scope, place, leaf) for leaf in _leaves(sugar)]
        listed = scope.graph.insert("prim::ListConstruct", lengths, (list_of(INT),)).output
        return scope.operator(place, "prim::min", listed)
    return scope.operator(place, "aten::len", scope.as_value(sugar))


def element(
    scope: Lowering, place: Place, sugar: Sugar, index: ScriptValue, number: int | None
) -> Sugar:
    """The element at an index, whose number is known where the loop is written out."""
    if isinstance(sugar, TupleOfThings):
        assert number is not None
        return sugar.members[number]
    if isinstance(sugar, Together):
        return TupleOfThings([element(scope, place, c, index, number) for c in sugar.children])
    if isinstance(sugar, Range):
        if sugar.only_end:
            return Simple(index)
        name = "aten::__derive_index"
        return Simple(scope.operator(place, name, index, sugar.start, sugar.step))
    return scope.item(place, scope.as_value(sugar), index)


def add_child(tree: Together, child: Sugar) -> None:
    """One more thing to iterate over at once."""
    local = static_length(child)
    if not tree.children:
        tree.length = local
    elif (local is None) != (tree.length is None):
        raise ScriptError(
            "Can not iterate over a module list or tuple with a value that does not have a"
            " statically determinable length\n"
        )
    elif local is not None and tree.length is not None:
        tree.length = min(local, tree.length)
    tree.children.append(child)
