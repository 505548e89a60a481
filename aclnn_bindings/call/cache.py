"""Owns the plans that are kept, and those of calls that may be made again.

Checking arguments costs several times what a launch does, and a loop makes the same calls again
and again: calls with the same views and the same plain values have one plan, which the bindings'
extension finds by itself (`runtime/launch/operator.c`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

from ..runtime.locks import Lock
from .plan import Plan


class PlanCache:
    """At most `limit` plans, the least recently used dropped first, so that scalars that change
    with every call do not pile up. While fewer than half of them are there, `repeated` has plans by
    the key of a call too, with what the key names by identity."""

    def __init__(self, limit: int = 4096) -> None:
        self.limit = limit
        self._plans: OrderedDict[Hashable, Plan] = OrderedDict()
        self.repeated: dict[bytes, tuple[Plan, int, Any]] = {}
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

    def remember(self, key: bytes, plan: Plan, named: Any) -> None:
        """Let a call with `key` launch `plan`; `named` is what the key knows by identity."""
        dropped = {}
        with self._lock:
            if len(self.repeated) >= self.limit or len(self._plans) * 2 > self.limit:
                dropped = self._forget()
            else:
                self.repeated[key] = plan, plan.address, named
        dropped.clear()

    def _forget(self) -> dict[bytes, tuple[Plan, int, Any]]:
        """Empty `repeated`, which operators refer to; what was in it."""
        dropped = self.repeated.copy()
        self.repeated.clear()
        return dropped

    def clear(self) -> None:
        with self._lock:
            plans, self._plans = self._plans, OrderedDict()
            dropped = self._forget()
        plans.clear()
        dropped.clear()
