"""Result dtypes are torch's for every pair of dtypes, ranks and Python numbers."""

import itertools

import pytest
from agreement import agree

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64", "complex64", "complex128")  # fmt: skip
SCALARS = (True, 2, 2.5, 1j)
OPS = ("add", "mul", "true_divide")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("a", "b"), itertools.product(DTYPES, DTYPES))
def test_tensors_promote_as_in_torch(op, a, b):
    def run(t):
        x, y = t.ones(2, dtype=getattr(t, a)), t.ones(2, dtype=getattr(t, b))
        f = getattr(t, op)
        return [str(f(p, q).dtype) for p in (x, x[0]) for q in (y, y[0])]

    if {"float16"} < {a, b} and "complex" in a + b:
        pytest.skip("torch gives complex32, which mindtorch does not have")
    agree(run)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("a", "number"), itertools.product(DTYPES, SCALARS))
def test_numbers_promote_as_in_torch(op, a, number):
    def run(t):
        x = t.ones(2, dtype=getattr(t, a))
        f = getattr(t, op)
        return [f(x, number), f(x[0], number)]

    if a == "float16" and number == 1j:
        pytest.skip("torch gives complex32, which mindtorch does not have")
    agree(run)


@pytest.mark.parametrize(("a", "b"), itertools.product(DTYPES, DTYPES))
def test_in_place_refuses_what_torch_refuses(a, b):
    def run(t):
        return t.ones(2, dtype=getattr(t, a)).mul_(t.ones(2, dtype=getattr(t, b)))

    agree(run)


@pytest.mark.parametrize(("a", "b"), itertools.product(DTYPES, DTYPES))
def test_conversion_agrees(a, b):
    def run(t):
        x = t.tensor([0.0, 1.0, 2.75, 100.0]).to(getattr(t, a))
        return x.to(getattr(t, b))

    agree(run)


@pytest.mark.parametrize(("a", "b"), itertools.product(DTYPES, DTYPES))
def test_promote_types_and_can_cast_agree(a, b):
    agree(
        lambda t: (
            str(t.promote_types(getattr(t, a), getattr(t, b))),
            t.can_cast(getattr(t, a), getattr(t, b)),
        )
    )


def test_default_dtype_decides_for_numbers():
    def run(t):
        t.set_default_dtype(t.float64)
        try:
            return [t.ones(2), t.tensor([1.0]), t.ones(2, dtype=t.int64) + 1.5, t.arange(0.0, 2.0),
                    t.ones(2, dtype=t.int64) / 2, t.full((2,), 1.5)]  # fmt: skip
        finally:
            t.set_default_dtype(t.float32)

    agree(run)


INTS = ("uint8", "int8", "int16", "int32", "int64")


@pytest.mark.parametrize("a", INTS)
def test_integers_wrap_around(a):
    agree(lambda t: [t.tensor([100, 127], dtype=getattr(t, a)) * 3,
                     t.tensor([1, 2], dtype=getattr(t, a)) + 1000])  # fmt: skip
