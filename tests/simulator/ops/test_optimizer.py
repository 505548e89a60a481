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


def noise(*shape: int, seed: int = 0, dtype: Any = torch.float32) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
def test_fused_adamw_steps_as_torch_does(sim: Any, amsgrad: bool, maximize: bool) -> None:
    params, grads = [noise(3, 4), noise(5, seed=1)], [noise(3, 4, seed=2), noise(5, seed=3)]
    expected = [p.clone().requires_grad_() for p in params]
    optimizer = torch.optim.AdamW(expected, 0.1, (0.8, 0.9), 1e-6, 0.05, amsgrad,
                                  maximize=maximize, foreach=False)  # fmt: skip
    for p, g in zip(expected, grads, strict=True):
        p.grad = g.clone()
    optimizer.step()
    m = [optimizer.state[p]["exp_avg"] for p in expected]
    v = [optimizer.state[p]["exp_avg_sq"] for p in expected]
    top = tuple(Out(x, torch.zeros_like(x), 1e-5) for x in v) if amsgrad else None
    outs = [tuple(Out(e.detach(), p, 1e-5) for e, p in zip(expected, params, strict=True)),
            tuple(grads), tuple(Out(x, torch.zeros_like(x), 1e-5) for x in m),
            tuple(Out(x, torch.zeros_like(x), 1e-5) for x in v)]  # fmt: skip
    step = (torch.tensor([1.0]), torch.tensor([1.0]))
    accepted(sim, "aclnnFusedAdamw", *outs, top, step, None, None, 0.1, 0.8, 0.9, 0.05, 1e-6,
             amsgrad, maximize)  # fmt: skip


@pytest.mark.parametrize("nesterov", [False, True])
def test_fused_sgd_steps_as_torch_does(sim: Any, nesterov: bool) -> None:
    param, grad = noise(3, 4), noise(3, 4, seed=1)
    expected = param.clone().requires_grad_()
    optimizer = torch.optim.SGD([expected], 0.1, 0.9, 0, 0.01, nesterov)
    buffers = [torch.zeros(3, 4)]
    now = param
    for first in (True, False):
        expected.grad = grad.clone()
        optimizer.step()
        kept = optimizer.state[expected]["momentum_buffer"].clone()
        accepted(sim, "aclnnFusedSgd", (Out(expected.detach().clone(), now, 1e-5),), (grad,),
                 (Out(kept, buffers[-1], 1e-5),), None, 0.01, 0.9, 0.1, 0.0, nesterov, False,
                 first)  # fmt: skip
        now, buffers = expected.detach().clone(), [kept]


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
