"""Owns Lock, a lock that a fork leaves open: a child has none of the threads that could hold it."""

from __future__ import annotations

import os
import threading
from typing import Any, Final
from weakref import WeakSet


class Lock:
    """A reentrant lock. In the child of a fork it is free, whichever thread of the parent held it.

    What it guards may then be half done: whoever uses it checks that first, or can start over.
    """

    __slots__ = ("__weakref__", "_inner")

    def __init__(self) -> None:
        self._inner: Any = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> Lock:
        self._inner.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self._inner.release()

    def renew(self) -> None:
        """Forget who held it."""
        self._inner = threading.RLock()


_locks: Final[WeakSet[Lock]] = WeakSet()


def _renew_all() -> None:
    for lock in list(_locks):
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)
