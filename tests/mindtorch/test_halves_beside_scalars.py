"""Halves beside a float32 tensor without dimensions: which of them round it first, to the bit."""

import pytest
from agreement import agree

NAMES = ("mul", "div", "floor_divide", "add", "sub", "remainder", "fmod", "pow", "atan2", "maximum",
         "copysign", "fmax", "hypot", "eq", "lt")  # fmt: skip


@pytest.mark.parametrize("order", [1, -1], ids=["second", "first"])
@pytest.mark.parametrize("scalar", [7.3, 0.7001, 3.14159])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", NAMES)
def test_a_scalar_is_rounded_where_torch_rounds_it(name, dtype, scalar, order):
    def run(t):
        many = t.linspace(-9, 9, 97).to(getattr(t, dtype))
        return getattr(t, name)(*[many, t.tensor(scalar)][::order])

    agree(run)
