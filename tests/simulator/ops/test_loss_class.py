"""Kernels of loss: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

F = torch.nn.functional
REDUCTIONS = ["none", "mean", "sum"]


def noise(*shape: int, seed: int = 0, dtype: Any = torch.float32) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def test_soft_labels_give_the_loss_and_its_gradient(sim: Any) -> None:
    x, y = noise(3, 5).requires_grad_(), noise(3, 5, seed=1).softmax(1)
    loss = F.cross_entropy(x, y, reduction="none")
    (grad,) = torch.autograd.grad(loss.sum(), x)
    accepted(sim, "aclnnSoftmaxCrossEntropyWithLogits", x.detach(), y, Out(loss.detach()),
             Out(grad, tolerance=1e-5))  # fmt: skip


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_multilabel_margins_equal_torch(sim: Any, reduction: int) -> None:
    x = noise(3, 4)
    target = torch.tensor([[3, 0, -1, 1], [-1, 2, 2, 2], [0, 1, 2, 3]])
    loss, marks = torch.ops.aten.multilabel_margin_loss_forward(x, target, reduction)
    accepted(sim, "aclnnMultilabelMarginLoss", x, target, reduction, Out(loss), Out(marks))
    accepted(sim, "aclnnMultilabelMarginLoss", x[0], target[0], 2,
             Out(F.multilabel_margin_loss(x[0], target[0])), Out(marks[0]))  # fmt: skip


@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_divergence_has_a_gradient_towards_its_target(sim: Any, logs: bool, reduction: int) -> None:
    x, t = noise(3, 4).log_softmax(1), noise(3, 4, seed=1).softmax(1)
    t = (t.log() if logs else t).requires_grad_()
    loss = F.kl_div(x, t, reduction=REDUCTIONS[reduction], log_target=logs)
    g = noise(3, 4, seed=2) if reduction == 0 else torch.tensor([1.5])
    (grad,) = torch.autograd.grad((loss * g).sum(), t)
    accepted(sim, "aclnnKlDivTargetBackward", g, x, t.detach(), reduction, logs,
             Out(grad, tolerance=1e-5))  # fmt: skip


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_binary_cross_entropy_has_a_gradient_towards_its_target(
    sim: Any, reduction: int, weighted: bool
) -> None:
    x, t = noise(3, 4), noise(3, 4, seed=1).sigmoid().requires_grad_()
    w = noise(4, seed=3).abs() if weighted else None
    p = noise(3, 4, seed=4).abs() if weighted else None
    loss = F.binary_cross_entropy_with_logits(
        x, t, w, reduction=REDUCTIONS[reduction], pos_weight=p
    )
    g = noise(3, 4, seed=2) if reduction == 0 else torch.tensor([1.5])
    (grad,) = torch.autograd.grad((loss * g).sum(), t)
    accepted(sim, "aclnnBinaryCrossEntropyWithLogitsTargetBackward", g, x, t.detach(), w, p,
             reduction, Out(grad, tolerance=1e-5))  # fmt: skip


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smooth", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_and_its_gradient_equal_torch(
    sim: Any, reduction: str, smooth: float, weighted: bool
) -> None:
    x, target = noise(4, 5).requires_grad_(), torch.tensor([1, -100, 4, 0])
    w = noise(5, seed=1).abs() if weighted else None
    loss = F.cross_entropy(x, target, w, reduction=reduction, label_smoothing=smooth)
    log_prob, zero = x.detach().log_softmax(1), torch.zeros(1)
    seen = loss.detach().reshape(-1)
    accepted(sim, "aclnnCrossEntropyLoss", x.detach(), target, w, reduction, -100, smooth, 0.0,
             False, Out(seen, tolerance=1e-5), Out(log_prob), Out(zero), Out(zero),
             layouts=["contiguous"])  # fmt: skip
    g = torch.ones_like(seen) * 1.5
    (grad,) = torch.autograd.grad((loss.reshape(-1) * g).sum(), x)
    accepted(sim, "aclnnCrossEntropyLossGrad", g, log_prob, target, w, None, None, reduction, -100,
             smooth, 0.0, Out(grad, tolerance=1e-5))  # fmt: skip


def test_cross_entropy_refuses_targets_of_another_length(sim: Any) -> None:
    x, z = noise(2, 3), torch.zeros(1)
    refused(sim, "target should be", "aclnnCrossEntropyLoss", x, torch.tensor([1]), None, "mean",
            -100, 0.0, 0.0, False, Out(z), Out(x), Out(z), Out(z))  # fmt: skip
