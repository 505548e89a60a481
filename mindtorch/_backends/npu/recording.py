"""Owns recording this process's own calls to a file, which `mindtorch-npu report` reads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import runtime


@contextmanager
def record(
    path: str | os.PathLike[str], *, data: str | None = None, stacks: bool = False
) -> Iterator[None]:
    """Record every ACL and ACLNN call that mindtorch makes inside the block to the file `path`.

    `data` also keeps what tensors held: `first` (of each distinct call), `all`, `1/N` or
    `op=GLOB`; `stacks` the Python lines of launches. `mindtorch_npu.recording.open`,
    `mindtorch-npu report`, `check --from` and `bench --from` read the file. Calls of other
    libraries in the process are not seen: `mindtorch-npu run --record` sees all.

    ValueError for another `data`; RuntimeError inside another recording or under `run`.
    """
    if data is not None and not re.fullmatch(r"first|all|1/[1-9]\d*|op=.+", data):
        raise ValueError(f"data={data!r}: expected first, all, 1/N or op=GLOB")
    from aclnn_bindings.layers.inprocess import recorded  # costs an import that few programs need

    settings = [("data", data)] if data else []
    if stacks:
        settings.append(("stacks", "1"))
    opened = runtime.cann()
    try:
        with recorded(opened, Path(path), settings):
            runtime.forget()
            yield
    finally:
        runtime.forget()
