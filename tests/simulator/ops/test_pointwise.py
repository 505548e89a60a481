"""Kernels of pointwise: results equal a reference, and what they refuse."""

import math
from typing import Any

import pytest
from kernel_harness import LAYOUTS, Out, accepted, refused
from torch_samples import gelu_tanh, noise, reference, sample

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_complex_numbers_are_made_and_taken_apart(sim: Any, dtype: Any) -> None:
    a, b = torch.randn(3, 4, dtype=dtype), torch.randn(3, 4, dtype=dtype)
    sim.check("aclnnComplex", a, b, Out(torch.complex(a, b)))
    sim.check("aclnnPolar", a.abs(), b, Out(torch.polar(a.abs(), b)))
    if dtype == torch.float32:
        sim.check("aclnnReal", torch.complex(a, b), Out(a))
        sim.check("aclnnAbs", torch.complex(a, b), Out(torch.complex(a, b).abs()))


F = torch.nn.functional
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
INTS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]


UNARY = {
    "Abs": torch.abs, "Neg": torch.neg, "Sign": torch.sign, "Floor": torch.floor,
    "Ceil": torch.ceil, "Round": torch.round, "Trunc": torch.trunc, "Frac": torch.frac,
    "Reciprocal": torch.reciprocal, "Exp": torch.exp,
    "Exp2": torch.exp2, "Expm1": torch.expm1, "Sin": torch.sin, "Cos": torch.cos,
    "Tan": torch.tan, "Atan": torch.atan, "Sinh": torch.sinh, "Cosh": torch.cosh,
    "Asinh": torch.asinh, "Erf": torch.erf, "Erfc": torch.erfc, "Sinc": torch.sinc,
    "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Silu": F.silu, "Gelu": gelu_tanh,
    "Relu": F.relu, "Hardswish": F.hardswish, "Hardsigmoid": F.hardsigmoid, "Mish": F.mish,
    "Selu": F.selu, "LogSigmoid": F.logsigmoid, "SquaredRelu": lambda x: F.relu(x) ** 2,
    "FastGelu": lambda x: x * torch.sigmoid(1.702 * x),
    "IsFinite": torch.isfinite, "IsInf": torch.isinf, "IsPosInf": torch.isposinf,
    "IsNegInf": torch.isneginf, "Signbit": torch.signbit, "LogicalNot": torch.logical_not,
}  # fmt: skip
POSITIVE = {
    "Sqrt": torch.sqrt, "Rsqrt": torch.rsqrt, "Log": torch.log, "Log2": torch.log2,
    "Log10": torch.log10, "Log1p": torch.log1p, "Lgamma": torch.lgamma,
    "Digamma": torch.digamma, "Acosh": lambda x: torch.acosh(x),
}  # fmt: skip
UNIT = {"Asin": torch.asin, "Acos": torch.acos, "Atanh": torch.atanh, "Erfinv": torch.erfinv}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*UNARY, *POSITIVE, *UNIT])
def test_unary_function_equals_torch_in_every_layout(sim: Any, name: str, dtype: Any) -> None:
    x = sample(dtype)
    if name in POSITIVE:
        x = x.abs() + 1
    if name in UNIT:
        x = x / 4
    function = (UNARY | POSITIVE | UNIT)[name]
    sim.check(f"aclnn{name}", x, Out(reference(function, x)))
    sim.check(f"aclnn{name}", x[0, 0, 0], Out(reference(function, x[0, 0, 0])))
    sim.check(f"aclnn{name}", x[:0], Out(reference(function, x[:0])))


@pytest.mark.parametrize("name", ["Abs", "Neg", "Sign", "Relu", "LogicalNot", "BitwiseNot"])
@pytest.mark.parametrize("dtype", INTS)
def test_integer_function_wraps_as_torch_does(sim: Any, name: str, dtype: Any) -> None:
    x = sample(dtype)
    x.view(-1)[0] = torch.iinfo(dtype).min
    torch_name = {"LogicalNot": "logical_not", "BitwiseNot": "bitwise_not"}.get(name, name.lower())
    sim.check(f"aclnn{name}", x, Out(getattr(torch, torch_name)(x)))


