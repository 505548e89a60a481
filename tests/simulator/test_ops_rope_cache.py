"""Rotations, caches in blocks and what fills them, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy_harness import Ops, Out, close, near
from products import on

RNG = np.random.default_rng(53)


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def turned(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, mode: int) -> np.ndarray:
    x = x.astype(np.float64)
    if mode == 3:
        x, mode = np.concatenate([x[..., ::2], x[..., 1::2]], -1), 0
    if mode == 0:
        a, b = np.split(x, 2, -1)
        other = np.concatenate([-b, a], -1)
    elif mode == 1:
        other = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    else:
        a, b, c, d = np.split(x, 4, -1)
        other = np.concatenate([-b, a, -d, c], -1)
    return x * cos + other * sin


def rms(x: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gamma.astype(np.float64)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_gradients_of_rotations_equal_differences(nops: Ops, mode: int) -> None:
    dy, x = draw(2, 3, 2, 8, dtype="float32"), draw(2, 3, 2, 8, dtype="float32")
    cos, sin = draw(1, 3, 1, 8, dtype="float32"), draw(1, 3, 1, 8, dtype="float32")
    dx, dcos, dsin = nops.both(
        "aclnnRotaryPositionEmbeddingGrad",
        dy,
        cos,
        sin,
        x,
        mode,
        Out(x.shape),
        Out(cos.shape),
        Out(cos.shape),
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
        positions,
        q,
        k,
        table,
        sections or None,
        12,
        neox,
        Out(q.shape),
        Out(k.shape),
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


def test_rows_go_to_their_slots_and_come_back(nops: Ops) -> None:
    key, value = draw(4, 2, 16), draw(4, 2, 32)
    slots = np.array([5, -1, 0, 11], np.int32)
    caches = draw(3, 4, 2, 16), draw(3, 4, 2, 32)
    rest = (None, None, None, "Norm", None, None, None)
    found = nops.both(
        "aclnnScatterPaKvCache",
        key,
        Out(caches[0].shape, "float16", caches[0]),
        slots,
        value,
        Out(caches[1].shape, "float16", caches[1]),
        *rest,
    )
    for cache, rows, y in zip(caches, (key, value), found, strict=True):
        expected = cache.reshape(12, 2, -1).copy()
        expected[slots[slots >= 0]] = rows[slots >= 0]
        np.testing.assert_array_equal(y.reshape(expected.shape), expected)
    table, lengths = np.array([[1, 0], [2, 2]], np.int32), np.array([3, 5], np.int32)
    k, v = nops.both(
        "aclnnGatherPaKvCache",
        *caches,
        table,
        lengths,
        Out((8, 2, 16), "float16"),
        Out((8, 2, 32), "float16"),
        None,
        "Norm",
        False,
    )
    for cache, y in zip(caches, (k, v), strict=True):
        parts = [cache[1, :3], cache[2], cache[2, :1]]
        np.testing.assert_array_equal(y, np.concatenate(parts))


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
    )
    expected = caches[0].copy()
    for row, slot in zip(key, slots, strict=True):
        expected[slot // 4, :, slot % 4] = row.reshape(2, 16)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("mode", ["Norm", "PA", "PA_NZ", "PA_BLK_BNSD"])
@pytest.mark.parametrize("quant", [False, True])
def test_latent_keys_are_normalised_rotated_and_kept(nops: Ops, mode: str, quant: bool) -> None:
    norm, rope, batch, tokens, size = 64, 32, 2, 3, 4
    kv, gamma = draw(batch, 1, tokens, norm + rope), draw(norm)
    cos, sin = draw(batch, 1, tokens, rope), draw(batch, 1, tokens, rope)
    dtype = "int8" if quant else "float16"
    lead = (batch, 1, 5) if mode == "Norm" else (3, size, 1)
    if mode == "Norm":
        index = np.array([[1, 0, 4], [2, 3, -1]])
    elif "BLK" in mode:
        index = np.array([4, 0])
    else:
        index = np.array([3, 7, -1, 0, 9, 5])
    scales = [np.full(n, 20.0, np.float32) if quant else None for n in (rope, norm)]
    outs = Out((*lead, rope), dtype), Out((*lead, norm), dtype)
    extra = (Out((batch, 1, tokens, rope), "float16"), Out((batch, 1, tokens, norm), "float16"))
    found = nops(
        "aclnnKvRmsNormRopeCache",
        kv,
        gamma,
        cos,
        sin,
        index,
        *outs,
        *scales,
        None,
        None,
        1e-5,
        mode,
        True,
        *extra,
    )
    keys = turned(kv[..., norm:], cos.astype(float), sin.astype(float), 3)[:, 0]
    values = rms(kv[..., :norm], gamma)[:, 0]
    close(found[2][:, 0], keys, 3e-3)
    close(found[3][:, 0], values, 3e-3)
    for rows, cache in zip((keys, values), found[:2], strict=True):
        wide = rows.shape[-1]
        flat = np.zeros((cache.size // wide, wide))
        for b in range(batch):
            for t in range(tokens):
                slot = {
                    "Norm": lambda b, t: index[b, t] + (b * 5 if index[b, t] >= 0 else 0),
                    "PA_BLK_BNSD": lambda b, t: index[b] + t,
                }.get(mode, lambda b, t: index[b * tokens + t])(b, t)
                if slot >= 0:
                    flat[slot] = (
                        np.clip(np.rint(rows[b, t] * 20), -128, 127) if quant else rows[b, t]
                    )
        if mode == "PA_NZ":
            w = 32 if quant else 16
            flat = flat.reshape(3, size, wide // w, w).transpose(0, 2, 1, 3)
        if quant:
            near(cache.reshape(-1), flat.reshape(-1))
        else:
            close(cache.reshape(-1), flat.reshape(-1), 3e-3)


def test_projections_are_normalised_rotated_and_kept(nops: Ops) -> None:
    heads, d, tokens, size = (2, 1, 1), 32, 4, 4
    qkv, gq, gk = draw(tokens, 4 * d), draw(d), draw(d)
    cos, sin = draw(tokens, d), draw(tokens, d)
    index = np.array([2, -1, 5, 0])
    q, k, v, *before = nops(
        "aclnnQkvRmsNormRopeCache",
        qkv,
        gq,
        gk,
        cos,
        sin,
        index,
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
        Out(self.shape, "int8", self),
        indices,
        updates.astype("bfloat16"),
        scale,
        None,
        -2,
        -1,
        1,
    )
    expected = self.copy()
    q = np.clip(np.rint(updates.astype("bfloat16").astype(float) / np.float32(0.05)), -128, 127)
    for b, i in enumerate(indices):
        expected[b, i : i + 2] = q[b]
    near(y, expected)
