"""Owns how errors name the class of a value."""

from __future__ import annotations


def class_name(value: object) -> str:
    """A class as C names it in errors: one that C defines with its module, others without."""
    kind = type(value)
    if kind.__name__ in _OF_TORCH and kind.__module__.partition(".")[0] in ("mindtorch", "torch"):
        return f"torch.{kind.__name__}"
    if kind.__module__.endswith(".func._batched"):  # no class of its own in torch
        return "Tensor"
    if kind.__module__ == "builtins" or kind.__flags__ & _HEAP_TYPE:
        return kind.__name__
    return f"{kind.__module__}.{kind.__name__}"


def name_class(kind: type, name: str, module: str) -> None:
    """Let a class be called as the one that torch has for its instances."""
    kind.__name__ = kind.__qualname__ = name
    kind.__module__ = module


_OF_TORCH = ("dtype", "device", "Size", "layout", "memory_format")
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: its tp_name has no module
