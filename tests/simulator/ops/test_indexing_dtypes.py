"""Kernels of indexing: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool])
def test_dims_without_an_index_are_marked_by_empty_tensors_of_any_dtype(
    sim: Any, dtype: Any
) -> None:
    x = torch.arange(12).view(3, 4).to(dtype)
    nothing, index = torch.empty(0, dtype=dtype), torch.tensor([2, 0, -1])
    accepted(sim, "aclnnIndex", x, (nothing, index), Out(x[:, index]))
    written = x.clone()
    written[:, index] = torch.ones(3, 3).to(dtype)
    accepted(sim, "aclnnIndexPutImpl", Out(written, given=x), (nothing, index),
             torch.ones(3, 3).to(dtype), False, False)  # fmt: skip


def test_true_and_false_as_indices_select_all_and_nothing(sim: Any) -> None:
    x = torch.arange(6.0).view(2, 3)
    both = (torch.tensor([0]), torch.empty(0, dtype=torch.int64))
    accepted(sim, "aclnnIndex", x[None, None], both, Out(x[True, False]))


def test_indices_into_nothing_fail_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, index = torch.zeros(0, 3), torch.tensor([0])
    calls = {
        "aclnnIndex": (x, (index,), Out(torch.zeros(1, 3))),
        "aclnnIndexPutImpl": (Out(x, given=x), (index,), torch.ones(1, 3), False, False),
    }
    for op, args in calls.items():
        with pytest.raises(AclError, match="out of bounds"):
            sim.run(op, *args)


@pytest.mark.parametrize("right", [False, True])
def test_searching_puts_nan_behind_everything(sim: Any, right: bool) -> None:
    sorted_, x = torch.tensor([1.0, 2.0, 3.0, float("nan")]), torch.tensor([2.0, float("nan"), 9.0])
    expected = torch.searchsorted(sorted_, x, right=right)
    accepted(sim, "aclnnSearchSorted", sorted_, x, False, right, None, Out(expected))


def test_searching_tells_large_integers_apart(sim: Any) -> None:
    sorted_ = torch.tensor([2**60, 2**60 + 1, 2**60 + 2])
    x = torch.tensor([2**60 + 1, 2**60 + 2])
    accepted(sim, "aclnnSearchSorted", sorted_, x, False, False, None, Out(torch.tensor([1, 2])))
