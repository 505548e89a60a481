"""Kernels of pointwise: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import LAYOUTS, Out, accepted, refused
from torch_samples import noise, values

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def test_large_integers_keep_every_digit(sim: Any) -> None:
    big = torch.tensor([2**62, -(2**62), 2**53 + 1, 7])
    sim.check("aclnnAdds", big, 1, 1, Out(big + 1))
    sim.check("aclnnSWhere", big > 0, big, big * 0, Out(torch.where(big > 0, big, big * 0)))
    sim.check("aclnnMaximum", big, big.flip(0), Out(torch.maximum(big, big.flip(0))))


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


HALVES = [torch.float16, torch.bfloat16]


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
