"""Kernels of matmul: results equal a reference, and what they refuse."""

import numpy as np
from numpy_harness import Ops, Out, close
from quantized_operands import codes, cut, draw, inner, scale_of, words


def test_weights_in_the_inner_format(nops: Ops) -> None:
    a, b, scale = codes(5, 40), codes(40, 48), scale_of(48)
    tiles = nops.put(inner(b, 32), format="FRACTAL_NZ")
    (out,) = nops(
        "aclnnQuantMatmulWeightNz",
        [a, tiles, None, words(scale), None, None, None, None, None],
        [False, False, 0],
        Out((5, 48), "float16"),
    )
    close(out, (a.astype(np.float64) @ b) * cut(scale))
    x, w = draw(5, 20), draw(20, 24)
    tiles = nops.put(inner(w, 16), format="FRACTAL_NZ")
    (out,) = nops("aclnnMatmulWeightNz", x, tiles, Out((5, 24), "float16"), 0)
    close(out, x.astype(np.float64) @ w, 2e-3)
    self = draw(24)
    (out,) = nops("aclnnAddmmWeightNz", self, x, tiles, 2.0, 0.5, Out((5, 24), "float16"), 0)
    close(out, 2 * self.astype(np.float64) + 0.5 * (x.astype(np.float64) @ w), 2e-3)
    cube, weights = draw(3, 5, 20), draw(3, 20, 24)
    tiles = nops.put(inner(weights, 16), format="FRACTAL_NZ")
    (out,) = nops("aclnnBatchMatMulWeightNz", cube, tiles, Out((3, 5, 24), "float16"), 0)
    close(out, cube.astype(np.float64) @ weights, 2e-3)
