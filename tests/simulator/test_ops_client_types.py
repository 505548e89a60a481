"""What clients pass though a document's table lists less, and results that they alone state.

Clients: op-plugin's calls and tests of the operators named here.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy_harness import Array, Ops, Out, bfloat16, close

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


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_normal_values_are_drawn_on_every_product_that_had_them(nops: Ops, dtype: str) -> None:
    mean, std = np.full((400,), 3, dtype), np.full((400,), 0.5, dtype)
    (given,) = nops("aclnnNormalTensorTensor", mean, std, 7, 0, Out((400,), dtype))
    assert abs(float(given.mean()) - 3) < 0.1
    assert abs(float(given.astype(np.float64).std()) - 0.5) < 0.1


def test_gradients_of_embeddings_take_bfloat16(nops: Ops) -> None:
    grad, at = draw(5, 3, dtype=bfloat16), np.array([0, 2, 2, 1, 0])
    (given,) = nops("aclnnEmbeddingDenseBackward", grad, at, 4, 9, False, Out((4, 3), bfloat16))
    expected = np.zeros((4, 3))
    np.add.at(expected, at, grad.astype(np.float64))
    close(given, expected)


@pytest.mark.parametrize("name", ["aclnnForeachAddList", "aclnnForeachSubList"])
def test_sums_of_half_lists_round_once_and_differences_twice(nops: Ops, name: str) -> None:
    """ops-nn: foreach_add_list has one step, foreach_sub_list multiplies, then subtracts."""
    a, b = draw(50, dtype="float16"), draw(50, dtype="float16")
    alpha = np.array([5.5], np.float16)
    (given,) = nops(name, (a,), (b,), alpha, (Out((50,), "float16"),))
    wide = a + alpha.astype(np.float32) * b  # the product is exact in float32
    expected = wide.astype(np.float16) if "Add" in name else a - alpha * b
    np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("size", [1.0, 1e-6, 300.0])
@pytest.mark.parametrize("name", ["aclnnForeachAddcmulList", "aclnnForeachAddcdivList"])
def test_products_of_half_lists_round_each_step(nops: Ops, name: str, size: float) -> None:
    a, c = draw(80, dtype="float16"), draw(80, dtype="float16")
    b = (RNG.normal(size=80) * size).astype(np.float16)
    value = np.array([3.7], np.float16)
    (given,) = nops(name, (a,), (b,), (c,), value, (Out((80,), "float16"),))
    with np.errstate(all="ignore"):
        step = b * c if "mul" in name else b / c
        np.testing.assert_array_equal(given, a + step * value)


def test_one_triangle_solves_many_systems(nops: Ops) -> None:
    b, a = draw(2, 3, 4, 2), np.tril(draw(4, 4)) + 4 * np.eye(4, dtype=np.float32)
    x, left = nops("aclnnTriangularSolve", b, a, False, True, False, Out(b.shape), Out(a.shape))
    close(x, np.linalg.solve(a.T.astype(np.float64), b), 1e-4)
    np.testing.assert_array_equal(left, a)
    many = np.stack([a, 2 * a, 3 * a])
    x, left = nops("aclnnTriangularSolve", b[:1, 0], many, False, False, False, Out((3, 4, 2)),
                   Out((3, 4, 4)))  # fmt: skip
    close(x, np.linalg.solve(many.astype(np.float64), b[:1, 0]), 1e-4)


def test_powers_of_a_number_take_flags_and_integers(nops: Ops) -> None:
    for exponent in (np.array([0, 1, 3]), np.array([True, False])):
        (given,) = nops("aclnnPowScalarTensor", 2, exponent, Out(exponent.shape, "int64"))
        np.testing.assert_array_equal(given, 2 ** exponent.astype(np.int64))


@pytest.mark.parametrize("op", ["aclnnBatchMatMulWeightNz", "aclnnMatmulWeightNz"])
def test_no_matrices_times_one_are_none(nops: Ops, op: str) -> None:
    (given,) = nops(op, np.zeros((0, 3, 4), np.float16), np.zeros((1, 4, 2), np.float16),
                    Out((0, 3, 2), "float16"), 0)  # fmt: skip
    assert given.shape == (0, 3, 2)
