"""A child program: loads each library and repeats the loader's words; calls nothing in it."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from .child import Steps, main


def load_all(steps: Steps, request: Any) -> None:
    """`request`: libraries, paths in the order to try; preload, library name → path to load
    first; custom, those of `libraries` of which every symbol must be there at once.

    A library whose dependency lies in the install but off the loader's path is tried again after
    that dependency; its facts then name it, because another process would fail there.
    """
    for path in request["libraries"]:
        facts: dict[str, Any] = {}
        try:
            with steps.step(path, facts):
                mode = os.RTLD_NOW if path in request.get("custom", ()) else os.RTLD_LAZY
                _load(path, request["preload"], facts, mode)
        except OSError:
            continue


def _load(
    path: str, preload: dict[str, str], facts: dict[str, Any], mode: int, depth: int = 0
) -> None:
    try:
        ctypes.CDLL(path, mode=mode | os.RTLD_GLOBAL)
    except OSError as error:
        library = str(error).split(":")[0].strip()
        facts.setdefault("complaint", str(error))
        if library not in preload or depth > 40 or preload[library] == path:
            raise
        facts.setdefault("preloaded", []).append(library)
        _load(preload[library], preload, facts, os.RTLD_LAZY, depth + 1)
        _load(path, preload, facts, mode, depth + 1)


if __name__ == "__main__":
    main(load_all)