@pytest.mark.parametrize("name", ["Exp", "Sqrt", "Sigmoid", "Reciprocal", "Sin", "Erf"])
def test_integers_become_float_where_torch_makes_them_so(sim: Any, name: str) -> None:
    x = sample(torch.int32, low=1)
    sim.check(f"aclnn{name}", x, Out(getattr(torch, name.lower())(x)))


SPECIAL = [
    float("nan"),
    float("inf"),
    -float("inf"),
    0.0,
    -0.0,
    1e-40,
    -1e-40,
    3e38,
    -3e38,
    88.6,
    -103.0,
    89.5,
    -88.0,
    0.5,
    1.5,
    2.5,
    -0.5,
    100.0,
    -200.0,
    9.2,
    -9.2,
]


@pytest.mark.parametrize(
    "name",
    [
        "Exp",
        "Log",
        "Tanh",
        "Erf",
        "Sigmoid",
        "Gelu",
        "Silu",
        "Relu",
        "Round",
        "Sign",
        "Abs",
        "Sqrt",
        "IsInf",
        "IsFinite",
        "Mish",
        "Signbit",
        "Reciprocal",
    ],
)
def test_special_values_come_out_as_torch_gives_them(sim: Any, name: str) -> None:
    x = torch.tensor(SPECIAL)
    function = {**UNARY, **POSITIVE}[name]
    expected = function(x)
    if name in ("Gelu", "Silu", "Mish"):
        x = x[torch.isfinite(x) & (x.abs() < 1e30)]
        expected = function(x)
    sim.check(f"aclnn{name}", x, Out(expected, tolerance=2e-6))


BINARY = {
    "Mul": torch.mul, "Div": torch.div, "Maximum": torch.maximum, "Minimum": torch.minimum,
    "Atan2": torch.atan2, "LogAddExp": torch.logaddexp, "LogAddExp2": torch.logaddexp2,
    "XLogYTensor": torch.special.xlogy, "Heaviside": torch.heaviside,
    "RemainderTensorTensor": torch.remainder, "FmodTensor": torch.fmod,
    "FloorDivide": torch.floor_divide, "EqTensor": torch.eq, "NeTensor": torch.ne,
    "LtTensor": torch.lt, "LeTensor": torch.le, "GtTensor": torch.gt, "GeTensor": torch.ge,
    "LogicalAnd": torch.logical_and, "LogicalOr": torch.logical_or,
    "LogicalXor": torch.logical_xor, "PowTensorTensor": torch.pow,
}  # fmt: skip
INTEGER_BINARY = {
    name: BINARY[name]
    for name in ("Mul", "Maximum", "Minimum", "RemainderTensorTensor", "FmodTensor",
                 "FloorDivide", "EqTensor", "LtTensor", "GeTensor", "LogicalAnd")
} | {"BitwiseAndTensor": torch.bitwise_and, "BitwiseOrTensor": torch.bitwise_or,
     "BitwiseXorTensor": torch.bitwise_xor, "Gcd": torch.gcd}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_binary_function_broadcasts_as_torch_does(sim: Any, name: str, dtype: Any) -> None:
    a, b = sample(dtype), sample(dtype, (4, 1), seed=1)
    if name == "PowTensorTensor":
        a = a.abs() + 0.5
    if name == "XLogYTensor":
        b = b.abs() + 0.5
    if name in ("RemainderTensorTensor", "FmodTensor", "FloorDivide"):
        expected = (
            BINARY[name](a.float(), b.float()).to(dtype)
            if dtype.itemsize == 2
            else (BINARY[name](a, b))
        )
        sim.check(f"aclnn{name}", a, b, Out(expected, tolerance=1e-2))
        return
    sim.check(f"aclnn{name}", a, b, Out(reference(BINARY[name], a, b)))
    wide = b.expand(5, 4, 6)
    sim.check(f"aclnn{name}", a, wide, Out(reference(BINARY[name], a, wide)))


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("name", INTEGER_BINARY)
def test_integer_binary_function_equals_torch(sim: Any, name: str, dtype: Any) -> None:
    a, b = sample(dtype), sample(dtype, (6,), seed=1)
    if name in ("RemainderTensorTensor", "FmodTensor", "FloorDivide"):
        b[b == 0] = 3
    expected = INTEGER_BINARY[name](a, b)
    sim.check(f"aclnn{name}", a, b, Out(expected))


