"""The scaler of mixed precision, and reading and writing by flat position, against torch."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int64,
          torch.uint8, torch.bool, torch.complex64]  # fmt: skip


def numbers(dtype: Any, *shape: int) -> Any:
    g = torch.Generator().manual_seed(0)
    return torch.randint(0, 9, shape, generator=g).to(dtype)


@pytest.mark.parametrize("found", [0.0, 1.0])
@pytest.mark.parametrize(("scale", "good"), [(8.0, 0), (8.0, 2), (3e38, 2)])
def test_the_scaler_of_mixed_precision_follows_torch(
    sim: Any, found: float, scale: float, good: int
) -> None:
    given, tracker = torch.tensor([scale]), torch.tensor([good], dtype=torch.int32)
    new, new_tracker = given.clone(), tracker.clone()
    torch._amp_update_scale_(new, new_tracker, torch.tensor([found]), 2.0, 0.5, 3)
    sim.check("aclnnAmpUpdateScale", given, tracker, torch.tensor([found]), 2.0, 0.5, 3,
              Out(new), Out(new_tracker))  # fmt: skip


def test_the_scaler_refuses_an_interval_of_none(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    one, zero = torch.ones(1), torch.zeros(1, dtype=torch.int32)
    with pytest.raises(AclError, match="growthInterval should be more than 0") as refused:
        sim.run("aclnnAmpUpdateScale", one, zero, one, 2.0, 0.5, 0, Out(one), Out(zero))
    assert refused.value.code == 561002


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_take_reads_flat_positions_as_torch_does(sim: Any, dtype: Any, index_dtype: Any) -> None:
    x = numbers(dtype, 3, 4, 5)
    index = torch.tensor([[0, 59, -1], [-60, 7, 7]])
    sim.check("aclnnTake", x, index.to(index_dtype), Out(x.take(index)))
    empty = torch.empty(0, 2, dtype=torch.int64)
    sim.check("aclnnTake", x, empty, Out(x.take(empty)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("accumulate", [False, True])
def test_put_writes_flat_positions_as_torch_does(sim: Any, dtype: Any, accumulate: bool) -> None:
    x, source = numbers(dtype, 4, 5), numbers(dtype, 2, 3) + numbers(dtype, 2, 3)
    # Without accumulation, which of two values for one place stays is open: none here.
    index = torch.tensor([[0, 19, -7], [-20, 7, 7]] if accumulate else [[0, 19, -7], [3, 7, 8]])
    expected = x.clone().put_(index, source, accumulate=accumulate)
    sim.check("aclnnInplacePut", Out(expected, given=x), index, source, accumulate)


def test_positions_past_the_end_fail_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, index = torch.ones(2, 3), torch.tensor([6])
    for name, arguments in {
        "aclnnTake": (x, index, Out(torch.ones(1))),
        "aclnnInplacePut": (Out(x, given=x), index, torch.ones(1), False),
    }.items():
        with pytest.raises(AclError, match="value 6 in index is out of range for size 6"):
            sim.run(name, *arguments)
