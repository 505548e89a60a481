"""Kernels of norm: results equal a reference, and what they refuse."""

import numpy as np
from numpy_harness import Ops, Out, bfloat16, close, code, e4m3, e8m0
from numpy_references import powers, same
from products import on

RNG = np.random.default_rng(71)


def draw(*shape: int, dtype: object = bfloat16) -> np.ndarray:
    return (RNG.standard_normal(shape) * np.exp2(RNG.integers(-6, 6, shape))).astype(dtype)


@on("950")
def test_norms_end_in_shared_exponents(nops: Ops) -> None:
    a, b, gamma = draw(3, 64), draw(3, 64), draw(64)
    x = a.astype(np.float64) + b.astype(np.float64)
    rstd = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    y, scale = powers((x * rstd * gamma.astype(float)).astype(np.float32), -1, e4m3)
    found, kept, shared, r = nops.both(
        "aclnnAddRmsNormDynamicMxQuant",
        [a, b, gamma, None],
        [1e-6, 0, "rint", code(e4m3), True],
        [Out(a.shape, e4m3), Out(a.shape, bfloat16), Out(scale.shape, e8m0), Out((3, 1))],
    )
    same(shared, scale)
    assert (found.astype(np.float32) != y.astype(np.float32)).mean() < 0.02
    close(kept, x)
    close(r, rstd)
