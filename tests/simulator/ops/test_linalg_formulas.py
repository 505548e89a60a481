"""Kernels of linalg: results equal a reference, and what they refuse."""

import numpy as np
from numpy_harness import Array, Ops, Out, close

RNG = np.random.default_rng(3)


def draw(*shape: int, dtype: object = "float32") -> Array:
    return RNG.normal(size=shape).astype(dtype)


def test_one_triangle_solves_many_systems(nops: Ops) -> None:
    b, a = draw(2, 3, 4, 2), np.tril(draw(4, 4)) + 4 * np.eye(4, dtype=np.float32)
    x, left = nops("aclnnTriangularSolve", b, a, False, True, False, Out(b.shape), Out(a.shape))
    close(x, np.linalg.solve(a.T.astype(np.float64), b), 1e-4)
    np.testing.assert_array_equal(left, a)
    many = np.stack([a, 2 * a, 3 * a])
    x, left = nops("aclnnTriangularSolve", b[:1, 0], many, False, False, False, Out((3, 4, 2)),
                   Out((3, 4, 4)))  # fmt: skip
    close(x, np.linalg.solve(many.astype(np.float64), b[:1, 0]), 1e-4)
