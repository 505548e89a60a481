"""Copies, creation, slices, joins, indexing and products against torch over dtypes and layouts."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_harness import Out, accepted

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
DTYPES = [*FLOATS, torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool]


WHOLE = torch.empty(0, dtype=torch.int64)  # how clients say "all of this dim" in an index list


def values(dtype: Any, *shape: int, seed: int = 0) -> Any:
    g = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=g).bool()
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == torch.uint8 else -5, 6, shape, generator=g).to(dtype)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_cast_equals_torch(sim: Any, dtype: Any, to: Any) -> None:
    x = values(dtype, 5, 6) * (3 if dtype.is_floating_point else 1)
    sim.check("aclnnCast", x, to, Out(x.to(to)))
    sim.check("aclnnInplaceCopy", Out(x.to(to)), x)


def test_rounding_to_small_floats_is_to_nearest_even(sim: Any) -> None:
    x = torch.tensor(
        [
            1e-8,
            6e-8,
            5.96e-8,
            2.98e-8,
            65504.0,
            65519.9,
            65520.0,
            1.0009765,
            1e-5,
            3.0e38,
            3.4e38,
            float("nan"),
            -0.0,
            1.00390625,
            1.01171875,
        ]
    )
    for to in (torch.float16, torch.bfloat16):
        sim.check("aclnnCast", x, to, Out(x.to(to)))
        every = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(to)
        sim.check("aclnnCast", every, torch.float32, Out(every.float()))
        sim.check("aclnnCast", every.float(), to, Out(every))


@pytest.mark.parametrize("dtype", DTYPES)
def test_fills_and_copies_reach_only_the_view(sim: Any, dtype: Any) -> None:
    x, y = values(dtype, 4, 5, 3), values(dtype, 5, 1, seed=1)
    sim.check("aclnnInplaceZero", Out(torch.zeros_like(x), x))
    sim.check("aclnnInplaceOne", Out(torch.ones_like(x), x))
    sim.check("aclnnInplaceFillScalar", Out(torch.full_like(x, 3), x), 3)
    sim.check("aclnnInplaceCopy", Out(y.expand(4, 5, 3).contiguous(), x), y)
    sim.check("aclnnInplaceFillTensor", Out(torch.full_like(x, 1), x), torch.ones((), dtype=dtype))


def test_in_place_copy_accepts_flipped_and_permuted_views(sim: Any) -> None:
    x = torch.randn(3, 4, 5, 6)
    sim.check("aclnnInplaceCopy", Out(x.permute(2, 0, 3, 1).contiguous()), x.permute(2, 0, 3, 1))
    for dims in ((0,), (1, 3), (0, 1, 2, 3)):
        sim.check("aclnnFlip", x, dims, Out(x.flip(dims)))


@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex128])
def test_transposed_copies_go_by_tiles(sim: Any, dtype: Any) -> None:
    """Sizes around a tile's 32 rows and columns, alone, in batches and with steps between rows."""
    for rows, columns in ((16, 16), (33, 65), (31, 100), (128, 47)):
        x = (
            values(dtype, rows, columns)
            if dtype != torch.complex128
            else torch.randn(rows, columns, dtype=dtype)
        )
        sim.check("aclnnInplaceCopy", Out(x.t().contiguous()), x.t())
        many = torch.stack([x, x.flip(0), x.flip(1)])
        sim.check("aclnnInplaceCopy", Out(many.mT.contiguous()), many.mT)
        sim.check(
            "aclnnInplaceCopy", Out(many.permute(2, 0, 1).contiguous()), many.permute(2, 0, 1)
        )
        apart = torch.cat([x, x], 1)[:, :columns]
        sim.check("aclnnInplaceCopy", Out(apart.t().contiguous()), apart.t())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.float16])
