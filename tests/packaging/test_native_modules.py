"""What was built loads: a module in Python that stands in for it where it is not is slower."""

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = [path.relative_to(ROOT) for package in ("mindtorch", "aclnn_bindings")
         for path in sorted((ROOT / package).rglob("*.abi3.so"))]  # fmt: skip


@pytest.mark.parametrize("path", BUILT, ids=str)
def test_a_module_that_was_built_loads(path):
    name = ".".join((*path.parent.parts, path.name.partition(".")[0]))
    assert Path(import_module(name).__file__) == ROOT / path
