"""torch.nn.parallel.parallel_apply: refused, for one process drives one device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._compat.refusals import refused
from ..._tensor.tensor import Tensor
from .scatter_gather import WHY

parallel_apply = refused("torch.nn.parallel.parallel_apply", WHY)


def get_a_var(obj: Any) -> Tensor | None:
    """The first tensor in lists, tuples and dictionaries of each other; None without one."""
    if isinstance(obj, Tensor):
        return obj
    inner: Iterable[Any] = obj if isinstance(obj, list | tuple) else ()
    inner = obj.items() if isinstance(obj, dict) else inner
    return next((t for t in map(get_a_var, inner) if t is not None), None)
