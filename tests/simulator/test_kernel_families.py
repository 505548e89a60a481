"""Kernels lie under `ops/` by family: the folder of the file that registers an operator."""

import re
from pathlib import Path

import pytest

import aclnn_bindings
from aclnn_bindings.simulator.generation import catalog as catalogs, rows

ROOT = Path(aclnn_bindings.__file__).parent
KERNELS = ROOT / "simulator" / "src" / "ops"
TESTS = Path(__file__).parent / "ops"
FAMILIES = frozenset((
    "activation", "attention", "collective", "convolution", "creation", "detection", "embedding",
    "fft", "foreach", "image", "indexing", "kv_cache", "linalg", "loss", "matmul", "moe", "norm",
    "optimizer", "pointwise", "pooling", "quantization", "random", "reduction", "residual",
    "resize", "rnn", "rotary", "sampling", "shape", "sorting", "state",
))  # fmt: skip
# Operators whose kernel lies in the folder of another family than their row, and why.
EXCEPTIONS = {
    "aclnnSwigluGroupQuantGrad": ("quantization", "activation", "the gradient of the plain unit"),
}
SUFFIX = re.compile(r"(?:Backward|Grad)(?:V\d)?$")


@pytest.fixture(scope="module")
def families() -> dict[str, str]:
    """Operator → the folder of its kernel."""
    catalog = catalogs.load(ROOT / "catalogs")
    found = {}
    for source in sorted(KERNELS.rglob("*.cpp")):
        found |= dict.fromkeys(rows.find_ops([source], catalog), source.parent.name)
    return found


def test_every_kernel_file_lies_in_the_folder_of_a_family() -> None:
    files = [path.relative_to(KERNELS) for path in KERNELS.rglob("*.cpp")]
    assert all(len(path.parts) == 2 for path in files), files
    assert {path.parts[0] for path in files} == FAMILIES


def test_every_file_of_kernel_tests_is_named_for_a_family() -> None:
    names = [path.stem for path in TESTS.glob("test_*.py")]
    assert [n for n in names if not any(re.match(rf"test_{f}(_|$)", n) for f in FAMILIES)] == []


def test_a_gradient_lies_with_its_operator_but_for_the_exceptions(
    families: dict[str, str],
) -> None:
    apart = {
        name: (families[forward], family)
        for name, family in families.items()
        if (forward := SUFFIX.sub("", name)) != name and families.get(forward, family) != family
    }
    assert apart == {name: entry[:2] for name, entry in EXCEPTIONS.items()}
