"""Kernels of quantization: results equal a reference, and what they refuse."""

import numpy as np
import pytest
from numpy_harness import Ops, Out, bfloat16, close, code, e4m3, e5m2, e8m0, near
from numpy_references import powers, same
from products import on

RNG = np.random.default_rng(71)


def draw(*shape: int, dtype: object = bfloat16) -> np.ndarray:
    return (RNG.standard_normal(shape) * np.exp2(RNG.integers(-6, 6, shape))).astype(dtype)


@on("950")
@pytest.mark.parametrize("to", [e4m3, e5m2])
@pytest.mark.parametrize("axis", [-1, 0])
def test_blocks_share_an_exponent_and_come_back(nops: Ops, to: np.dtype, axis: int) -> None:
    x = draw(3, 80) if axis else draw(80, 3)
    y, scale = powers(x, axis, to)
    found, shared = nops.both(
        "aclnnDynamicMxQuant",
        [x, axis],
        ["rint", code(to), 32, 0],
        [Out(x.shape, to), Out(scale.shape, e8m0)],
    )
    same(shared, scale)
    same(found, y)
    (back,) = nops.both("aclnnAntiMxQuant", found, shared, axis, 0, Out(x.shape))
    close(back, x.astype(np.float64), 0.13)  # e5m2 has two bits; e4m3 saturates up to an eighth


@on("950")
def test_both_axes_and_groups_have_exponents_of_their_own(nops: Ops) -> None:
    x = draw(4, 64, 64)
    (y1, s1), (y2, s2) = powers(x, -1, e4m3), powers(x, -2, e4m3)
    found = nops.both(
        "aclnnDynamicMxQuantWithDualAxis",
        x,
        ["rint", code(e4m3), 0],
        [Out(x.shape, e4m3), Out(s1.shape, e8m0), Out(x.shape, e4m3), Out(s2.shape, e8m0)],
    )
    for given, expected in zip(found, (y1, s1, y2, s2), strict=True):
        same(given, expected)
    rows, ends = draw(130, 4), np.array([40, 130], np.int32)
    y, scale = nops(
        "aclnnGroupedDynamicMxQuant",
        [rows, ends],
        ["rint", code(e4m3), 32],
        [Out(rows.shape, e4m3), Out((130 // 64 + 2, 4, 2), e8m0)],
    )
    for g, (a, b) in enumerate(((0, 40), (40, 130))):
        part, shared = powers(rows[a:b], 0, e4m3)
        same(y[a:b], part)
        same(scale[a // 64 + g :][: len(shared)], shared)


@pytest.mark.parametrize("shape", [(3, 200), (2, 4, 128)])
def test_blocks_of_rows_have_a_scale(nops: Ops, shape: tuple[int, ...]) -> None:
    x = draw(*shape, dtype="float16")
    blocks = -(-shape[-1] // 128)
    y, scale = nops.both(
        "aclnnDynamicBlockQuant",
        x,
        [0.0, "rint", 2, 1, 128],
        [Out(shape, "int8"), Out((*shape[:-1], blocks))],
    )
    for k in range(blocks):
        part = x[..., k * 128 : (k + 1) * 128].astype(np.float64)
        top = np.abs(part).max(-1) / 127
        close(scale[..., k], top)
        near(y[..., k * 128 : (k + 1) * 128], np.rint(part / top[..., None]))


@on("950")
def test_tensors_and_groups_give_their_peak(nops: Ops) -> None:
    x, scale = draw(6, 8, dtype="float32"), np.array([0.5], np.float32)
    y, peak = nops.both(
        "aclnnQuantMax", x, scale, "rint", code(e4m3), Out(x.shape, e4m3), Out((1,))
    )
    same(y, np.clip(x / 0.5, -448, 448).astype(e4m3))
    close(peak, np.abs(x).max()[None])
    scales, ends = np.array([0.5, 2.0], np.float32), np.array([2, 6], np.int64)
    y, peak = nops.both(
        "aclnnGroupedQuantMax", x, scales, ends, "rint", code(e4m3), Out(x.shape, e4m3), Out((2,))
    )
    same(y, np.clip(x / np.repeat(scales, [2, 4])[:, None], -448, 448).astype(e4m3))
    close(peak, [np.abs(x[:2]).max(), np.abs(x[2:]).max()])


def test_kronecker_products_are_quantised_to_four_bits(nops: Ops) -> None:
    x, p1, p2 = (RNG.standard_normal(s).astype(np.float16) for s in ((3, 4, 16), (4, 4), (16, 16)))
    packed, scale = nops.both("aclnnFlatQuant", x, p1, p2, 0.9, Out((3, 4, 2), "int32"), Out((3,)))
    between = (x.astype(np.float64) @ p2.astype(float)).astype(np.float16)
    y = (p1.astype(np.float64) @ between.astype(float)).astype(np.float16).astype(np.float64)
    top = np.abs(y).reshape(3, -1).max(-1)
    close(scale, top / (7 * 0.9), 2e-3)
    nibbles = (
        packed.view(np.uint32)[..., None] >> (4 * np.arange(8, dtype=np.uint32)) & 15
    ).astype(np.int64)
    signed = np.where(nibbles > 7, nibbles - 16, nibbles).reshape(3, 4, 16)
    near(signed, np.clip(np.rint(y * (6.3 / top)[:, None, None]), -8, 7))


def test_rows_are_turned_before_they_are_quantised(nops: Ops) -> None:
    x, turn = draw(3, 2, 24), np.linalg.qr(RNG.standard_normal((8, 8)))[0].astype(bfloat16)
    y, scale = nops.both(
        "aclnnRotateQuant",
        [x, turn, None],
        [-1, "rint", 0, 0.0, False],
        [Out(x.shape, "int8"), Out((3, 2))],
    )
    wide = x.astype(np.float64).reshape(3, 2, 3, 8) @ turn.astype(np.float64)
    wide = wide.reshape(x.shape).astype(np.float32).astype(bfloat16).astype(np.float64)
    peak = np.abs(wide).max(-1) / 127
    close(scale, peak)
    near(y, np.rint(wide / peak[..., None]))
