"""Kernels of matmul: results equal a reference, and what they refuse."""

import time
from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import noise, values

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bij, bkj -> bik", "ii->i", "ij->", "i,j->ji"])
def test_einstein_sums_equal_torch(sim: Any, equation: str) -> None:
    sizes = {"i": 3, "j": 4, "k": 2, "b": 2}
    terms = equation.replace(" ", "").split("->")[0].split(",")
    operands = [noise(*(sizes[c] for c in t), seed=k) for k, t in enumerate(terms)]
    expected = torch.einsum(equation, *operands).contiguous()
    accepted(sim, "aclnnEinsum", tuple(operands), equation, Out(expected, tolerance=1e-5))


def test_equations_that_do_not_fit_are_refused(sim: Any) -> None:
    x = noise(2, 3)
    for equation in ("ij,jk->ik", "ijk->ij", "ij", "i...->i", "ij->ik"):
        refused(sim, "equation", "aclnnEinsum", (x,), equation, Out(x))


def test_a_transposed_weight_in_half_precision_costs_no_more_than_a_plain_one(sim: Any) -> None:
    x, w = torch.randn(8, 768).half(), torch.randn(768, 768).half()
    expected = (x.float() @ w.float().t()).half()
    accepted(sim, "aclnnMatmul", x, w.t(), Out(expected, tolerance=4e-3), 0)
    out = sim.put(torch.zeros(8, 768).half())
    times = {}
    for name, weight in (("plain", w), ("transposed", w.t())):
        a, b = sim.put(x), sim.put(weight)
        best = 1.0
        for _ in range(5):
            start = time.perf_counter()
            sim.cann.ops.aclnnMatmul(a, b, out, 1)
            sim.synchronize()
            best = min(best, time.perf_counter() - start)
        times[name] = best
    assert times["transposed"] < 4 * times["plain"], times


def test_an_absent_optional_tensor_is_an_empty_one_of_any_dtype(sim: Any) -> None:
    """op-plugin gives an empty half as the offset of the output that only int4 weights need."""
    x, w = torch.tensor([[1, -2, 3]], dtype=torch.int8), torch.ones(3, 2, dtype=torch.int8)
    nothing = torch.empty(0, dtype=torch.float16)
    accepted(sim, "aclnnQuantMatmulV5", x, w, torch.tensor([2.0]), torch.tensor([0.5, 1.0]), None,
             None, None, nothing, None, False, False, 0,
             Out(torch.tensor([[2.0, 4.0]]).half()), layouts=["contiguous"])  # fmt: skip


def test_products_of_groups_have_biases_of_their_own_widths(sim: Any) -> None:
    xs, ws = (torch.randn(2, 3), torch.randn(4, 5)), (torch.randn(3, 2), torch.randn(5, 7))
    bias = (torch.randn(2), torch.randn(7))
    xs, ws, bias = (tuple(t.half() for t in ts) for ts in (xs, ws, bias))
    outs = tuple(
        Out((x.float() @ w.float() + b.float()).half(), tolerance=4e-3)
        for x, w, b in zip(xs, ws, bias, strict=True)
    )
    accepted(sim, "aclnnGroupedMatmulV4", xs, ws, bias, *[None] * 9, 0, -1, 0, 0, outs, None, None,
             layouts=["contiguous"])  # fmt: skip


FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4), (4, 5)),
        ((4,), (4,)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((5, 1, 3, 4), (2, 4, 6)),
        ((2, 3, 4), (4,)),
        ((40, 33), (33, 57)),
        ((3, 0), (0, 4)),
        ((0, 3), (3, 4)),
        ((2, 3, 4), (1, 4, 5)),
        ((6, 70, 30), (30, 20)),
    ],
)
def test_products_of_any_rank_equal_torch(sim: Any, dtype: Any, shapes: Any) -> None:
    a, b = values(dtype, *shapes[0]), values(dtype, *shapes[1], seed=1)
    sim.check("aclnnMatmul", a, b, Out((a.double() @ b.double()).to(dtype)), 0)


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


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_with_a_bias_equal_torch(sim: Any, dtype: Any) -> None:
    a, b, c = values(dtype, 6, 20), values(dtype, 20, 9, seed=1), values(dtype, 9, seed=2)
    full = a.double() @ b.double()
    sim.check("aclnnAddmm", c, a, b, 2.0, 0.5, Out((2 * c.double() + 0.5 * full).to(dtype)), 0)
    d = values(dtype, 6, 9, seed=3)
    sim.check("aclnnInplaceAddmm", Out((d.double() - full).to(dtype), d), a, b, 1.0, -1.0, 0)
    nan = torch.full_like(d, float("nan"))
    sim.check("aclnnAddmm", nan, a, b, 0.0, 1.0, Out(full.to(dtype)), 0)
    x, y = values(dtype, 4, 3, 5), values(dtype, 4, 5, 2, seed=1)
    batch = x.double() @ y.double()
    z = values(dtype, 3, 2)
    sim.check("aclnnBatchMatMul", x, y, Out(batch.to(dtype)), 0)
    sim.check(
        "aclnnBaddbmm",
        z.expand(4, 3, 2),
        x,
        y,
        1.0,
        2.0,
        Out((z.double() + 2 * batch).to(dtype)),
        0,
    )
    sim.check("aclnnAddbmm", z, x, y, 1.0, 2.0, Out((z.double() + 2 * batch.sum(0)).to(dtype)), 0)
    v, w = values(dtype, 20), values(dtype, 6)
    sim.check("aclnnMv", a, v, Out((a.double() @ v.double()).to(dtype)), 0)
    sim.check("aclnnDot", v, v, Out((v.double() @ v.double()).to(dtype)))
    sim.check(
        "aclnnAddr",
        a,
        w,
        v,
        1.0,
        2.0,
        Out((a.double() + 2 * torch.outer(w.double(), v.double())).to(dtype)),
    )
