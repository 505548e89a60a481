"""Kernels of quantization: results equal a reference, and what they refuse."""

from itertools import pairwise

import numpy as np
import pytest
from numpy_harness import Array, Nibbles, Ops, Out, bfloat16, code, e4m3, e8m0
from products import on

RNG = np.random.default_rng(3)


def draw(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(bfloat16)


def shared(x: Array, algorithm: int) -> tuple[Array, Array]:
    """Elements of rows in e4m3, and powers of two in pairs; 1 is the least without overflow."""
    x = x.astype(np.float64)
    pad = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % 64)])
    blocks = pad.reshape(*pad.shape[:-1], -1, 32)
    top = np.abs(blocks).max(-1)
    with np.errstate(divide="ignore"):
        power = np.ceil(np.log2(top / 448)) if algorithm else np.floor(np.log2(top)) - 8
    scale = np.exp2(np.clip(np.where(top > 0, power, -127), -127, 127))
    y = (blocks / scale[..., None]).reshape(pad.shape)[..., : x.shape[-1]]
    return np.clip(y, -448, 448).astype(np.float32), scale.reshape(*scale.shape[:-1], -1, 2)


def down(x: Array, algorithm: int) -> tuple[Array, Array]:
    y, scale = shared(x.T, algorithm)
    return y.T, np.moveaxis(scale, 0, 1)


def near(given: Array, exact: Array) -> None:
    """float32 arithmetic before the rounding may lead to the next step of three bits."""
    exact = np.clip(exact, -448, 448)
    np.testing.assert_allclose(given.astype(np.float64), exact, rtol=0.0646, atol=2**-9)


def swiglu(x: Array) -> Array:
    a, b = np.split(x.astype(np.float64), 2, -1)
    return a / (1 + np.exp(-a)) * b


@on("950")
@pytest.mark.parametrize("algorithm", [0, 1])
def test_gated_rows_share_exponents(nops: Ops, algorithm: int) -> None:
    x = draw(6, 192)
    y, scale = shared(swiglu(x), algorithm)
    found, powers = nops(
        "aclnnSwigluMxQuant",
        [x, None],
        [-1, True, 0, 7.0, 1.702, 1.0, 0, -1, code(e4m3), "rint", algorithm, 0.0],
        [Out(y.shape, e4m3), Out(scale.shape, e8m0)],
    )
    np.testing.assert_array_equal(powers.astype(np.float64), scale)
    near(found, y)


@on("950")
@pytest.mark.parametrize("groups", [None, [40, 100]])
def test_gated_matrices_share_exponents_both_ways(nops: Ops, groups: list[int] | None) -> None:
    x, up = draw(100, 128), draw(100, 64)
    ends = None if groups is None else np.array(groups)
    exact = swiglu(x)
    a, b = np.split(x.astype(np.float64), 2, -1)
    s, g = 1 / (1 + np.exp(-a)), up.astype(np.float64)
    back = np.concatenate([g * b * s * (1 + a * (1 - s)), g * a * s], -1)
    for op, args, value in (
        ("aclnnSwigluMxQuantWithDualAxis", [x], exact),
        ("aclnnSwigluBackwardMxQuantWithDualAxis", [x, up], back),
    ):
        y1, s1 = shared(value, 1)
        bounds = [0, *(groups or [100])]
        parts = [down(value[i:j], 1) for i, j in pairwise(bounds)]
        lines = 100 // 64 + len(groups) if groups else 2
        got = nops(
            op,
            [*args, ends],
            [True, "rint", 1, code(e4m3), 0.0],
            [
                Out(y1.shape, e4m3),
                Out(s1.shape, e8m0),
                Out(y1.shape, e4m3),
                Out((lines, y1.shape[1], 2), e8m0),
            ],
        )
        near(got[0], y1)
        np.testing.assert_array_equal(got[1].astype(np.float64), s1)
        near(got[2], np.concatenate([p[0] for p in parts]))
        for k, (begin, (_, scale)) in enumerate(zip(bounds, parts, strict=False)):
            line = begin // 64 + k
            np.testing.assert_array_equal(got[3][line : line + 1].astype(np.float64), scale[:1])


@on("950")
def test_squares_share_one_exponent_in_both_orders(nops: Ops) -> None:
    x = draw(2, 40, 70)
    y, across, along = nops(
        "aclnnDynamicBlockMxQuant",
        x,
        ["rint", code(e4m3), 0, 0.0],
        [Out(x.shape, e4m3), Out((2, 40, 2, 2), e8m0), Out((2, 1, 70, 2), e8m0)],
    )
    wide = np.repeat(across.astype(np.float64).reshape(2, 40, 4), 32, -1)[..., :70]
    high = np.repeat(np.moveaxis(along.astype(np.float64), -1, 2).reshape(2, 2, 70), 32, 1)[:, :40]
    np.testing.assert_array_equal(wide, high)
    assert len(np.unique(wide[0, :32, :32])) == 1
    near(y, x.astype(np.float64) / wide)
    codes, table = RNG.integers(0, 8, x.shape), np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    _, scale = shared(x, 0)
    found, wide, _ = nops("aclnnMxToBlockMxQuant", Nibbles(codes, "FLOAT4_E2M1"),
                          scale.astype(e8m0), code(e4m3), Out(x.shape, e4m3),
                          Out((2, 40, 2, 2), e8m0), Out((2, 1, 70, 2), e8m0))  # fmt: skip
    spread = [np.repeat(v.astype(np.float64).reshape(2, 40, 4), 32, -1)[..., :70]
              for v in (scale, wide)]  # fmt: skip
    exact = table[codes] * spread[0]
    np.testing.assert_allclose(found.astype(np.float64) * spread[1], exact, rtol=0.13, atol=1e-4)


@on("950")
def test_groups_are_quantised_by_their_peaks(nops: Ops) -> None:
    x, weight, sizes = draw(6, 16), RNG.random((6, 1)).astype(np.float32), np.array([2, 4])
    exact = swiglu(x) * weight
    y, scale, origin = nops(
        "aclnnSwigluGroupQuant",
        [x, weight, sizes, None, code(e4m3)],
        [3, 0, False, 0.0, 0.0, True],
        [Out((6, 8), e4m3), Out((2,)), Out((6, 8), bfloat16)],
    )
    peaks = np.array([np.abs(exact[:2]).max(), np.abs(exact[2:]).max()]) / 448
    np.testing.assert_allclose(scale, peaks, rtol=1e-5)
    np.testing.assert_allclose(origin.astype(np.float64), exact, rtol=8e-3, atol=1e-6)
    near(y, exact / np.repeat(peaks, sizes)[:, None])
