"""Kernels of rotary: results equal a reference, and what they refuse."""

import numpy as np
from numpy_harness import Array, Ops, Out, close

RNG = np.random.default_rng(3)


def draw(*shape: int, dtype: object = "float32") -> Array:
    return RNG.normal(size=shape).astype(dtype)


def test_rotary_embedding_needs_no_matrix(nops: Ops) -> None:
    x, angle = draw(1, 2, 3, 8), RNG.uniform(0, 6, (1, 2, 1, 8)).astype(np.float32)
    (given,) = nops(
        "aclnnRotaryPositionEmbeddingV2", x, np.cos(angle), np.sin(angle), 0, None, Out(x.shape)
    )
    turned = np.concatenate([-x[..., 4:], x[..., :4]], -1)
    close(given, x * np.cos(angle) + turned * np.sin(angle))
