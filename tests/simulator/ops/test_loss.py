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


F = torch.nn.functional
FLOATS = [torch.float32, torch.float16, torch.bfloat16]
REDUCTIONS = ["none", "mean", "sum"]


def loss_and_gradient(function: Any, x: Any, y: Any, g: Any, *rest: Any) -> tuple[Any, Any]:
    wide = x.double().requires_grad_()
    loss = function(wide, y.double(), *[r.double() if r is not None else None for r in rest])
    (grad,) = torch.autograd.grad(loss, wide, g.double().expand(loss.shape))
    return loss.detach().to(x.dtype), grad.to(x.dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_elementwise_losses_and_gradients_equal_torch(sim: Any, dtype: Any, reduction: int) -> None:
    x, y = randn(dtype, 4, 5), randn(dtype, 4, 5, seed=1)
    g = randn(dtype, 4, 5, seed=2) if reduction == 0 else randn(dtype, seed=2)
    how = REDUCTIONS[reduction]
    for name, function in {
        "MseLoss": lambda a, b: F.mse_loss(a, b, reduction=how),
        "L1Loss": lambda a, b: F.l1_loss(a, b, reduction=how),
        "SoftMarginLoss": lambda a, b: F.soft_margin_loss(a, b, reduction=how),
    }.items():
        loss, grad = loss_and_gradient(function, x, y, g)
        sim.check(f"aclnn{name}", x, y, reduction, Out(loss))
        sim.check(f"aclnn{name}Backward", g, x, y, reduction, Out(grad))
    loss, grad = loss_and_gradient(
        lambda a, b: F.smooth_l1_loss(a, b, reduction=how, beta=0.7), x, y, g
    )
    sim.check("aclnnSmoothL1Loss", x, y, reduction, 0.7, Out(loss))
    sim.check("aclnnSmoothL1LossBackward", g, x, y, reduction, 0.7, Out(grad))
    p, w = x.sigmoid(), y.abs()
    loss, grad = loss_and_gradient(
        lambda a, b, c: F.binary_cross_entropy(a, b, c, reduction=how), p, y.sigmoid(), g, w
    )
    tol = 3e-2 if dtype != torch.float32 else 1e-5
    sim.check("aclnnBinaryCrossEntropy", p, y.sigmoid(), w, reduction, Out(loss))
    sim.check(
        "aclnnBinaryCrossEntropyBackward", g, p, y.sigmoid(), w, reduction, Out(grad, tolerance=tol)
    )
    pos = randn(dtype, 5, seed=4).abs()
    for weight, positive in ((None, None), (w, pos)):
        loss, grad = loss_and_gradient(
            lambda a, b, c, d: F.binary_cross_entropy_with_logits(
                a, b, c, pos_weight=d, reduction=how
            ),
            x,
            y.sigmoid(),
            g,
            weight,
            positive,
        )
        sim.check(
            "aclnnBinaryCrossEntropyWithLogits",
            x,
            y.sigmoid(),
            weight,
            positive,
            reduction,
            Out(loss),
        )
        sim.check(
            "aclnnBinaryCrossEntropyWithLogitsBackward",
            g,
            x,
            y.sigmoid(),
            weight,
            positive,
            reduction,
            Out(grad),
        )
    for log in (False, True):
        target = y.log_softmax(-1) if log else y.softmax(-1)
        loss, grad = loss_and_gradient(
            lambda a, b, log=log: F.kl_div(a, b, reduction=how, log_target=log), x, target, g
        )
        sim.check("aclnnKlDiv", x, target, reduction, log, Out(loss))
        sim.check("aclnnKlDivBackward", g, x, target, reduction, log, Out(grad))


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("shape", [(7, 5), (2, 5, 3, 4)])
def test_negative_log_likelihood_equals_torch(sim: Any, reduction: int, shape: Any) -> None:
    x, how = randn(torch.float32, *shape), REDUCTIONS[reduction]
    target = torch.randint(0, 5, (shape[0], *shape[2:]))
    target.view(-1)[0] = -100
    weight = torch.rand(5) + 0.5
    name = "NLLLoss" if len(shape) == 2 else "NLLLoss2d"
    total = weight[target.clamp(min=0)].masked_fill(target == -100, 0).sum() * (reduction != 0)
    wide = x.double().requires_grad_()
    loss = F.nll_loss(wide, target, weight.double(), reduction=how)
    g = torch.rand(loss.shape)
    (grad,) = torch.autograd.grad(loss, wide, g.double())
    sim.check(
        f"aclnn{name}", x, target, weight, reduction, -100, Out(loss.detach().float()), Out(total)
    )
    sim.check(
        f"aclnn{name}Backward", g, x, target, weight, reduction, -100, total, Out(grad.float())
    )


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


def test_connectionist_temporal_classification_equals_torch(sim: Any) -> None:
    steps, batch, classes = 9, 3, 5
    log_probs = randn(torch.float32, steps, batch, classes).log_softmax(-1)
    targets, lengths, targets_of = torch.randint(1, classes, (batch, 4)), (9, 7, 8), (4, 2, 3)
    nll, alpha = torch.ops.aten._ctc_loss(
        log_probs.double(), targets, lengths, targets_of, 0, False
    )
    outs = sim.run("aclnnCtcLoss", log_probs, targets, lengths, targets_of, 0, False,
                   Out(nll.float()), Out(alpha.float()))  # fmt: skip
    torch.testing.assert_close(outs[0][0], nll.float(), rtol=1e-5, atol=1e-5)
    grad = torch.rand(batch)
    expected = torch.ops.aten._ctc_loss_backward(
        grad.double(), log_probs.double(), targets, lengths, targets_of, nll, alpha, 0, False
    )
    sim.check("aclnnCtcLossBackward", grad, log_probs, targets, lengths, targets_of, nll.float(),
              outs[1][0], 0, False, Out(expected.float(), tolerance=1e-5))  # fmt: skip