PAIRS = [
    (torch.float16, torch.float32),
    (torch.bfloat16, torch.float16),
    (torch.int32, torch.float16),
    (torch.uint8, torch.int8),
    (torch.bool, torch.int64),
    (torch.int64, torch.int32),
    (torch.float64, torch.float32),
    (torch.bool, torch.float32),
    (torch.int64, torch.bfloat16),
]


@pytest.mark.parametrize("pair", PAIRS)
def test_mixed_dtypes_promote_as_torch_promotes(sim: Any, pair: Any) -> None:
    a, b = sample(pair[0]), sample(pair[1], seed=1)
    sim.check("aclnnMul", a, b, Out(a * b))
    sim.check("aclnnAdd", a, b, 1, Out(a + b))
    sim.check("aclnnGtTensor", a, b, Out(a > b))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
def test_scalar_forms_equal_torch(sim: Any, dtype: Any) -> None:
    x = sample(dtype)
    sim.check("aclnnAdds", x, 3, 2, Out(x + 6))
    sim.check("aclnnSubs", x, 3, 2, Out(x - 6))
    sim.check("aclnnRsubs", x, 3, 2, Out((3 - 2 * x.double()).to(dtype)))
    sim.check("aclnnMuls", x, 3, Out(x * 3))
    sim.check("aclnnDivs", x, 4, Out(x / 4))
    sim.check("aclnnEqScalar", x, 2, Out(x == 2))
    sim.check("aclnnGtScalar", x, 2, Out(x > 2))
    sim.check("aclnnClamp", x, 1, 4, Out(x.clamp(1, 4)))
    sim.check("aclnnClamp", x, None, 4, Out(x.clamp(max=4)))
    sim.check("aclnnClampMin", x, 2, Out(x.clamp(min=2)))
    sim.check("aclnnRemainderTensorScalar", x, 3, Out(torch.remainder(x, 3), tolerance=1e-2))
    sim.check("aclnnFmodScalar", x, 3, Out(torch.fmod(x, 3), tolerance=1e-2))
    sim.check("aclnnPowTensorScalar", x, 2, Out(x**2))
    sim.check("aclnnMuls", x, 1.5, Out(x * 1.5))


