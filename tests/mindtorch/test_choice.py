"""The choice by bits gives what np.where gives: values, signs of zero, NaNs, dtypes, shapes."""

import numpy as np
import pytest

from mindtorch.ops import choice

DTYPES = ("bool", "int8", "uint16", "float16", "float32", "float64", "int64", "complex64",
          "complex128")  # fmt: skip
SHAPES = [((90, 100),) * 3, ((90, 100), (100,), ()), ((90, 1), (1, 100), (90, 100)),
          ((90, 100), (), (90, 100)), ((90, 100), (), ())]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_the_choice_by_bits_is_that_of_where(dtype, shapes):
    rng = np.random.default_rng(0)
    mask = rng.random(shapes[0]) < 0.5
    a, b = (np.asarray(rng.standard_normal(s) * 3).astype(dtype) for s in shapes[1:])
    if a.dtype.kind in "fc" and a.ndim:
        a.flat[:3] = [np.nan, -0.0, -np.inf]
    for other in (b, np.zeros((), dtype)):
        chosen, expected = choice.choose(mask, a, other), np.where(mask, a, other)
        assert chosen.dtype == expected.dtype
        assert chosen.shape == expected.shape
        assert chosen.tobytes() == expected.tobytes()


def test_strided_operands_and_other_dtypes_are_chosen_from():
    mask = (np.arange(40000) % 3 == 0).reshape(200, 200)
    a, b = np.arange(80000.0).reshape(200, 400)[:, ::2], np.arange(40000.0).reshape(200, 200).T
    assert np.array_equal(choice.choose(mask, a, b), np.where(mask, a, b))
    assert choice.choose(mask, a, np.float32(2)).dtype == np.float64
    assert np.array_equal(choice.choose(mask.astype(np.uint8), a, b), np.where(mask, a, b))
