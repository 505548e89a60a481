"""Kernels of reduction: results equal a reference, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from numpy_harness import Ops, Out, close, near
from numpy_references import rms, turned

RNG = np.random.default_rng(53)


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def test_rows_go_to_their_slots_and_come_back(nops: Ops) -> None:
    key, value = draw(4, 2, 16), draw(4, 2, 32)
    slots = np.array([5, -1, 0, 11], np.int32)
    caches = draw(3, 4, 2, 16), draw(3, 4, 2, 32)
    rest = (None, None, None, "Norm", None, None, None)
    found = nops.both(
        "aclnnScatterPaKvCache",
        key,
        [
            Out(caches[0].shape, "float16", caches[0]),
            slots,
            value,
            Out(caches[1].shape, "float16", caches[1]),
            *rest,
        ],
    )
    for cache, rows, y in zip(caches, (key, value), found, strict=True):
        expected = cache.reshape(12, 2, -1).copy()
        expected[slots[slots >= 0]] = rows[slots >= 0]
        np.testing.assert_array_equal(y.reshape(expected.shape), expected)
    table, lengths = np.array([[1, 0], [2, 2]], np.int32), np.array([3, 5], np.int32)
    k, v = nops.both(
        "aclnnGatherPaKvCache",
        [*caches, table, lengths],
        [Out((8, 2, 16), "float16"), Out((8, 2, 32), "float16"), None, "Norm", False],
    )
    for cache, y in zip(caches, (k, v), strict=True):
        parts = [cache[1, :3], cache[2], cache[2, :1]]
        np.testing.assert_array_equal(y, np.concatenate(parts))


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
        [kv, gamma, cos, sin, index, *outs, *scales, None, None],
        [1e-5, mode, True],
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
