"""Kernels of kv_cache: results equal a reference, and what they refuse."""

from typing import Any

import numpy as np
from numpy_harness import Ops, Out, close, near
from numpy_references import rms, turned

RNG = np.random.default_rng(53)


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def test_caches_in_tiles_keep_columns_together(nops: Ops) -> None:
    key, value = draw(3, 2, 16), draw(3, 2, 16)
    slots = np.array([5, 2, 7], np.int32)
    caches = (
        draw(2, 2, 4, 16),
        draw(2, 2, 4, 16),
    )  # blocks, tiles of columns, rows, columns in a tile
    y, _ = nops(
        "aclnnScatterPaKvCache",
        key,
        [
            Out(caches[0].shape, "float16", caches[0]),
            slots,
            value,
            Out(caches[1].shape, "float16", caches[1]),
            None,
            None,
            None,
            "PA_NZ",
            None,
            None,
            None,
        ],
    )
    expected = caches[0].copy()
    for row, slot in zip(key, slots, strict=True):
        expected[slot // 4, :, slot % 4] = row.reshape(2, 16)
    np.testing.assert_array_equal(y, expected)


def test_projections_are_normalised_rotated_and_kept(nops: Ops) -> None:
    heads, d, tokens, size = (2, 1, 1), 32, 4, 4
    qkv, gq, gk = draw(tokens, 4 * d), draw(d), draw(d)
    cos, sin = draw(tokens, d), draw(tokens, d)
    index = np.array([2, -1, 5, 0])
    q, k, v, *before = nops(
        "aclnnQkvRmsNormRopeCache",
        [qkv, gq, gk, cos, sin, index],
        [
            Out((tokens, 2 * d), "float16"),
            Out((2, 2, size, 16), "float16"),
            Out((2, 2, size, 16), "float16"),
            None,
            None,
            None,
            None,
            (1, tokens, 4, d),
            heads,
            1e-5,
            "PA_NZ",
            None,
            Out((tokens, d), "float16"),
            Out((tokens, d), "float16"),
        ],
    )
    rows = qkv.reshape(tokens, 4, d)
    angles = cos.astype(float)[:, None], sin.astype(float)[:, None]
    close(q.reshape(tokens, 2, d), turned(rms(rows[:, :2], gq), *angles, 0), 4e-3)
    keys = turned(rms(rows[:, 2:3], gk), *angles, 0)[:, 0]
    close(before[0], keys, 4e-3)
    for cache, x in ((k, keys), (v, rows[:, 3])):
        flat = np.zeros((8, d))
        flat[index[index >= 0]] = x[index >= 0]
        close(cache, flat.reshape(2, size, 2, 16).transpose(0, 2, 1, 3), 4e-3)


def test_updates_are_quantised_where_they_land(nops: Ops) -> None:
    self = RNG.integers(-9, 9, (2, 6, 8)).astype(np.int8)
    updates, scale = draw(2, 2, 8), np.full((1, 1, 8), 0.05, np.float32)
    indices = np.array([3, 0], np.int32)
    (y,) = nops(
        "aclnnInplaceQuantScatter",
        [
            Out(self.shape, "int8", self),
            indices,
            updates.astype("bfloat16"),
            scale,
            None,
            -2,
            -1,
            1,
        ],
    )
    expected = self.copy()
    q = np.clip(np.rint(updates.astype("bfloat16").astype(float) / np.float32(0.05)), -128, 127)
    for b, i in enumerate(indices):
        expected[b, i : i + 2] = q[b]
    near(y, expected)


def test_decoding_steps_move_tokens_on(nops: Ops) -> None:
    tokens, samples = np.array([9, 9, 9]), np.array([[5], [6]])
    positions, lengths, slots = np.array([3, 7, 1]), np.array([4, 8, 2]), np.array([0, 0, 0])
    table = np.array([[10, 11, 12], [20, 21, 22]])
    given = [Out((3,), "int64", t) for t in (tokens, positions, lengths, slots)]
    t, p, n, s = nops(
        "aclnnAdvanceStep", given[0], samples, given[1], given[2], given[3], table, 3, 2, 4
    )
    np.testing.assert_array_equal(t, [5, 6, 0])
    np.testing.assert_array_equal(p, [4, 8, 0])
    np.testing.assert_array_equal(n, [5, 9, 2])
    np.testing.assert_array_equal(s, [44, 88, -1])
