"""Owns the names of torch.return_types: one structure sequence for each row with named results."""

from __future__ import annotations

from typing import Any

from ._tensor.loading import load
from .ops.returns import by_name, names

load()


def pytree_register_structseq(cls: type[Any]) -> None:
    """Let `torch.utils._pytree` take a structure sequence apart, and put it together again."""
    from .utils._pytree import SequenceKey, register_pytree_node

    register_pytree_node(
        cls,
        lambda value: (list(value), None),
        lambda values, context: cls(values),
        flatten_with_keys_fn=lambda value: (
            [(SequenceKey(i), v) for i, v in enumerate(value)],
            None,
        ),
    )


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        kinds = [__getattr__(each) for each in names()]
        globals()[name] = kinds
        return kinds
    kind = None if name.startswith("__") else by_name(name)
    if kind is None:
        raise AttributeError(f"module 'mindtorch.return_types' has no attribute '{name}'")
    globals()[name] = kind
    return kind
