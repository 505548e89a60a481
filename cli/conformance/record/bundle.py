"""Owns saved cases: a folder with inputs, outputs, reference, verdict and environment; and replay.

The inputs are stored, so that another machine replays the same numbers whatever its samples are.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from aclnn_bindings.interface import atomic_write

from ...foreign import parsed, text_of
from ...judge.precision import Array, numpy_dtype
from ..cases.case_file import MARK
from ..operators.golden_files import described
from .journal import repro
from .result import Result

SCHEMA: Final = "mindtorch-npu/case/1"


class BundleError(ValueError):
    """A file that is no saved case; the message says what is missing."""


def save(
    folder: Path,
    result: Result,
    trial: Any,
    environment: Mapping[str, Any],
    recording: str = "",
    cases: str = "",
) -> Path:
    """Write a case to `folder`; the path of its description, which `check replay` takes.

    `recording` is the file in `folder` in which a case of a recording is found; `cases` describes
    the case file of a row. The reference of the person's own that judged is named, by path and
    digest; it is data, and runs only where the person names it again.
    """
    name = re.sub(r"[^\w.-]+", "_", f"{result.case}-seed{result.seed}")
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {f"input{i}": s.array for i, s in enumerate(trial.recipe.slots)}
    arrays |= {f"output{i}": a for i, a in enumerate(trial.outputs)}
    arrays |= {f"expected{i}": np.asarray(a) for i, a in enumerate(trial.expected)}
    dtypes = {key: array.dtype.name for key, array in arrays.items()}
    stored: dict[str, Any] = {k: _storable(a) for k, a in arrays.items()}
    with atomic_write.writing(folder / f"{name}.npz") as file:
        np.savez_compressed(file, **stored)
    path = folder / f"{name}.json"
    data = {
        "schema": SCHEMA, "case": result.case, "seed": result.seed,
        "repro": repro(result.case, result.seed), "arrays": f"{name}.npz", "dtypes": dtypes,
        "environment": dict(environment), "result": result.as_json(),
    }  # fmt: skip
    data |= {k: v for k, v in {"recording": recording, "cases": cases}.items() if v}
    if golden := described(result.op.partition(MARK)[0]):
        data["golden"] = golden
    atomic_write.write(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    return path


def _storable(array: Array) -> Array:
    """bfloat16 as its bits: numpy's files do not know it."""
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def load(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """(description, input arrays) of a saved case; BundleError if it is none."""
    try:
        data = parsed(text_of(path))
    except (OSError, ValueError) as error:
        raise BundleError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise BundleError(f"{path}: no saved case (schema {SCHEMA}); --save makes them")
    try:
        return data, _inputs(path, data)
    except _DAMAGED as error:
        raise BundleError(f"{path}: its arrays cannot be read: {error!r}") from None


# What numpy, zipfile and zlib raise for files that are damaged, and ours for names that are none.
_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, NotImplementedError,
            RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)  # fmt: skip


_MOST_BYTES: Final = 1 << 30


def _inputs(path: Path, data: dict[str, Any]) -> list[Any]:
    name = str(data["arrays"])
    if Path(name).name != name:
        raise ValueError(f"arrays {name!r}: expected a file beside it")
    with zipfile.ZipFile(path.parent / name) as packed:
        size = sum(i.file_size for i in packed.infolist() if i.filename.startswith("input"))
    if size > _MOST_BYTES:
        raise ValueError(f"inputs of {size:,} bytes, more than any case has")
    with np.load(path.parent / name) as stored:
        names = sorted((n for n in stored.files if n.startswith("input")), key=lambda n: int(n[5:]))
        return [_restored(stored[n], data["dtypes"][n]) for n in names]


def _restored(array: Array, dtype: str) -> Array:
    return array.view(numpy_dtype(dtype)) if dtype == "bfloat16" else array
