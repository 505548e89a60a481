"""Kernels of embedding: results equal a reference, and what they refuse."""

import numpy as np
from numpy_harness import Array, Ops, Out, bfloat16, close

RNG = np.random.default_rng(3)


def draw(*shape: int, dtype: object = "float32") -> Array:
    return RNG.normal(size=shape).astype(dtype)


def test_gradients_of_embeddings_take_bfloat16(nops: Ops) -> None:
    grad, at = draw(5, 3, dtype=bfloat16), np.array([0, 2, 2, 1, 0])
    (given,) = nops("aclnnEmbeddingDenseBackward", grad, at, 4, 9, False, Out((4, 3), bfloat16))
    expected = np.zeros((4, 3))
    np.add.at(expected, at, grad.astype(np.float64))
    close(given, expected)
