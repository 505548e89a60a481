"""Owns runs under a fixed seed that leave the generators as they were."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from .. import random

T = TypeVar("T")


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Put the default generators back as they were before the body."""
    with random.fork_rng():
        yield


def wrapper_set_seed(op: Callable[..., T], *args: object, **kwargs: object) -> T:
    """`op` of the arguments, drawn from seed 42."""
    with freeze_rng_state():
        random.manual_seed(42)
        return op(*args, **kwargs)
