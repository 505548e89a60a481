"""Tensors print as torch's do."""

import pytest
from agreement import agree

CASES = {
    "floats": lambda t: t.tensor([1.0, 2.0]),
    "mixed magnitudes": lambda t: t.tensor([[1.5, 2], [3, 1e6]]),
    "scientific": lambda t: t.tensor([1e-5, 1.0]),
    "large": lambda t: t.tensor([1e10, 1.0]),
    "long": lambda t: t.arange(2000),
    "long matrix": lambda t: t.arange(2000.0).view(20, 100),
    "long cube": lambda t: t.arange(2000.0).view(2, 1000, 1) * 1.5,
    "int scalar": lambda t: t.tensor(3),
    "float scalar": lambda t: t.tensor(3.5),
    "bools": lambda t: t.tensor([True, False]),
    "empty": lambda t: t.tensor([]),
    "empty matrix": lambda t: t.zeros(0, 3),
    "empty ints": lambda t: t.zeros(0, dtype=t.int64),
    "meta": lambda t: t.ones(2, 3, device="meta"),
    "int32": lambda t: t.tensor([1, 2], dtype=t.int32),
    "float64": lambda t: t.tensor([1.0, 2.0], dtype=t.float64),
    "half": lambda t: t.tensor([1.0, 2.5], dtype=t.float16),
    "bfloat16": lambda t: t.tensor([1.5, 2], dtype=t.bfloat16),
    "leaf": lambda t: t.tensor([1.0, 2.0], requires_grad=True),
    "non-leaf": lambda t: t.tensor([1.0, 2.0], requires_grad=True) * 2,
    "view": lambda t: t.tensor([-1.5, 2.25], requires_grad=True).view(2, 1),
    "not finite": lambda t: t.tensor([float("nan"), float("inf"), 1.0]),
    "nothing finite": lambda t: t.tensor([float("nan"), -float("inf")]),
    "cube": lambda t: t.arange(24).view(2, 3, 4),
    "complex": lambda t: t.tensor([1 + 2j, 3.5 - 1j]),
    "zeros": lambda t: t.tensor([0.0, 0.0]),
    "negative": lambda t: t.tensor([1.0, -22.0, 300.0]),
    "wrapped rows": lambda t: t.ones(3, 40),
    "transposed": lambda t: t.arange(6.0).view(2, 3).t(),
    "size": lambda t: t.Size([1, 2]),
    "dtype": lambda t: t.float32,
    "device": lambda t: t.device("cpu"),
    "grad_fn": lambda t: (t.ones(1, requires_grad=True) * 2).grad_fn.name(),
}


@pytest.mark.parametrize("name", CASES)
def test_repr_agrees_with_torch(name):
    agree(lambda t: repr(CASES[name](t)))


def test_format_of_a_scalar_agrees_with_torch():
    agree(lambda t: f"{t.tensor(1.5):.3f} {t.tensor([1.0])} {t.tensor(2)}")


def test_print_options_agree_with_torch():
    def run(t):
        try:
            t.set_printoptions(precision=2, sci_mode=False, linewidth=40, threshold=5, edgeitems=1)
            return repr(t.arange(20.0) / 7), repr(t.tensor([1e-9, 1.0]))
        finally:
            t.set_printoptions(profile="default")

    agree(run)
