"""Kernels of sampling: results equal a reference, and what they refuse."""

import numpy as np
from numpy_harness import Ops, Out, softmax

RNG = np.random.default_rng(11)


def draw(*shape: int, dtype: object = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def test_top_k_top_p_masks_all_but_the_nucleus(nops: Ops) -> None:
    x = draw(4, 20)
    p, k = np.array([0.7, 0.9, 0.3, 1.0], np.float32), np.array([5, 20, 3, 1], np.int32)
    (out,) = nops.both("aclnnApplyTopKTopP", x, p, k, Out(x.shape))
    for r in range(4):
        order = np.argsort(x[r], kind="stable")
        kept = x[r].astype(np.float64)
        kept[order[: 20 - k[r]]] = -np.inf
        below = np.cumsum(softmax(kept[order])) <= 1 - float(p[r])
        below[-1] = False
        kept[order[below]] = -np.inf
        np.testing.assert_array_equal(np.isfinite(out[r]), np.isfinite(kept))
        np.testing.assert_array_equal(out[r][np.isfinite(kept)], x[r][np.isfinite(kept)])
