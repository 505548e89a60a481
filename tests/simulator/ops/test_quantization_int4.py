"""Kernels of quantization: results equal a reference, and what they refuse."""

import numpy as np
from numpy_harness import Ops, Out
from quantized_operands import codes, draw, pack


def test_private_weights_and_packing(nops: Ops) -> None:
    w = codes(4, 16, bits=4).astype(np.int32)
    (out,) = nops("aclnnConvertWeightToINT4Pack", w, Out((4, 2), "int32"))
    np.testing.assert_array_equal(out, pack(w))
    weight = Out((16, 8), "float16", draw(16, 8))
    (after,) = nops("aclnnTransMatmulWeight", weight)
    np.testing.assert_array_equal(after, weight.given)
