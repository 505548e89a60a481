"""Owns which parts of a batch are pinned: all tensors, and what has a method `pin_memory`."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from ...._tensor.tensor import Tensor


def pin_memory(data: Any, device: object = None) -> Any:
    """The batch with its tensors in pinned memory, in containers of the same classes."""
    kind: Any = type(data)
    if isinstance(data, str | bytes):
        return data
    if isinstance(data, Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        values = {key: pin_memory(value) for key, value in data.items()}
        if not isinstance(data, MutableMapping):
            return kind(values)
        clone = copy.copy(data)
        clone.update(values)
        return clone
    if not isinstance(data, Sequence):
        return data
    items = [pin_memory(value) for value in data]
    if isinstance(data, tuple):
        return kind(*items) if hasattr(data, "_fields") else items
    if not isinstance(data, MutableSequence):
        return kind(items)
    sequence = copy.copy(data)
    sequence[:] = items
    return sequence
