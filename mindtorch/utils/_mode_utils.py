"""Owns what torch.utils._mode_utils is asked for: calls inside that no dispatch mode sees."""

from __future__ import annotations

from collections.abc import Sequence

from ._python_dispatch import _disable_current_modes as no_dispatch

__all__ = ["all_same_mode", "no_dispatch"]


def all_same_mode(modes: Sequence[object]) -> bool:
    """Whether all modes are the first."""
    return all(mode == modes[0] for mode in modes)
