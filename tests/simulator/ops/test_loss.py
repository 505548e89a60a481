"""Kernels of loss: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import randn

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def test_nothing_is_totalled_where_nll_reduces_nothing(sim: Any) -> None:
    x, target = torch.randn(3, 4).log_softmax(1), torch.tensor([0, 2, 1])
    weight = torch.ones(4)
    loss = torch.nn.functional.nll_loss(x, target, reduction="none")
    accepted(sim, "aclnnNLLLoss", x, target, weight, 0, -100, Out(loss),
             Out(torch.zeros(1), given=torch.full((1,), 7.0)))  # fmt: skip


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("aclnnTriu", (torch.ones(3, 3).bool(), 0, Out(torch.ones(3, 3)))),
        ("aclnnBatchNorm", (torch.ones(2, 3), torch.ones(1, 3), None, torch.ones(3), torch.ones(3),
                            False, 0.1, 1e-5, Out(torch.ones(2, 3)), None, None)),
        ("aclnnBinaryCrossEntropy", (torch.full((2, 3), 0.5), torch.ones(2, 3), torch.ones(4), 1,
                                     Out(torch.tensor(0.0)))),
        ("aclnnBinaryCrossEntropyBackward", (torch.ones(2, 3), torch.full((2, 3), 0.5),
                                             torch.ones(2, 3), torch.ones(4, 2, 3), 0,
                                             Out(torch.ones(2, 3)))),
        ("aclnnSearchSorteds", (torch.ones(3), 1.0, False, False, None,
                                Out(torch.empty(0, dtype=torch.int64)))),
        ("aclnnPrelu", (torch.ones(2, 3), torch.ones(2, 3), Out(torch.ones(2, 3)))),
        ("aclnnScatterAdd", (torch.ones(3), 0, torch.tensor([0, 1, 2]), torch.tensor(1.0),
                             Out(torch.ones(3)))),
    ],
)  # fmt: skip
def test_arguments_that_would_lead_outside_memory_are_refused(
    sim: Any, op: str, args: tuple[Any, ...]
) -> None:
    refused(sim, ".", op, *args)


def test_a_target_out_of_range_fails_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, target = randn(torch.float32, 3, 5), torch.tensor([0, 5, 1])
    with pytest.raises(AclError) as caught:
        sim.run(
            "aclnnNLLLoss",
            x,
            target,
            torch.ones(5),
            1,
            -100,
            Out(torch.zeros(())),
            Out(torch.zeros(())),
        )
    assert caught.value.code == 507015


def noise(*shape: int, seed: int = 0, dtype: Any = torch.float32) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def test_cross_entropy_refuses_targets_of_another_length(sim: Any) -> None:
    x, z = noise(2, 3), torch.zeros(1)
    refused(sim, "target should be", "aclnnCrossEntropyLoss", x, torch.tensor([1]), None, "mean",
            -100, 0.0, 0.0, False, Out(z), Out(x), Out(z), Out(z))  # fmt: skip
