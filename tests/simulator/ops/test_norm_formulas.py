"""Kernels of norm: results equal a reference, and what they refuse."""

from __future__ import annotations

import numpy as np
from numpy_harness import Ops, Out, bfloat16, close, code, e4m3, e8m0
from products import on

RNG = np.random.default_rng(71)
EMAX = {"float8_e4m3fn": 8, "float8_e5m2": 15}
TOP = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


def draw(*shape: int, dtype: object = bfloat16) -> np.ndarray:
    return (RNG.standard_normal(shape) * np.exp2(RNG.integers(-6, 6, shape))).astype(dtype)


def powers(x: np.ndarray, axis: int, to: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Elements in the small type, and the exponents in pairs, as the documents lay them out."""
    x = np.moveaxis(x.astype(np.float32), axis, -1)
    pad = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % 64)])
    blocks = pad.reshape(*pad.shape[:-1], -1, 32)
    top = np.abs(blocks).max(-1)
    with np.errstate(divide="ignore"):
        shared = np.where(top > 0, np.floor(np.log2(top)) - EMAX[to.name], -127)
    scale = np.exp2(np.clip(shared, -127, 127)).astype(np.float32)
    y = (blocks / scale[..., None]).reshape(pad.shape)[..., : x.shape[-1]]
    y = np.clip(y, -TOP[to.name], TOP[to.name]).astype(to)
    pairs = np.moveaxis(scale.reshape(*scale.shape[:-1], -1, 2), -2, axis - 1 if axis < 0 else axis)
    return np.moveaxis(y, -1, axis), pairs


def same(given: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(given.astype(np.float32), expected.astype(np.float32))


@on("950")
def test_norms_end_in_shared_exponents(nops: Ops) -> None:
    a, b, gamma = draw(3, 64), draw(3, 64), draw(64)
    x = a.astype(np.float64) + b.astype(np.float64)
    rstd = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    y, scale = powers((x * rstd * gamma.astype(float)).astype(np.float32), -1, e4m3)
    found, kept, shared, r = nops.both(
        "aclnnAddRmsNormDynamicMxQuant",
        a,
        b,
        gamma,
        None,
        1e-6,
        0,
        "rint",
        code(e4m3),
        True,
        Out(a.shape, e4m3),
        Out(a.shape, bfloat16),
        Out(scale.shape, e8m0),
        Out((3, 1)),
    )
    same(shared, scale)
    assert (found.astype(np.float32) != y.astype(np.float32)).mean() < 0.02
    close(kept, x)
    close(r, rstd)
