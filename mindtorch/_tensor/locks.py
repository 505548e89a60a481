"""Owns Lock, a lock that a fork leaves open: a child has none of the threads that could hold it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
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

    # C's own, looked up as `with` begins: an interrupt finds the lock taken or not, and never
    # behind the call of `acquire` in an `__enter__` of Python, where nobody would give it back.
    @property
    def __enter__(self) -> Callable[[], bool]:
        enter: Callable[[], bool] = self._inner.__enter__
        return enter

    @property
    def __exit__(self) -> Callable[..., None]:
        leave: Callable[..., None] = self._inner.__exit__
        return leave

    def renew(self) -> None:
        """Forget who held it."""
        self._inner = threading.RLock()


_locks: Final[WeakSet[Lock]] = WeakSet()


def _renew_all() -> None:
    for lock in list(_locks):
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)
