"""Owns where an operator stands in a source checkout: its row, oracle, kernel and kernel's test.

One word, the family of the operator, names the folder or file of each. Outside of a checkout
nothing stands anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import aclnn_bindings

from .find import row_of
from .row import Spec

_ROWS: Final = "cli/conformance/operators/rows"
_TORCH_ROWS: Final = "mindtorch/ops/rows"
_ORACLES: Final = "tests/cli/operators/oracles"
_KERNELS: Final = "aclnn_bindings/simulator/src/ops"
_KERNEL_TESTS: Final = "tests/simulator/ops"


@dataclass(frozen=True, slots=True)
class SourcePlaces:
    """Paths relative to the checkout; "" where there is none."""

    row: str
    oracle: str
    kernel: str
    kernel_test: str


def checkout() -> Path | None:
    """The folder of the sources, None where the package is installed from a wheel."""
    root = Path(aclnn_bindings.__file__).parents[1]
    return root if (root / _KERNEL_TESTS).is_dir() else None


def places(name: str) -> SourcePlaces | None:
    """Where an operator stands; None outside of a checkout."""
    root = checkout()
    if root is None:
        return None
    kernel = _kernels(root).get(name, "")
    row = row_of(name)
    module = "" if row is None else _module(row)
    oracle = f"{_ORACLES}/{module}.py" if module else ""
    return SourcePlaces(
        f"{_ROWS}/{module}.py" if module else _torch_row(root, name),
        oracle if (root / oracle).is_file() else "",
        kernel,
        _kernel_test(root, name, Path(kernel).parent.name) if kernel else "",
    )


def _module(row: Spec) -> str:
    return row.module.partition(".rows.")[2].replace(".", "/")


@cache
def _kernels(root: Path) -> dict[str, str]:
    """Operator -> the file of its kernel."""
    from aclnn_bindings.simulator.generation import catalog, rows

    loaded = catalog.load(root / "aclnn_bindings" / "catalogs")
    sources = sorted((root / _KERNELS).rglob("*.cpp"))
    return {
        op: source.relative_to(root).as_posix()
        for source in sources
        for op in rows.find_ops([source], loaded)
    }


def _kernel_test(root: Path, name: str, family: str) -> str:
    """The first file of the family's kernel tests that mentions the operator."""
    files = sorted((root / _KERNEL_TESTS).glob(f"test_{family}*.py"))
    named = (f for f in files if re.search(rf"\b{name}\b", _text(f)))
    return next((f.relative_to(root).as_posix() for f in named), "")


def _torch_row(root: Path, name: str) -> str:
    """The file of the torch row that calls the operator, or its folder where a loop declares it."""
    from mindtorch.ops import OPS

    base = name.replace("aclnnInplace", "aclnn", 1)
    for target in (name, base):
        for op in OPS.values():
            if any(call.name == target for call in op.kernels.aclnn):
                folder = root / _TORCH_ROWS / op.family
                named = [f for f in sorted(folder.rglob("*.py")) if f'"{target}"' in _text(f)]
                return (named[0] if named else folder).relative_to(root).as_posix()
    return ""


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8")
