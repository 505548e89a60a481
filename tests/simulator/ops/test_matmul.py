"""Kernels of matmul: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import noise, values

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def test_equations_that_do_not_fit_are_refused(sim: Any) -> None:
    x = noise(2, 3)
    for equation in ("ij,jk->ik", "ijk->ij", "ij", "i...->i", "ij->ik"):
        refused(sim, "equation", "aclnnEinsum", (x,), equation, Out(x))


def test_an_absent_optional_tensor_is_an_empty_one_of_any_dtype(sim: Any) -> None:
    """op-plugin gives an empty half as the offset of the output that only int4 weights need."""
    x, w = torch.tensor([[1, -2, 3]], dtype=torch.int8), torch.ones(3, 2, dtype=torch.int8)
    nothing = torch.empty(0, dtype=torch.float16)
    accepted(sim, "aclnnQuantMatmulV5", x, w, torch.tensor([2.0]), torch.tensor([0.5, 1.0]), None,
             None, None, nothing, None, False, False, 0,
             Out(torch.tensor([[2.0, 4.0]]).half()), layouts=["contiguous"])  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("rows", [(), (1,), (3,), (4,), (5,), (1, 2)])
@pytest.mark.parametrize(("depth", "cols"), [(1, 1), (3, 70), (67, 1), (130, 9), (518, 1100)])
def test_a_few_rows_by_a_matrix_of_halves_equal_torch(
    sim: Any, dtype: Any, rows: tuple[int, ...], depth: int, cols: int
) -> None:
    # Up to four rows read the matrix as it stands, whose rows or columns may lie apart.
    a, b = values(dtype, *rows, depth), values(dtype, depth, cols, seed=1)
    product = a.double() @ b.double()
    sim.check("aclnnMatmul", a, b, Out(product.to(dtype)), 0)
    sim.check("aclnnMatmul", a, b.t().contiguous().t(), Out(product.to(dtype)), 0)
    same = b[:, :1].expand(depth, cols)
    sim.check("aclnnMatmul", a, same, Out((a.double() @ same.double()).to(dtype)), 0)
    if rows == (3,):
        bias = values(dtype, cols, seed=2)
        sim.check("aclnnAddmm", bias, a, b, 1.0, 1.0, Out((product + bias.double()).to(dtype)), 0)


# Some processors multiply bfloat16 themselves, in tiles of 8 rows and 32 columns, 512 deep. Sums of
# small integers are exact in any order.
@pytest.mark.parametrize(
    "sizes", [(5, 1, 1), (9, 33, 2), (8, 31, 7), (37, 45, 1031), (300, 20, 515), (70, 200, 513)]
)
def test_tiles_of_bfloat16_multiply_exactly(sim: Any, sizes: tuple[int, int, int]) -> None:
    rows, cols, depth = sizes
    a, b = (values(torch.int64, *size) for size in ((rows, depth), (depth, cols)))
    product = a @ b
    a, b = a.bfloat16(), b.bfloat16()
    accepted(sim, "aclnnMm", a, b, Out(product.float(), tolerance=0.0), 0)
    accepted(sim, "aclnnMm", a, b, Out(product.bfloat16(), tolerance=0.0), 0)
    same = b[:1].expand(depth, cols)
    sums = (a.double() @ same.double()).bfloat16()
    accepted(sim, "aclnnMm", a, same, Out(sums, tolerance=0.0), 0)


@pytest.mark.parametrize("batches", [2, 7, 16])
def test_batches_of_bfloat16_multiply_exactly(sim: Any, batches: int) -> None:
    a, b = values(torch.int64, batches, 9, 70), values(torch.int64, batches, 70, 40, seed=1)
    start = values(torch.int64, 9, 40, seed=2)
    a16, b16, start16 = a.bfloat16(), b.bfloat16(), start.bfloat16()
    accepted(sim, "aclnnBatchMatMul", a16, b16, Out((a @ b).bfloat16(), tolerance=0.0), 0)
    accepted(sim, "aclnnMatmul", a16, b16[:1], Out((a @ b[:1]).bfloat16(), tolerance=0.0), 0)
    total = (start + (a @ b).sum(0)).bfloat16()
    accepted(sim, "aclnnAddbmm", start16, a16, b16, 1.0, 1.0, Out(total, tolerance=0.0), 0)


# Those instructions take subnormal values and sums for 0.
@pytest.mark.parametrize(
    ("left", "right"), [(-130, 20), (20, -130), (-70, -60), (-64, -64), (-50, -83), (-63, -63)]
)
def test_tiny_values_of_bfloat16_are_not_flushed(sim: Any, left: int, right: int) -> None:
    a = values(torch.bfloat16, 9, 40).sign() * 2.0**left
    b = values(torch.bfloat16, 40, 35, seed=1).sign() * 2.0**right
    a[3], b[:, 4] = 0.0, 0.0
    expected = (a.double() @ b.double()).bfloat16()
    assert expected.abs().max() > 0
    for given, _ in sim.run("aclnnMm", a, b, Out(expected), 0):
        assert torch.equal(given, expected)


def test_nan_and_infinity_of_bfloat16_stay_in_their_rows_and_columns(sim: Any) -> None:
    a, b = values(torch.bfloat16, 19, 70), values(torch.bfloat16, 70, 45, seed=1)
    a[17, 69], b[3, 44], a[2, 5] = float("nan"), float("inf"), float("-inf")
    accepted(sim, "aclnnMm", a, b, Out((a.double() @ b.double()).bfloat16()), 0)
