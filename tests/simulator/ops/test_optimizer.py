"""Kernels of optimizer: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


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


def test_what_documents_call_optional_may_be_absent(sim: Any) -> None:
    x, g = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    mean, rstd = x.mean((0, 2)), (x.var((0, 2), correction=0) + 1e-5).rsqrt()
    masks = ((True, False, False), (False, True, True))
    expected = torch.ops.aten.native_batch_norm_backward(
        g, x, torch.ones(3), None, None, mean, rstd, True, 1e-5, [True] * 3
    )
    for mask in masks:
        outs = [Out(e, tolerance=1e-4) if m else None for e, m in zip(expected, mask, strict=True)]
        accepted(sim, "aclnnBatchNormBackward", g, x, torch.ones(3), None, None, mean, rstd, True,
                 1e-5, mask, *outs)  # fmt: skip
    param, state = torch.randn(4), torch.zeros(4)
    stepped = param.clone().requires_grad_()
    optimizer = torch.optim.AdamW([stepped], 0.1, (0.9, 0.99), 1e-8, 0.01, foreach=False)
    stepped.grad = torch.ones(4)
    optimizer.step()
    m, v = optimizer.state[stepped]["exp_avg"], optimizer.state[stepped]["exp_avg_sq"]
    accepted(sim, "aclnnApplyAdamWV2", Out(stepped.detach(), param, 1e-5), Out(m, state, 1e-5),
             Out(v, state, 1e-5), None, torch.ones(4), torch.tensor([0.0]), 0.1, 0.9, 0.99, 0.01,
             1e-8, False, False)  # fmt: skip


@pytest.mark.parametrize("amsgrad", [False, True])
def test_adamw_step_equals_torch(sim: Any, amsgrad: bool) -> None:
    start, grads = torch.randn(5, 3), [torch.randn(5, 3) for _ in range(3)]
    parameter = start.clone().requires_grad_()
    optimizer = torch.optim.AdamW([parameter], lr=0.1, weight_decay=0.05, amsgrad=amsgrad)
    var, m, v, top = start.clone(), *[torch.zeros(5, 3) for _ in range(3)]
    for step, grad in enumerate(grads):
        parameter.grad = grad.clone()
        optimizer.step()
        state = optimizer.state[parameter]
        expected = [parameter.detach(), state["exp_avg"], state["exp_avg_sq"]]
        expected.append(state["max_exp_avg_sq"] if amsgrad else top)
        given = [var, m, v, top]
        outs = [Out(e, x) for e, x in zip(expected, given, strict=True)]
        results = sim.run(
            "aclnnApplyAdamWV2",
            *outs,
            grad,
            torch.tensor([float(step)]),
            0.1,
            0.9,
            0.999,
            0.05,
            1e-8,
            amsgrad,
            False,
        )
        var, m, v, top = [r[0] for r in results]
        for got, out in results:
            torch.testing.assert_close(got, out.expected, rtol=1e-5, atol=1e-6)
