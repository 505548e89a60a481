"""torch.jit.annotations: types that a compiler would read; lists to Python."""

from __future__ import annotations

from typing import Any


class _Lists:
    def __getitem__(self, kind: Any) -> Any:
        return list[kind]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Lists()