def test_ranges_equal_torch(sim: Any, dtype: Any) -> None:
    sim.check("aclnnArange", 2, 17, 3, Out(torch.arange(2, 17, 3, dtype=dtype)))
    sim.check("aclnnArange", 9, -3, -2, Out(torch.arange(9, -3, -2, dtype=dtype)))
    sim.check("aclnnRange", 2, 17, 3, Out(torch.arange(2, 18, 3, dtype=dtype)))
    sim.check("aclnnEye", 3, 5, Out(torch.eye(3, 5, dtype=dtype)))
    if dtype.is_floating_point:
        sim.check("aclnnArange", 0.0, 1.0, 0.1, Out(torch.arange(0, 1, 0.1, dtype=dtype)))
        sim.check("aclnnLinspace", -1.0, 2.0, 7, Out(torch.linspace(-1, 2, 7, dtype=dtype)))


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
    sim.check("aclnnMatmul", a, b, Out((a.double() @ b.double()).to(dtype)), 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("rows", [(), (1,), (3,), (4,), (5,), (1, 2)])
@pytest.mark.parametrize(("depth", "cols"), [(1, 1), (3, 70), (67, 1), (130, 9), (518, 1100)])
def test_a_few_rows_by_a_matrix_of_halves_equal_torch(
    sim: Any, dtype: Any, rows: tuple[int, ...], depth: int, cols: int
) -> None:
    # Up to four rows read the matrix as it stands, whose rows or columns may lie apart.
    a, b = values(dtype, *rows, depth), values(dtype, depth, cols, seed=1)
    product = a.double() @ b.double()
    sim.check("aclnnMatmul", a, b, Out(product.to(dtype)), 1)
    sim.check("aclnnMatmul", a, b.t().contiguous().t(), Out(product.to(dtype)), 1)
    same = b[:, :1].expand(depth, cols)
    sim.check("aclnnMatmul", a, same, Out((a.double() @ same.double()).to(dtype)), 1)
    if rows == (3,):
        bias = values(dtype, cols, seed=2)
        sim.check("aclnnAddmm", bias, a, b, 1.0, 1.0, Out((product + bias.double()).to(dtype)), 1)


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
    accepted(sim, "aclnnMm", a, b, Out(product.float(), tolerance=0.0), 1)
    accepted(sim, "aclnnMm", a, b, Out(product.bfloat16(), tolerance=0.0), 1)
    same = b[:1].expand(depth, cols)
    sums = (a.double() @ same.double()).bfloat16()
    accepted(sim, "aclnnMm", a, same, Out(sums, tolerance=0.0), 1)


@pytest.mark.parametrize("batches", [2, 7, 16])
def test_batches_of_bfloat16_multiply_exactly(sim: Any, batches: int) -> None:
    a, b = values(torch.int64, batches, 9, 70), values(torch.int64, batches, 70, 40, seed=1)
    start = values(torch.int64, 9, 40, seed=2)
    a16, b16, start16 = a.bfloat16(), b.bfloat16(), start.bfloat16()
    accepted(sim, "aclnnBatchMatMul", a16, b16, Out((a @ b).bfloat16(), tolerance=0.0), 1)
    accepted(sim, "aclnnMatmul", a16, b16[:1], Out((a @ b[:1]).bfloat16(), tolerance=0.0), 1)
    total = (start + (a @ b).sum(0)).bfloat16()
    accepted(sim, "aclnnAddbmm", start16, a16, b16, 1.0, 1.0, Out(total, tolerance=0.0), 1)


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
    for given, _ in sim.run("aclnnMm", a, b, Out(expected), 1):
        assert torch.equal(given, expected)


def test_nan_and_infinity_of_bfloat16_stay_in_their_rows_and_columns(sim: Any) -> None:
    a, b = values(torch.bfloat16, 19, 70), values(torch.bfloat16, 70, 45, seed=1)
    a[17, 69], b[3, 44], a[2, 5] = float("nan"), float("inf"), float("-inf")
    accepted(sim, "aclnnMm", a, b, Out((a.double() @ b.double()).bfloat16()), 1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_with_a_bias_equal_torch(sim: Any, dtype: Any) -> None:
    a, b, c = values(dtype, 6, 20), values(dtype, 20, 9, seed=1), values(dtype, 9, seed=2)
    full = a.double() @ b.double()
    sim.check("aclnnAddmm", c, a, b, 2.0, 0.5, Out((2 * c.double() + 0.5 * full).to(dtype)), 1)
    d = values(dtype, 6, 9, seed=3)
    sim.check("aclnnInplaceAddmm", Out((d.double() - full).to(dtype), d), a, b, 1.0, -1.0, 1)
    nan = torch.full_like(d, float("nan"))
    sim.check("aclnnAddmm", nan, a, b, 0.0, 1.0, Out(full.to(dtype)), 1)
    x, y = values(dtype, 4, 3, 5), values(dtype, 4, 5, 2, seed=1)
    batch = x.double() @ y.double()
    z = values(dtype, 3, 2)
    sim.check("aclnnBatchMatMul", x, y, Out(batch.to(dtype)), 1)
    sim.check(
        "aclnnBaddbmm",
        z.expand(4, 3, 2),
        x,
        y,
        1.0,
        2.0,
        Out((z.double() + 2 * batch).to(dtype)),
        1,
    )
    sim.check("aclnnAddbmm", z, x, y, 1.0, 2.0, Out((z.double() + 2 * batch.sum(0)).to(dtype)), 1)
    v, w = values(dtype, 20), values(dtype, 6)
    sim.check("aclnnMv", a, v, Out((a.double() @ v.double()).to(dtype)), 1)
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


@pytest.mark.parametrize("dtype", DTYPES)
def test_joins_and_splits_equal_torch(sim: Any, dtype: Any) -> None:
    a, b = values(dtype, 3, 4, 5), values(dtype, 3, 2, 5, seed=1)
    sim.check("aclnnCat", [a, b, a], 1, Out(torch.cat([a, b, a], 1)))
    sim.check("aclnnStack", [a, a + a], -1, Out(torch.stack([a, a + a], -1)))
    sim.check("aclnnSplitWithSize", a, (1, 3), 1, [Out(p) for p in a.split([1, 3], 1)])
    sim.check("aclnnSplitTensor", a, 2, 2, [Out(p) for p in a.split(2, 2)])
    sim.check("aclnnRepeat", a, (2, 1, 3, 2), Out(a.repeat(2, 1, 3, 2)))
    sim.check("aclnnPermute", a, (2, 0, 1), Out(a.permute(2, 0, 1).contiguous()))
    sim.check("aclnnRoll", a, (2, -1), (1, 2), Out(a.roll((2, -1), (1, 2))))
    sim.check("aclnnRoll", a, (7,), (), Out(a.roll(7)))
    sim.check("aclnnSlice", a, 1, -3, 100, 2, Out(a[:, -3:100:2].contiguous()))
    sim.check("aclnnFlatten", a, 2, Out(a.reshape(12, 5)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("diagonal", [-6, -1, 0, 2, 9])
def test_triangles_and_diagonals_equal_torch(sim: Any, dtype: Any, diagonal: int) -> None:
    a = values(dtype, 2, 4, 5)
    sim.check("aclnnTriu", a, diagonal, Out(a.triu(diagonal)))
    sim.check("aclnnTril", a, diagonal, Out(a.tril(diagonal)))
    sim.check("aclnnInplaceTril", Out(a.tril(diagonal), a), diagonal)
    sim.check("aclnnDiag", a[0, 0], diagonal, Out(a[0, 0].diag(diagonal)))
    if -4 <= diagonal <= 5:
        sim.check("aclnnDiag", a[0], diagonal, Out(a[0].diag(diagonal)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_strided_assignment_equals_torch(sim: Any, dtype: Any) -> None:
    x = values(dtype, 6, 8)
    y = values(dtype, 2, 3, seed=1)
    expected = x.clone()
    expected[1:5:2, 2:8:2] = y
    sim.check("aclnnStridedSliceAssignV2", Out(expected, x), y, (1, 2), (5, 8), (2, 2), (0, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_equals_torch(sim: Any, dtype: Any, accumulate: bool) -> None:
    if accumulate and dtype == torch.bool:
        return
    x, i, j = values(dtype, 5, 6, 4), torch.tensor([0, 4, -1, 2]), torch.tensor([[1], [5]])
    cases = [
        ((i,), (4, 6, 4)),
        ((WHOLE, i), (5, 4, 4)),
        ((j.clamp(max=4), i), (2, 4, 4)),
        ((i, WHOLE, i.clamp(max=3)), (4, 6)),
        ((WHOLE, j, i.clamp(max=3)), (5, 2, 4)),
    ]
    for indices, shape in cases:
        v = values(dtype, *shape, seed=1)
        at = tuple(slice(None) if k is WHOLE else k for k in indices)
        expected = x.clone()
        if accumulate:
            places = torch.arange(x.numel()).reshape(x.shape)[at].reshape(-1)
            expected = x.double().clone()
            expected.view(-1).index_add_(0, places, v.double().reshape(-1))
            expected = expected.to(dtype)
        else:
            v = x.flatten()[:1].expand(shape).contiguous()  # duplicates agree
            expected[at] = v
        sim.check("aclnnIndexPutImpl", Out(expected, x), indices, v, accumulate, False)


def test_index_put_takes_masks_and_broadcast_values(sim: Any) -> None:
    x, mask = torch.randn(5, 6), torch.rand(5, 6) > 0.5
    expected = x.clone()
    expected[mask] = 7.0
    sim.check("aclnnIndexPutImpl", Out(expected, x), (mask,), torch.tensor([7.0]), False, False)
    expected = x.clone()
    expected[mask[:, 0]] = 3.0
    sim.check("aclnnIndexPutImpl", Out(expected, x), (mask[:, 0],), torch.tensor(3.0), False, False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_advanced_reading_equals_torch(sim: Any, dtype: Any) -> None:
    x, i = values(dtype, 5, 6, 4), torch.tensor([[0, 4], [-1, 2]])
    sim.check("aclnnIndex", x, (i,), Out(x[i]))
    sim.check("aclnnIndex", x, (WHOLE, i), Out(x[:, i]))
    sim.check("aclnnIndex", x, (i, WHOLE, i.clamp(max=3)), Out(x[i, :, i.clamp(max=3)]))
    k = torch.tensor([3, 0, 3])
    for d in range(3):
        sim.check("aclnnIndexSelect", x, d, k, Out(x.index_select(d, k)))
        sim.check("aclnnIndexSelect", x, d, k.int(), Out(x.index_select(d, k)))
        at = torch.randint(0, 4, (3, 2, 4))
        sim.check("aclnnGather", x, d, at, Out(x.gather(d, at)))
    sim.check("aclnnGatherV2", x, 1, i.abs(), Out(x[:, i.abs()]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.int64])
def test_scatter_family_equals_torch(sim: Any, dtype: Any) -> None:
    x, src = values(dtype, 5, 6), values(dtype, 4, 6, seed=1)
    at = torch.stack([torch.randperm(5)[:4] for _ in range(6)], 1)
    sim.check("aclnnScatter", x, 0, at, src, 0, Out(x.scatter(0, at, src)))
    sim.check("aclnnScatter", x, 0, at, src, 1, Out(x.scatter(0, at, src, reduce="add")))
    sim.check("aclnnInplaceScatter", Out(x.scatter(0, at, src), x), 0, at, src, 0)
    sim.check("aclnnScatterAdd", x, 0, at, src, Out(x.scatter_add(0, at, src)))
    sim.check("aclnnScatterValue", x, 0, at, 3, 0, Out(x.scatter(0, at, 3)))
    k = torch.tensor([4, 0, 2])
    part = values(dtype, 3, 6, seed=2)
    sim.check("aclnnIndexAdd", x, 0, k, part, 2, Out(x.index_add(0, k, part, alpha=2)))
    sim.check("aclnnInplaceIndexCopy", Out(x.index_copy(0, k, part), x), 0, k, part)
    sim.check("aclnnInplaceIndexFill", Out(x.index_fill(1, k, 7), x), 1, k, 7)


def test_index_out_of_range_fails_on_the_stream_and_writes_nothing_outside(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, bad = torch.randn(5, 6), torch.tensor([0, 5])
    calls = [
        ("aclnnIndex", (x, (bad,), Out(x[:2]))),
        ("aclnnIndexSelect", (x, 0, bad, Out(x[:2]))),
        ("aclnnIndexPutImpl", (Out(x, x), (bad,), x[:2], False, False)),
    ]
    for op, args in calls:
        with pytest.raises(AclError) as caught:
            sim.run(op, *args)
        assert caught.value.code == 507015
    sim.check("aclnnExp", x, Out(x.exp()))
