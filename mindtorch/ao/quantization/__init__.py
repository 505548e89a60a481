"""Owns torch.ao.quantization's names: classes for isinstance and for subclasses; use is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

_WHY = "mindtorch has no quantised modules"


@cache
def _absent(name: str) -> type:
    def refuse(self: Any, *_: object, **__: object) -> None:
        raise NotImplementedError(f"torch.ao.quantization.{name}: {_WHY}")

    return type(name, (), {"__init__": refuse, "__module__": __name__})


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name[0].isupper():
        return _absent(name)

    def refuse(*_: object, **__: object) -> Any:
        raise NotImplementedError(f"torch.ao.quantization.{name}: {_WHY}")

    return refuse
