"""Owns whether the faults that ACLSIM_FAULTS plants into the simulator have struck."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aclnn_bindings.layers import scratch

FAULTS: Final = "ACLSIM_FAULTS"
_STRIKES: Final = "ACLSIM_STRIKES"


def planted() -> list[str]:
    """The faults that are asked for, as they are written."""
    return [text for text in os.environ.get(FAULTS, "").split(",") if text]


@contextmanager
def watch() -> Iterator[None]:
    """Have this process and its children note which faults strike; `unstruck` tells."""
    count = len(planted())
    if not count:
        yield
        return
    with scratch.folder("mindtorch-run-") as folder:
        path = scratch.create(folder, "strikes")
        path.write_bytes(bytes(count))
        before = os.environ.get(_STRIKES)
        os.environ[_STRIKES] = str(path)
        try:
            yield
        finally:
            os.environ.pop(_STRIKES)
            if before is not None:
                os.environ[_STRIKES] = before


def unstruck() -> list[str]:
    """A reason for each fault that has changed no call since `watch` began."""
    if _STRIKES not in os.environ:
        return []
    with open(os.environ[_STRIKES], "rb") as file:
        struck = file.read()
    return [f"{FAULTS}: {text!r} changed no launch"
            for text, mark in zip(planted(), struck, strict=True) if not mark]  # fmt: skip
