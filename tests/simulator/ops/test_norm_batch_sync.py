"""Norms with what models put around them, by autograd; batch norm in pieces."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

F = torch.nn.functional
EPS = 1e-3


def out(tensor: Any, tolerance: float = 1e-4) -> Out:
    return Out(tensor.detach().contiguous(), tolerance=tolerance)


def moments(x: Any, dims: Any) -> tuple[Any, Any]:
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    return mean, (var + EPS).rsqrt()


@pytest.mark.parametrize("bias", [None, "row", "full"])
def test_sums_are_normalised_and_have_gradients(sim: Any, bias: str | None) -> None:
    x1, x2 = noise(2, 3, 6).requires_grad_(), noise(2, 3, 6, seed=1)
    gamma, beta = noise(6, seed=2).requires_grad_(), noise(6, seed=3).requires_grad_()
    b = {None: None, "row": noise(6, seed=4), "full": noise(2, 3, 6, seed=4)}[bias]
    x = x1 + x2 + (0 if b is None else b)
    y = F.layer_norm(x, (6,), gamma, beta, EPS)
    mean, rstd = moments(x, -1)
    accepted(sim, "aclnnAddLayerNorm", x1.detach(), x2, gamma.detach(), beta.detach(), b, EPS, True,
             out(y), out(mean), out(rstd), out(x))  # fmt: skip
    if bias:
        return
    g, more = noise(2, 3, 6, seed=5), noise(2, 3, 6, seed=6)
    dx, dgamma, dbeta = torch.autograd.grad((y * g).sum(), (x1, gamma, beta))
    accepted(sim, "aclnnAddLayerNormGrad", g, x1.detach(), x2, rstd.detach(), mean.detach(),
             gamma.detach(), more, out(dx + more), out(dgamma), out(dbeta))  # fmt: skip


def test_deep_norm_and_its_gradient(sim: Any) -> None:
    x, gx = noise(3, 6).requires_grad_(), noise(3, 6, seed=1).requires_grad_()
    gamma, beta = noise(6, seed=2).requires_grad_(), noise(6, seed=3).requires_grad_()
    y = F.layer_norm(x * 0.7 + gx, (6,), gamma, beta, EPS)
    mean, rstd = moments(x * 0.7 + gx, -1)
    given = [t.detach() for t in (x, gx, gamma, beta)]
    accepted(
        sim, "aclnnDeepNorm", *given[:2], given[3], given[2], 0.7, EPS, out(mean), out(rstd), out(y)
    )
    g = noise(3, 6, seed=5)
    dx, dgx, dgamma, dbeta = torch.autograd.grad((y * g).sum(), (x, gx, gamma, beta))
    accepted(sim, "aclnnDeepNormGrad", g, *given[:3], mean.detach(), rstd.detach(), 0.7, out(dx),
             out(dgx), out(dbeta), out(dgamma))  # fmt: skip


def test_sums_are_normalised_by_their_root_in_two_dtypes(sim: Any) -> None:
    a, b, gamma = noise(2, 8).half(), noise(2, 8, seed=1).half(), noise(8, seed=2).half()
    x = a.float() + b.float()
    rstd = (x.square().mean(-1, keepdim=True) + EPS).rsqrt()
    y = x * rstd * gamma.float()
    accepted(sim, "aclnnAddRmsNormCast", a, b, gamma, EPS, out(y), out(y.half(), 2e-3), out(rstd),
             out(x.half(), 2e-3))  # fmt: skip


def test_optional_outputs_of_norms_may_be_absent(sim: Any) -> None:
    a, b, gamma = noise(2, 8), noise(2, 8, seed=1), noise(8, seed=2)
    x = a + b
    y = x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt() * gamma
    accepted(sim, "aclnnAddRmsNorm", a, b, gamma, EPS, out(y), None, None)


@pytest.mark.parametrize("steps", [1, 4])
def test_adaptive_norm_scales_and_shifts_each_sample(sim: Any, steps: int) -> None:
    x, scale = noise(2, steps, 6).requires_grad_(), noise(2, 1, 6, seed=1).requires_grad_()
    shift = noise(2, 1, 6, seed=2).requires_grad_()
    w, b = noise(6, seed=3).requires_grad_(), noise(6, seed=4).requires_grad_()
    y = F.layer_norm(x, (6,), w, b, EPS) * (1 + scale) + shift
    mean, rstd = moments(x, -1)
    given = [t.detach() for t in (x, scale, shift, w, b)]
    accepted(sim, "aclnnAdaLayerNorm", *given, EPS, out(y))
    flat = [given[0], given[1][:, 0], given[2][:, 0], None, None]
    plain = F.layer_norm(x, (6,), None, None, EPS) * (1 + scale) + shift
    accepted(sim, "aclnnAdaLayerNorm", *flat, EPS, out(plain))
    accepted(sim, "aclnnAdaLayerNormV2", *given, EPS, out(y), out(mean), out(rstd))
    g = noise(2, steps, 6, seed=5)
    grads = torch.autograd.grad((y * g).sum(), (x, scale, shift, w, b))
    accepted(sim, "aclnnAdaLayerNormBackward", g, given[0], (6,), rstd.detach(), mean.detach(),
             *given[1:], *(out(t) for t in grads))  # fmt: skip


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_weights_of_an_adaptive_norm_s_gradient_are_as_wide_as_its_rows(sim: Any, at: int) -> None:
    rows, wide = noise(2, 3, 6), [6, 6, 6, 6]
    wide[at] = 12  # of weight, bias and their gradients
    mean, rstd = moments(rows, -1)
    given = [rows, rows, (6,), rstd, mean, noise(2, 1, 6), noise(2, 1, 6)]
    made = [out(rows), out(noise(2, 1, 6)), out(noise(2, 1, 6))]
    refused(sim, "should have 6 elements", "aclnnAdaLayerNormBackward", *given, noise(wide[0]),
            noise(wide[1]), *made, out(noise(wide[2])), out(noise(wide[3])))  # fmt: skip


def test_modulation_and_its_gradient(sim: Any) -> None:
    x, scale = noise(2, 3, 4).requires_grad_(), noise(2, 4, seed=1).requires_grad_()
    shift, g = noise(2, 4, seed=2).requires_grad_(), noise(2, 3, 4, seed=3)
    y = x * (1 + scale[:, None]) + shift[:, None]
    given = [t.detach() for t in (x, scale, shift)]
    accepted(sim, "aclnnModulate", *given, out(y))
    accepted(sim, "aclnnModulate", given[0], None, given[2], out(given[0] + given[2][:, None]))
    grads = torch.autograd.grad((y * g).sum(), (x, scale, shift))
    accepted(sim, "aclnnModulateBackward", g, *given, *(out(t) for t in grads))


@pytest.mark.parametrize("swish", [False, True])
def test_group_norm_with_swish_and_its_gradient(sim: Any, swish: bool) -> None:
    x, gamma = noise(2, 6, 3, 2).requires_grad_(), noise(6, seed=1).requires_grad_()
    beta = noise(6, seed=2).requires_grad_()
    y = F.group_norm(x, 3, gamma, beta, EPS)
    z = y * torch.sigmoid(0.8 * y) if swish else y
    mean, rstd = moments(x.view(2, 3, -1), -1)
    given = [t.detach() for t in (x, gamma, beta)]
    accepted(sim, "aclnnGroupNormSwish", *given, 3, "NCHW", EPS, swish, 0.8, out(z),
             out(mean[..., 0]), out(rstd[..., 0]))  # fmt: skip
    if swish:
        g = noise(2, 6, 3, 2, seed=3)
        dx, dgamma, dbeta = torch.autograd.grad((z * g).sum(), (x, gamma, beta))
        accepted(sim, "aclnnGroupNormSwishGrad", g, mean[..., 0].detach(), rstd[..., 0].detach(),
                 *given, 3, "NCHW", 0.8, True, True, out(dx), out(dgamma.view(1, 6)),
                 out(dbeta.view(1, 6)))  # fmt: skip


def test_batch_norm_falls_into_statistics_and_elements(sim: Any) -> None:
    x, w = noise(3, 4, 5).requires_grad_(), noise(4, seed=1).requires_grad_()
    b = noise(4, seed=2)
    mean, rstd = (t.flatten() for t in moments(x.detach(), (0, 2)))
    y = F.batch_norm(x, None, None, w, b, training=True, eps=EPS)
    seen = x.detach()
    accepted(sim, "aclnnBatchNormStats", seen, EPS, out(mean), out(rstd))
    accepted(sim, "aclnnBatchNormElemt", seen, w.detach(), b, mean, rstd, EPS, out(y))
    g = noise(3, 4, 5, seed=3)
    dx, dw = torch.autograd.grad((y * g).sum(), (x, w))
    dy = g.sum((0, 2))
    dy_xmu = (g * (seen - mean[:, None])).sum((0, 2))
    accepted(sim, "aclnnBatchNormReduceBackward", g, seen, mean, rstd, w.detach(), True, True, True,
             out(dy), out(dy_xmu), out(dw), out(dy))  # fmt: skip
    count = torch.tensor([15], dtype=torch.int32)
    accepted(sim, "aclnnBatchNormElemtBackward", g, seen, mean, rstd, w.detach(), dy, dy_xmu, count,
             out(dx))  # fmt: skip


def test_statistics_of_several_devices_are_those_of_all_their_data(sim: Any) -> None:
    parts = [noise(3, 4, 5), noise(2, 4, 5, seed=1)]
    x = torch.cat(parts)
    stats = [moments(p, (0, 2)) for p in parts]
    means = torch.stack([m.flatten() for m, _ in stats])
    rstds = torch.stack([r.flatten() for _, r in stats])
    counts = torch.tensor([15.0, 10.0])
    run_mean, run_var = noise(4, seed=2), noise(4, seed=3).abs()
    new_mean, new_var = run_mean.clone(), run_var.clone()
    F.batch_norm(x, new_mean, new_var, training=True, momentum=0.3)
    mean, rstd = (t.flatten() for t in moments(x, (0, 2)))
    accepted(sim, "aclnnBatchNormGatherStatsWithCounts", x, means, rstds,
             Out(new_mean, run_mean, 1e-4), Out(new_var, run_var, 1e-4), 0.3, EPS, counts,
             out(mean), out(rstd))  # fmt: skip
    sums = torch.stack([p.sum((0, 2)) for p in parts])
    squares = torch.stack([p.square().sum((0, 2)) for p in parts])
    accepted(sim, "aclnnSyncBatchNormGatherStats", sums, squares, counts.int(),
             Out(new_mean, run_mean, 1e-4), Out(new_var, run_var, 1e-4), 0.3, EPS, out(mean),
             out(rstd))  # fmt: skip
    image = parts[0][..., None]
    accepted(sim, "aclnnBatchNormReduce", image, out(sums[0]), out(squares[0]))


def test_quantised_batch_norm_equals_torch(sim: Any) -> None:
    x = torch.quantize_per_tensor(noise(2, 3, 4, 5), 0.05, 3, torch.quint8)
    w, b, mean, var = noise(3, seed=1), noise(3, seed=2), noise(3, seed=3), noise(3, seed=4).abs()
    y = torch.quantized_batch_norm(x, w, b, mean, var, EPS, 0.04, 7)
    ((found, _),) = sim.run("aclnnQuantizedBatchNorm", x.int_repr(), mean, var, 0.05, 3, 0.04, 7, w,
                            b, EPS, Out(y.int_repr()))  # fmt: skip
    # Ties of the last float digit may round either way.
    assert (found.int() - y.int_repr().int()).abs().max() <= 1
