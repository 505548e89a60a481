"""Halves beside a float32 tensor without dimensions: which of them round it first, to the bit."""

import pytest
from agreement import agree

import mindtorch

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


@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
@pytest.mark.parametrize("name", ["mul", "div", "floor_divide", "mul_", "div_"])
def test_an_npu_keeps_the_digits_that_torch_keeps(name, kind):
    def run(t):
        many = t.linspace(-9, 9, 97).to(device_of(t))
        few = t.tensor(2049.7).to(device_of(t), getattr(t, kind))
        halves = many.to(t.float16), many.to(t.bfloat16)
        return [getattr(half, name)(few).float().cpu() for half in halves]

    agree(run)


def device_of(t):
    return "npu" if t is mindtorch else "cpu"
