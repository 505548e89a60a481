"""Kernels of shape: results equal a reference, and what they refuse."""

import numpy as np
from numpy_harness import Ops, Out
from quantized_operands import codes, draw, inner


def test_orders_of_weights_are_exchanged(nops: Ops) -> None:
    for array, wide in ((draw(2, 20, 33), 16), (codes(33, 40), 32)):
        tiles = nops.put(np.zeros_like(inner(array, wide)), format="FRACTAL_NZ")
        nops("aclnnNpuFormatCast", array, tiles)
        np.testing.assert_array_equal(tiles.numpy(), inner(array, wide))
        (back,) = nops("aclnnNpuFormatCast", tiles, Out(array.shape, array.dtype))
        np.testing.assert_array_equal(back, array)
