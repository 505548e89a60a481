"""Owns how a `with` statement puts something on a list and takes it away, whole under interrupts.

Python runs signal handlers behind each call that its code makes, so an `__enter__` in Python can be
left with the list grown and no `__exit__` to come. These are callables of C alone: what they look
up, and what they change, is one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, repeat
from typing import Any, TypeVar

T = TypeVar("T")


def pushing(stack: list[T], value: T) -> Callable[[], T]:
    """Puts `value` on `stack` and returns it."""
    return partial(max, value, value, key=_once(stack.append, value))


def popping(stack: list[Any]) -> Callable[..., None]:
    """Takes the last of `stack` away, whatever an `__exit__` is told."""
    return partial(max, None, None, key=_once(stack.__delitem__, -1))


def _once(act: Callable[[Any], None], argument: Any) -> Callable[[Any], int]:
    """A key for `max`: acts at the first question, and finds all things equal."""
    acting: Iterator[Any] = filter(None, map(act, (argument,)))
    return partial(next, chain(acting, repeat(0)))
