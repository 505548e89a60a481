"""Owns torch._decomp: tables of what operators are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping

from mindtorch.fx import (
    backward_rules as _backward_rules,  # noqa: F401 - which fills the tables
    core_rules as _core_rules,  # noqa: F401 - the same
)
from mindtorch.fx.decompositions import COMPOSITE, CORE, OTHER, Rule, chosen_from, table_of
from mindtorch.ops.namespaces import OpOverload, OpOverloadPacket

Registry = MutableMapping[object, Rule]
decomposition_table: dict[object, Rule] = table_of(CORE, OTHER)
global_decomposition_table: dict[str, dict[object, Rule]] = {
    "post_autograd": decomposition_table, "pre_autograd": {}, "meta": {},
}  # fmt: skip


class CustomDecompTable(dict[object, Rule]):
    """The rules of core programs, to be changed by their owner."""

    def __init__(self) -> None:
        super().__init__(table_of(COMPOSITE, CORE))

    def materialize(self) -> dict[object, Rule]:
        """The rules as a dictionary."""
        return dict(self)


def core_aten_decompositions() -> CustomDecompTable:
    """The rules of core programs."""
    return CustomDecompTable()


def get_decompositions(
    aten_ops: Iterable[object], type: str = "post_autograd"
) -> dict[object, Rule]:  # fmt: skip
    """The rules of operators, packets or overloads, of those that have one."""
    if type not in global_decomposition_table:
        raise AssertionError(
            "type must be one of {'post_autograd', 'pre_autograd', 'meta'}, got " + type
        )
    return chosen_from(global_decomposition_table[type], aten_ops)


def remove_decompositions(decompositions: Registry, aten_ops: Iterable[object]) -> None:
    """Take the rules of operators out of a table."""
    for operator in chosen_from(decompositions, aten_ops):
        del decompositions[operator]


def register_decomposition(
    aten_op: object, registry: Registry | None = None, *, type: str = "post_autograd",
    unsafe: bool = False,
) -> Callable[[Rule], Rule]:  # fmt: skip
    """What puts a rule into a registry for an operator, or for several.

    RuntimeError where it has one.
    """

    def register(fn: Rule) -> Rule:
        table = global_decomposition_table[type] if registry is None else registry
        operators = aten_op if isinstance(aten_op, list | tuple) else [aten_op]
        for operator in operators:
            kinds = (
                [getattr(operator, kind) for kind in operator.overloads()]
                if isinstance(operator, OpOverloadPacket)
                else [operator]
            )
            for kind in kinds:
                if kind in table:
                    raise RuntimeError(f"duplicate registrations for {kind}")
                assert isinstance(kind, OpOverload)
                table[kind] = fn
        return fn

    return register
