"""torch.fx._compatibility: marks that say how long a name stays as it is; kept without effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that gives what it is given."""
    return lambda decorated: decorated
