"""Owns the names of torch.fft; each is a row called fft_name."""

from __future__ import annotations

from typing import Any

from ._functional.publish import module
from ._tensor.loading import load

load()

_names, _find = module("fft")
__all__ = _names


def __getattr__(name: str) -> Any:
    built = globals()[name] = _find(name)
    return built


def __dir__() -> list[str]:
    return __all__