@pytest.mark.parametrize("dtype", FLOATS)
def test_in_place_forms_write_through_the_layout(sim: Any, dtype: Any) -> None:
    x, y = sample(dtype), sample(dtype, seed=1)
    sim.check("aclnnInplaceAdd", Out(x + y, x), y, 1)
    sim.check("aclnnInplaceSub", Out(x - y, x), y, 1)
    sim.check("aclnnInplaceMul", Out(x * y, x), y)
    sim.check("aclnnInplaceDiv", Out(x / y, x), y)
    sim.check("aclnnInplaceMuls", Out(x * 3, x), 3)
    sim.check("aclnnInplaceRelu", Out(x.relu(), x))
    sim.check("aclnnInplaceTanh", Out(reference(torch.tanh, x), x))
    sim.check(
        "aclnnInplaceAddcmul", Out(reference(lambda a, b: a + 0.5 * b * b, x, y), x), y, y, 0.5
    )
    z = y.abs() + 1
    sim.check(
        "aclnnInplaceAddcdiv", Out(reference(lambda a, b: a + 0.5 * a / b, x, z), x), x, z, 0.5
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_ternary_forms_equal_torch(sim: Any, dtype: Any) -> None:
    a, b, c = sample(dtype), sample(dtype, (4, 6), seed=1), sample(dtype, (6,), seed=2).abs() + 1
    sim.check("aclnnAddcmul", a, b, c, 2.0, Out(reference(lambda x, y, z: x + 2 * y * z, a, b, c)))
    sim.check("aclnnAddcdiv", a, b, c, 2.0, Out(reference(lambda x, y, z: x + 2 * y / z, a, b, c)))
    sim.check(
        "aclnnLerp",
        a,
        b,
        c,
        Out(
            reference(torch.lerp, a, b.expand(5, 4, 6), c),
            tolerance=2e-2 if dtype.itemsize == 2 else None,
        ),
    )
    sim.check("aclnnLerps", a, a * 2, 0.3, Out(reference(lambda x: torch.lerp(x, x * 2, 0.3), a)))
    mask = sample(torch.bool, (5, 4, 6), seed=3)
    sim.check("aclnnSWhere", mask, a, b, Out(torch.where(mask, a, b)))
    sim.check("aclnnInplaceMaskedFillScalar", Out(a.masked_fill(mask, 7), a), mask, 7)
    low, high = torch.minimum(b, b + 1), b + 2
    sim.check("aclnnClampTensor", a, low, high, Out(torch.clamp(a, low, high)))
    sim.check("aclnnClampTensor", a, low, None, Out(torch.clamp(a, min=low)))
    sim.check("aclnnClampTensor", a, None, high, Out(torch.clamp(a, max=high)))


def test_large_integers_keep_every_digit(sim: Any) -> None:
    big = torch.tensor([2**62, -(2**62), 2**53 + 1, 7])
    sim.check("aclnnAdds", big, 1, 1, Out(big + 1))
    sim.check("aclnnSWhere", big > 0, big, big * 0, Out(torch.where(big > 0, big, big * 0)))
    sim.check("aclnnMaximum", big, big.flip(0), Out(torch.maximum(big, big.flip(0))))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_arithmetic_equals_torch(sim: Any, dtype: Any) -> None:
    a, b = sample(dtype), sample(dtype, seed=1)
    sim.check("aclnnAdd", a, b, 2, Out(a + 2 * b))
    sim.check("aclnnMul", a, b, Out(a * b))
    sim.check("aclnnDiv", a, b, Out(a / b))
    sim.check("aclnnEqTensor", a, a, Out(a == a))


@pytest.mark.parametrize("n", [1, 7, 1023, 1024, 1025, 70001])
def test_every_block_length_is_covered(sim: Any, n: int) -> None:
    x, y = torch.randn(n), torch.randn(n)
    sim.check("aclnnAdd", x, y, 1.0, Out(x + y), layouts=LAYOUTS[:3])
    sim.check("aclnnMul", x.half(), y, Out(x.half() * y), layouts=LAYOUTS[:3])


def test_scales_stand_from_their_axis_on(sim: Any) -> None:
    x, scale, bias = noise(2, 3, 4, 5), noise(3, 4, seed=1), noise(3, 4, seed=2)
    accepted(
        sim, "aclnnScale", x, scale, bias, 1, 2, True, Out(x * scale[..., None] + bias[..., None])
    )
    refused(sim, "doesn't fit", "aclnnScale", x, scale, bias, 2, 2, True, Out(x))


def test_angles_of_real_and_complex_numbers(sim: Any) -> None:
    x = torch.tensor([1.0, -2.0, 0.0, math.nan])
    z = torch.tensor([1 + 1j, -1 - 1j, 2j])
    sim.check("aclnnAngleV2", x, Out(x.angle()))
    sim.check("aclnnAngleV2", z, Out(z.angle()))


def test_the_largest_and_smallest_of_many_broadcast(sim: Any) -> None:
    xs = (noise(2, 1, 3), noise(4, 1, seed=1), noise(3, seed=2))
    both = torch.broadcast_tensors(*xs)
    accepted(sim, "aclnnMaxN", xs, Out(torch.stack(both).amax(0)))
    accepted(sim, "aclnnMinN", xs, Out(torch.stack(both).amin(0)))
