"""Owns Scope, a context that an interrupt leaves begun or ended, never half; knows no modes.

Python runs signal handlers where a Python function begins or resumes, and where a call returns. An
`__exit__` written in Python can so be left before its first line, and what it restores is lost.
Here both ends resume a generator by C alone: an interrupt on the way in finds nothing set, one on
the way out is raised inside the generator's `try`, whose `finally` restores.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, repeat
from typing import Any


class _Enter:
    """Looked up as a `with` statement begins: the first step, as a callable of C."""

    def __get__(self, scope: StepScope | None, owner: type) -> Callable[..., Any]:
        if scope is None:
            return lambda scope: self.__get__(scope, owner)()
        scope._running = scope.steps()
        return partial(next, scope._running)


class _Exit:
    """The last step: `max` is C's way to call one thing and to take what else it is given."""

    def __get__(self, scope: StepScope | None, owner: type) -> Callable[..., Any]:
        if scope is None:
            return lambda scope, *exc: self.__get__(scope, owner)(*exc)
        running: Iterable[Any] = scope._running
        if sys.version_info >= (3, 14):  # which looks `__exit__` up before `__enter__`
            running = chain.from_iterable(map(getattr, (scope,), ("_running",)))
        last = chain(running, repeat(0))  # 0: equal keys, so that max gives its first, None
        return partial(max, None, None, key=partial(next, last))


class StepScope:
    """Subclasses give `steps`. No call may stand in its `finally` if that is to run whole."""

    _running: Iterator[Any] = iter(())
    __enter__: _Enter = _Enter()
    __exit__: _Exit = _Exit()

    def steps(self) -> Iterator[Any]:
        """Set, inside a `try`; yield what `as` names; restore, in its `finally`."""
        raise NotImplementedError
