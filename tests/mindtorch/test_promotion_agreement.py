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

    agree(run)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("a", "number"), itertools.product(DTYPES, SCALARS))
def test_numbers_promote_as_in_torch(op, a, number):
    def run(t):
        x = t.ones(2, dtype=getattr(t, a))
        f = getattr(t, op)
        return [f(x, number), f(x[0], number)]

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


# Python's classes of numbers stand for dtypes wherever a dtype is taken.
OF_CLASSES = """
torch.ones_like(x, dtype=T)
torch.full_like(x, 1, dtype=T)
torch.zeros(2, dtype=T)
torch.full((2,), 1, dtype=T)
torch.linspace(0, 1, 3, dtype=T)
torch.as_tensor(x, dtype=T)
torch.asarray(x, dtype=T)
torch.frombuffer(bytearray(16), dtype=T)
x.to(T)
x.to("cpu", T)
x.to(dtype=T)
x.type(T)
x.view(T)
x.new_zeros(2, dtype=T)
x.sum(dtype=T)
x.cumprod(0, dtype=T) if T is not bool else 0
torch.nn.Linear(4, 1).to(T).weight.dtype
torch.nn.Linear(4, 1).to(dtype=T).weight.dtype
torch.can_cast(T, torch.float32), torch.can_cast(torch.float32, T)
torch.promote_types(T, torch.float32), torch.promote_types(torch.int8, T)
torch.finfo(T)
"""


@pytest.mark.parametrize("line", OF_CLASSES.strip().splitlines())
@pytest.mark.parametrize("number", [bool, int, float, complex])
def test_classes_of_numbers_are_dtypes(line, number):
    agree(lambda t: eval(line, {"torch": t, "x": t.ones(4), "T": number}))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "amax", "amin", "prod", "any"])
def test_segments_have_the_names_of_their_reductions(reduce):
    lengths = [3, 0, 2]

    def run(t):
        values = t.tensor([1.0, 3.0, 2.0, -1.0, 4.0])
        return t.segment_reduce(values, reduce, lengths=t.tensor(lengths))

    agree(run)
