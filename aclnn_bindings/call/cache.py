"""Owns the plans that are kept, and what tells at a glance that a call is like an earlier one.

Checking arguments costs several times what a launch does, and a loop makes the same calls again
and again: calls with the same views and the same plain values have one plan.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any, Final

from ..runtime.locks import Lock
from ..runtime.memory import Buffer
from .arrays import DeviceTensor
from .plan import Plan
from .specs import TensorSpec

Key = tuple[Any, ...]

# Equal values of these are the same argument once their type stands beside them.
_PLAIN: Final = frozenset({int, bool, str, type(None)})


def glance(name: str, values: Sequence[Any], addresses: list[int]) -> tuple[Key, Buffer] | None:
    """What tells the call of `name` from others, and the first tensor's buffer; None when in doubt.

    Views count by their identity, plain values by type and value, with 0.0 apart from -0.0. The
    storage address of each tensor goes to `addresses`.
    """
    key: list[Any] = [name]
    first: Buffer | None = None
    for value in values:
        kind = type(value)
        if kind is DeviceTensor:
            buffer = value.buffer
            first = first or buffer
            key.append(id(value.spec))
            addresses.append(buffer.address)
        elif kind is float:
            key.append(kind)
            key.append(value or str(value))
        elif kind in _PLAIN:
            key.append(kind)
            key.append(value)
        else:
            return None
    return (tuple(key), first) if first is not None else None


class PlanCache:
    """At most `limit` plans, the least recently used dropped first, so that scalars that change
    with every call do not pile up. While fewer than half of them are there, plans are remembered
    by what `glance` tells too, with the views, so that no other view can have their identity."""

    def __init__(self, limit: int = 4096) -> None:
        self.limit = limit
        self._plans: OrderedDict[Hashable, Plan] = OrderedDict()
        self._glanced: dict[Key, tuple[Plan, list[TensorSpec]]] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._plans)

    def get(self, key: Hashable) -> Plan | None:
        plan = self._plans.get(key)
        # Which was used last matters only once some are about to be dropped.
        if plan is not None and len(self._plans) * 2 > self.limit:
            with self._lock, suppress(KeyError):  # another thread may just have dropped it
                self._plans.move_to_end(key)
        return plan

    def put(self, key: Hashable, plan: Plan) -> None:
        dropped = []  # plans close after the lock is open again
        with self._lock:
            self._plans[key] = plan
            while len(self._plans) > self.limit:
                dropped.append(self._plans.popitem(last=False))

    def repeated(self, key: Key) -> Plan | None:
        """The plan of an earlier call that `glance` told to be the same."""
        entry = self._glanced.get(key)
        return entry[0] if entry is not None else None

    def remember(self, key: Key, plan: Plan, values: Sequence[Any]) -> None:
        """Let `repeated` give `plan` for a call with these values."""
        with self._lock:
            if len(self._glanced) >= self.limit or len(self._plans) * 2 > self.limit:
                self._glanced = {}
            else:
                views = [value.spec for value in values if type(value) is DeviceTensor]
                self._glanced[key] = plan, views

    def clear(self) -> None:
        with self._lock:
            plans, self._plans = self._plans, OrderedDict()
            self._glanced = {}
        plans.clear()
