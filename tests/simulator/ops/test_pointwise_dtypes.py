"""Kernels of pointwise: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import values

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

HALVES = [torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_floats_take_integers(sim: Any, dtype: Any) -> None:
    x = torch.tensor([0, 1, 3]).to(dtype)
    accepted(sim, "aclnnSinc", x, Out(torch.sinc(x)))
    accepted(sim, "aclnnSigmoid", x, Out(torch.sigmoid(x)))
    for op, f in (("aclnnIsFinite", torch.isfinite), ("aclnnIsPosInf", torch.isposinf),
                  ("aclnnIsNegInf", torch.isneginf)):  # fmt: skip
        accepted(sim, op, x, Out(f(x)))


def test_complex_numbers_are_made_of_halves(sim: Any) -> None:
    re, im = torch.tensor([1.0, -2.0]).half(), torch.tensor([0.5, 3.0]).half()
    accepted(sim, "aclnnComplex", re, im, Out(torch.complex(re.float(), im.float())))


def test_sign_of_complex_numbers_lies_on_the_unit_circle(sim: Any) -> None:
    x = torch.tensor([3 + 4j, 0, -2j])
    accepted(sim, "aclnnSign", x, Out(torch.sgn(x)))


@pytest.mark.parametrize("dtype", HALVES)
def test_numbers_are_rounded_to_the_tensor_before_they_are_compared(sim: Any, dtype: Any) -> None:
    x = torch.tensor([9.7, 9.0]).to(dtype)
    accepted(sim, "aclnnEqScalar", x, 9.7, Out(x == 9.7))
    accepted(sim, "aclnnGeScalar", x, 9.7, Out(x >= 9.7))
    accepted(sim, "aclnnAdds", x, 9.7, 1, Out(x + torch.tensor(9.7).to(dtype)))


def test_numbers_wrap_to_the_integer_type_of_the_tensor(sim: Any) -> None:
    x = torch.tensor([255, 7, 100], dtype=torch.uint8)
    for n in (-1, -3):
        accepted(sim, "aclnnDivMods", x, n, 1, Out(torch.div(x, n, rounding_mode="trunc")))
        accepted(sim, "aclnnDivMods", x, n, 2, Out(torch.div(x, n, rounding_mode="floor")))
        accepted(sim, "aclnnFloorDivides", x, n, Out(x // n))
        accepted(sim, "aclnnFmodScalar", x, n, Out(torch.fmod(x, n)))


def test_integers_refuse_fractions_in_place(sim: Any) -> None:
    x, y = torch.tensor([1, 2]), torch.tensor([0.5, 1.5])
    for op, args in {"aclnnInplaceAdd": (y, 1), "aclnnInplaceAdds": (0.5, 1),
                     "aclnnInplaceMul": (y,)}.items():  # fmt: skip
        refused(sim, "can't be cast to the desired output type", op, Out(x, given=x), *args)


FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
DTYPES = [*FLOATS, torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool]


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_cast_equals_torch(sim: Any, dtype: Any, to: Any) -> None:
    x = values(dtype, 5, 6) * (3 if dtype.is_floating_point else 1)
    sim.check("aclnnCast", x, to, Out(x.to(to)))
    sim.check("aclnnInplaceCopy", Out(x.to(to)), x)


def test_rounding_to_small_floats_is_to_nearest_even(sim: Any) -> None:
    x = torch.tensor(
        [
            1e-8,
            6e-8,
            5.96e-8,
            2.98e-8,
            65504.0,
            65519.9,
            65520.0,
            1.0009765,
            1e-5,
            3.0e38,
            3.4e38,
            float("nan"),
            -0.0,
            1.00390625,
            1.01171875,
        ]
    )
    for to in (torch.float16, torch.bfloat16):
        sim.check("aclnnCast", x, to, Out(x.to(to)))
        every = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(to)
        sim.check("aclnnCast", every, torch.float32, Out(every.float()))
        sim.check("aclnnCast", every.float(), to, Out(every))


def test_in_place_copy_accepts_flipped_and_permuted_views(sim: Any) -> None:
    x = torch.randn(3, 4, 5, 6)
    sim.check("aclnnInplaceCopy", Out(x.permute(2, 0, 3, 1).contiguous()), x.permute(2, 0, 3, 1))
    for dims in ((0,), (1, 3), (0, 1, 2, 3)):
        sim.check("aclnnFlip", x, dims, Out(x.flip(dims)))


@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex128])
def test_transposed_copies_go_by_tiles(sim: Any, dtype: Any) -> None:
    """Sizes around a tile's 32 rows and columns, alone, in batches and with steps between rows."""
    for rows, columns in ((16, 16), (33, 65), (31, 100), (128, 47)):
        x = (
            values(dtype, rows, columns)
            if dtype != torch.complex128
            else torch.randn(rows, columns, dtype=dtype)
        )
        sim.check("aclnnInplaceCopy", Out(x.t().contiguous()), x.t())
        many = torch.stack([x, x.flip(0), x.flip(1)])
        sim.check("aclnnInplaceCopy", Out(many.mT.contiguous()), many.mT)
        sim.check(
            "aclnnInplaceCopy", Out(many.permute(2, 0, 1).contiguous()), many.permute(2, 0, 1)
        )
        apart = torch.cat([x, x], 1)[:, :columns]
        sim.check("aclnnInplaceCopy", Out(apart.t().contiguous()), apart.t())
