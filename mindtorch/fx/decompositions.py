"""Owns what operators are made of others: a rule for each, which calls those.

Rules run on tensors, in a trace too. `core` are those of core programs; others stay whole there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .._autograd.grad_mode import LOCAL
from .._dispatch.dispatch_modes import ask_operator
from .._tensor.tensor import Tensor
from ..ops.aten_forms import FORMS
from ..ops.aten_overloads import Call
from ..ops.namespaces import OpOverload, OpOverloadPacket, namespace
from .aten import AtenRecorder
from .recorder import Arguments, Function, Keywords

Rule = Callable[..., Any]
Table = Mapping[object, Rule]
ATEN = namespace("aten")
# Rules by operator, or by operator and overload; those of C++ composites, those of Python that
# core programs take, and the rest.
COMPOSITE: dict[str, Rule] = {}
CORE: dict[str, Rule] = {}
OTHER: dict[str, Rule] = {}


def decomposes(names: str, table: dict[str, Rule]) -> Callable[[Rule], Rule]:
    """What puts a rule into a table under names with spaces between."""

    def put_rule(rule: Rule) -> Rule:
        table.update(dict.fromkeys(names.split(), rule))
        return rule

    return put_rule


def put(function: OpOverload, *args: object, **kwargs: Any) -> Any:
    """Call an operator as a whole: in a trace it is a node, even if it is no row."""
    run: Callable[..., Any] = FORMS.get(function.overloadpacket.__name__) or function
    recorder = LOCAL.functions[-1] if LOCAL.functions else None
    if isinstance(recorder, AtenRecorder):
        return recorder.operator((function, args, kwargs), run, args, kwargs)
    return ask_operator(function, args, kwargs) if LOCAL.dispatches else run(*args, **kwargs)


def overloads_of(names: Iterable[str]) -> Iterable[tuple[str, OpOverload]]:
    """Names of rules, each with the overloads that it is for."""
    for name in names:
        packet, _, overload = name.partition(".")
        try:
            operator = getattr(ATEN, packet)
        except AttributeError:
            continue
        for kind in [overload] if overload else operator.overloads():
            yield name, getattr(operator, kind)


def table_of(*parts: Mapping[str, Rule]) -> dict[object, Rule]:
    """Rules by overload."""
    return {o: part[name] for part in parts for name, o in overloads_of(part)}


def chosen_from(table: Table, operators: Iterable[object]) -> dict[object, Rule]:
    """The rules of operators, given as packets or overloads."""
    rules: dict[object, Rule] = {}
    for operator in operators:
        if isinstance(operator, OpOverloadPacket):
            kinds = [getattr(operator, kind) for kind in operator.overloads()]
        else:
            kinds = [operator]
        rules.update({kind: table[kind] for kind in kinds if kind in table})
    return rules


class CoreRecorder(AtenRecorder):
    """Traces with operators of `table` made of others; those of `always` whatever it has."""

    table: Table = {}
    always: dict[str, Rule] = {}

    def change(self, tensor: Tensor, value: Tensor) -> None:
        """A tensor of the state has another value from now on."""

    def operator(
        self, call: Call, run: Function, args: Arguments, kwargs: Keywords
    ) -> Any:  # fmt: skip
        target, node_args, node_kwargs = call
        if (fixed := self.always.get(target.overloadpacket.__name__)) is not None:
            with self.inside():
                return fixed(self, *node_args, **node_kwargs)
        if (rule := self.table.get(target)) is not None:
            with self.inside():
                result = rule(*node_args, **node_kwargs)
            if result is not NotImplemented:
                return result
        return super().operator(call, run, args, kwargs)
