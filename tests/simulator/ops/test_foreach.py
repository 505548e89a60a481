"""Kernels of foreach: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted
from torch_samples import randn

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.mark.parametrize(("mode", "value"), [(2, -2.0), (3, -1.0), (4, -2.0), (5, -1.0), (7, -0.5),
                                             (1, -2.0)])  # fmt: skip
def test_lists_are_rounded_by_mode(sim: Any, mode: int, value: float) -> None:
    for number in (torch.tensor([mode], dtype=torch.int8), None):
        op = "aclnnForeachRoundOffNumber" + ("" if number is not None else "V2")
        x = (torch.tensor([-1.5, 2.0]),)
        accepted(sim, op, x, mode if number is None else number,
                 (Out(torch.tensor([value, 0.0 if mode == 7 else 2.0])),))  # fmt: skip


HALVES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", HALVES)
def test_foreach_takes_halves_with_numbers(sim: Any, dtype: Any) -> None:
    xs = (torch.tensor([1.0, 2.0]).to(dtype), torch.tensor([3.0]).to(dtype))
    two = torch.tensor([2.0])
    for op, f in (("aclnnForeachAddScalar", lambda x: x + 2),
                  ("aclnnForeachMulScalar", lambda x: x * 2)):  # fmt: skip
        accepted(sim, op, xs, two, tuple(Out(f(x)) for x in xs))
    accepted(sim, "aclnnForeachAddListV2", xs, xs, 2.0, tuple(Out(x + 2 * x) for x in xs))


FLOATS = [torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS)
def test_foreach_functions_equal_torch(sim: Any, dtype: Any) -> None:
    x = [randn(dtype, 3, 4), randn(dtype, 7, seed=1), randn(dtype, 2, 2, 2, seed=2)]
    y = [randn(dtype, *t.shape, seed=3).abs() + 1 for t in x]

    def outs(function: Any) -> list[Out]:
        return [Out(function(*[t.double() for t in ts]).to(dtype)) for ts in zip(x, y, strict=True)]

    sim.check("aclnnForeachAddScalarV2", x, 2.0, outs(lambda a, b: a + 2))
    sim.check("aclnnForeachMulScalarV2", x, 2.0, outs(lambda a, b: a * 2))
    sim.check(
        "aclnnForeachDivScalarList",
        x,
        (2.0, 4.0, 8.0),
        [Out((t.double() / k).to(dtype)) for t, k in zip(x, (2, 4, 8), strict=True)],
    )
    sim.check("aclnnForeachAddListV2", x, y, 0.5, outs(lambda a, b: a + 0.5 * b))
    sim.check(
        "aclnnForeachAddList",
        x,
        y,
        torch.tensor([0.5], dtype=dtype if dtype != torch.bfloat16 else torch.float32),
        outs(lambda a, b: a + 0.5 * b),
    )
    sim.check("aclnnForeachLerpScalar", x, y, 0.25, outs(lambda a, b: torch.lerp(a, b, 0.25)))
    sim.check("aclnnForeachAddcmulScalarV2", x, y, y, 0.5, outs(lambda a, b: a + 0.5 * b * b))
    sim.check("aclnnForeachAddcdivScalarV2", x, x, y, 0.5, outs(lambda a, b: a + 0.5 * a / b))
    sim.check("aclnnForeachSqrt", y, outs(lambda a, b: b.sqrt()))
    sim.check("aclnnForeachReciprocal", y, outs(lambda a, b: 1 / b))
    sim.check("aclnnForeachExp", x, outs(lambda a, b: a.exp()))
    sim.check("aclnnForeachMaximumList", x, y, outs(torch.maximum))
