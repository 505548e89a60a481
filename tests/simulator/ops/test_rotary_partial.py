"""Kernels of rotary: results equal a reference, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from numpy_harness import Ops, Out, close
from numpy_references import turned
from products import on

RNG = np.random.default_rng(53)


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_gradients_of_rotations_equal_differences(nops: Ops, mode: int) -> None:
    dy, x = draw(2, 3, 2, 8, dtype="float32"), draw(2, 3, 2, 8, dtype="float32")
    cos, sin = draw(1, 3, 1, 8, dtype="float32"), draw(1, 3, 1, 8, dtype="float32")
    dx, dcos, dsin = nops.both(
        "aclnnRotaryPositionEmbeddingGrad",
        [dy, cos, sin, x, mode],
        [Out(x.shape), Out(cos.shape), Out(cos.shape)],
    )
    basis = np.eye(8)
    # The rotation is linear: its transpose is read off what it makes of unit vectors.
    for t in range(3):
        matrix = turned(basis, cos[0, t, 0], sin[0, t, 0], mode)
        close(dx[:, t], dy[:, t].astype(np.float64) @ matrix.T)
    one, zero = np.ones(8), np.zeros(8)
    close(dcos, (dy * turned(x, one, zero, mode)).sum((0, 2), keepdims=True), 1e-4)
    close(dsin, (dy * turned(x, zero, one, mode)).sum((0, 2), keepdims=True), 1e-4)


def test_slices_rotate_in_place_and_back(nops: Ops) -> None:
    x, cos, sin = draw(2, 3, 2, 12), draw(2, 3, 1, 8), draw(2, 3, 1, 8)
    (y,) = nops.both(
        "aclnnInplacePartialRotaryMul", Out(x.shape, "float16", x), cos, sin, 1, (4, 12)
    )
    np.testing.assert_array_equal(y[..., :4], x[..., :4])
    close(y[..., 4:], turned(x[..., 4:], cos.astype(float), sin.astype(float), 1), 2e-3)


@on("950")
def test_interleaved_rows_come_out_in_halves(nops: Ops) -> None:
    x, cos, sin = draw(2, 3, 4, 64), draw(2, 1, 4, 64), draw(2, 1, 4, 64)
    (y,) = nops.both("aclnnInterleaveRope", x, cos, sin, Out(x.shape, "float16"))
    close(y, turned(x, cos.astype(float), sin.astype(float), 3), 3e-3)


@pytest.mark.parametrize("neox", [False, True])
@pytest.mark.parametrize("sections", [(), (1, 2, 1)])
def test_tokens_rotate_by_their_positions(nops: Ops, neox: bool, sections: tuple[int, ...]) -> None:
    q, k, table = (
        draw(5, 2 * 12, dtype="float32"),
        draw(5, 12, dtype="float32"),
        draw(9, 8, dtype="float32"),
    )
    positions = RNG.integers(0, 9, (3, 5) if sections else (5,))
    outs = nops.both(
        "aclnnRopeWithSinCosCache",
        [positions, q, k, table, sections or None],
        [12, neox],
        [Out(q.shape), Out(k.shape)],
    )
    rows = np.repeat(np.arange(3), sections) if sections else np.zeros(4, int)
    where = positions[rows] if sections else np.repeat(positions[None], 4, 0)  # [column, token]
    cos, sin = (
        np.stack([part[where[i], i] for i in range(4)], -1) for part in (table[:, :4], table[:, 4:])
    )
    for x, y in ((q, outs[0]), (k, outs[1])):
        heads = x.reshape(5, -1, 12).astype(np.float64)
        expected = heads.copy()
        a, b = (heads[..., :4], heads[..., 4:8]) if neox else (heads[..., :8:2], heads[..., 1:8:2])
        u, v = a * cos[:, None] - b * sin[:, None], b * cos[:, None] + a * sin[:, None]
        if neox:
            expected[..., :4], expected[..., 4:8] = u, v
        else:
            expected[..., :8:2], expected[..., 1:8:2] = u, v
        close(y.reshape(expected.shape), expected)
