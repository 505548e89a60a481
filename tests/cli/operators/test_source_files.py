"""One word, an operator's family, names its row, its oracle, its kernel and its kernel's test."""

from pathlib import PurePath

import pytest
from mindtorch_npu.conformance.operators import rows
from mindtorch_npu.conformance.operators.row import SPECS, UNSPECIFIED
from mindtorch_npu.conformance.operators.rules import FAMILIES
from mindtorch_npu.conformance.operators.source_files import SourcePlaces, checkout, places

from aclnn_bindings.interface import catalog

rows.declare_all()
pytestmark = pytest.mark.skipif(checkout() is None, reason="no source checkout")
OPERATORS = sorted({n for v in catalog.versions() for n in catalog.load(v).ops})
# A torch row lies in a room of mindtorch/ops/rows, by torch's words; these families share them.
ROOMS = {
    "create": {"creation"},
    "matrix": {"matmul", "linalg"},
    "move": {"creation", "indexing", "pointwise", "shape"},
    "nn": {"activation", "convolution", "embedding", "loss", "norm", "pooling", "shape"},
    "pointwise": {"activation", "creation", "pointwise"},
    "reduce": {"pointwise", "reduction", "sorting"},
}
# Operators that have a kernel and no row: nothing but their contract is checked.
CONTRACT_ONLY = {
    "acldvppDecodeJpeg": "what is lost is the coder's own choice",
    "acldvppEncodeJpeg": "what is lost is the coder's own choice",
    "aclnnFlatQuantV2": "no row states its formula yet",
    "aclnnMaxPool2dWithMaskBackward": "no row states its formula yet",
    "aclnnTransposeQuantBatchMatMulWeightNz": "no row states its formula yet",
}


def word(path):
    """The family in a path: the folder or module behind rows, oracles or ops."""
    parts = PurePath(path).with_suffix("").parts
    behind = max(parts.index(p) for p in ("rows", "oracles", "ops") if p in parts)
    return parts[behind + 1]


def words(name, where: SourcePlaces):
    """The words of an operator's places, less those of the tables."""
    if where.row.startswith("mindtorch/"):
        family = word(where.kernel)
        yield family if family in ROOMS[word(where.row)] else word(where.row)
    elif where.row:
        yield word(where.row)
    yield from (word(path) for path in (where.oracle, where.kernel) if path)
    if where.kernel_test:
        test = word(where.kernel_test).removeprefix("test_")
        yield max((f for f in FAMILIES if f"{test}_".startswith(f"{f}_")), key=len)


def test_an_operator_lies_in_folders_of_one_word():
    spellings = {name: set(words(name, places(name))) for name in OPERATORS}
    assert not {name: several for name, several in spellings.items() if len(several) > 1}


def test_every_operator_with_a_kernel_has_a_row():
    for name in OPERATORS:
        where = places(name)
        if where.kernel:
            assert where.row or name in {*CONTRACT_ONLY, *UNSPECIFIED}, name


def test_places_of_an_operator_are_paths_of_the_checkout():
    where = places("aclnnQr")
    assert where == SourcePlaces(
        "cli/conformance/operators/rows/linalg.py", "tests/cli/operators/oracles/linalg.py",
        where.kernel, "tests/simulator/ops/test_linalg.py",
    )  # fmt: skip
    for path in (where.row, where.oracle, where.kernel, where.kernel_test):
        assert (checkout() / path).is_file(), path
    assert places("aclnnInplaceAdd").row.startswith("mindtorch/ops/rows/pointwise/")


def test_the_module_of_each_row_is_found_by_the_names_of_its_operators():
    """A command imports the modules that name its operators, not all of them."""
    unlisted = [name for name, row in SPECS.items() if row.module not in rows._modules_of(name)]
    assert not unlisted
    assert all(map(rows._modules_of, UNSPECIFIED))
    assert len(rows._modules_of("aclnnNothing")) < 10
