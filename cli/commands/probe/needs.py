"""Owns which ACLNN operators the declared torch operators call.

The list is a file, so that a diagnosis imports no mindtorch; `docs/check.py` holds it equal to the
declarations, and `--write` renders it.
"""

from __future__ import annotations

from importlib.resources import files


def needed_by_check() -> tuple[str, ...]:
    """Their names, by the families of the rows that call them."""
    return tuple((files(__package__) / "needed_operators.txt").read_text("utf-8").split())
