"""Owns which operators are nearest to a changed place of the kernels: their cases come first."""

import re
from functools import cache
from pathlib import Path
from typing import Final

from . import tree

# From the nearest: the operator that the changed function is named after, those of the changed
# file, those of files that name the function, and the rest.
NAMED, SAME_FILE, CALLING, FAR = range(4)
_STEM: Final = re.compile(r"^(aclnn|v_|_)|(_?kernel|_rows?|_|V\d+)$", re.IGNORECASE)


def nearness(op: str, file: str, function: str) -> int:
    """How near the row or ACLNN operator `op` is to `function` in `file`, 0 nearest."""
    calls = _calls(op)
    files = {_kernels().get(call, "") for call in calls}
    stem = _stem(function.rpartition(".")[2].rpartition("::")[2])
    if stem and stem in {_stem(op), *map(_stem, calls)}:
        return NAMED
    if file in files:
        return SAME_FILE
    return CALLING if any(f and _mentions(f, function) for f in files) else FAR


def of_file(file: str) -> list[str]:
    """The ACLNN operators whose kernels stand in a file, and the rows that call one of them."""
    from mindtorch.ops import OPS

    named = [call for call, place in _kernels().items() if place == file]
    return named + [row for row in OPS if not set(_calls(row)).isdisjoint(named)]


def _stem(name: str) -> str:
    return _STEM.sub("", name).replace("_", "").lower()


def _calls(op: str) -> tuple[str, ...]:
    """The ACLNN operators that a row calls; an operator is its own."""
    from mindtorch.ops import OPS

    row = OPS.get(op)
    return (op,) if row is None else tuple(call.name for call in row.kernels.aclnn)


@cache
def _kernels() -> dict[str, str]:
    """ACLNN operator -> the file of its kernel, relative to the sources."""
    from aclnn_bindings.simulator.generation import catalog, rows

    loaded = catalog.load(tree.ROOT / "aclnn_bindings" / "catalogs")
    return {
        op: path.relative_to(tree.sources()).as_posix()
        for path in sorted((tree.sources() / "ops").rglob("*.cpp"))
        for op in rows.find_ops([path], loaded)
    }


@cache
def _mentions(file: str, function: str) -> bool:
    name = function.rpartition(".")[2].rpartition("::")[2]
    return bool(name) and bool(re.search(rf"\b{re.escape(name)}\b", _text(tree.sources() / file)))


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8")
