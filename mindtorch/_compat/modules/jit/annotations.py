"""torch.jit.annotations: types that a compiler would read; lists to Python."""

from __future__ import annotations

# typing's names, which models take from here.
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035


class _Lists:
    def __getitem__(self, kind: Any) -> Any:
        return list[kind]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Lists()

__all__ = [
    "Any",
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Dict",
    "List",
    "Optional",
    "Tuple",
    "Union",
]
