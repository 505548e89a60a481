"""What an op is: schemas, rules, and one row per op, by family; and torch.ops' namespaces."""

from typing import Any

from . import rows
from .namespaces import load_library, namespace
from .spec import OPS, Op

__all__ = ["OPS", "Op", "load_library", "rows"]


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not name.isidentifier():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return namespace(name)
