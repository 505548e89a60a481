"""Losses, embeddings, foreach, optimizer, random, padding and value-dependent kernels."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")
F = torch.nn.functional

FLOATS = [torch.float32, torch.float16, torch.bfloat16]
REDUCTIONS = ["none", "mean", "sum"]


def randn(dtype: Any, *shape: int, seed: int = 0) -> Any:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


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


@pytest.mark.parametrize("dtype", FLOATS)
def test_embeddings_and_their_gradients_equal_torch(sim: Any, dtype: Any) -> None:
    weight, at = randn(dtype, 9, 6), torch.tensor([[1, 8, 1], [0, 3, 1]])
    sim.check("aclnnEmbedding", weight, at, Out(weight[at]))
    grad = randn(dtype, 2, 3, 6, seed=1)
    for padding, scale in ((-1, False), (1, False), (-1, True)):
        expected = torch.ops.aten.embedding_dense_backward(grad.double(), at, 9, padding, scale)
        sim.check(
            "aclnnEmbeddingDenseBackward",
            grad,
            at,
            9,
            padding % 2**64,
            scale,
            Out(expected.to(dtype)),
        )


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


def test_random_streams_repeat_by_seed_and_offset_and_have_the_right_shape(sim: Any) -> None:
    zeros = torch.zeros(200, 300)

    def draw(op: str, *args: Any, like: Any = zeros) -> Any:
        return sim.run(op, Out(like), *args)[0][0]

    a = draw("aclnnInplaceUniform", -1.0, 3.0, 7, 0)
    assert torch.equal(a, draw("aclnnInplaceUniform", -1.0, 3.0, 7, 0))
    assert not torch.equal(a, draw("aclnnInplaceUniform", -1.0, 3.0, 7, 4))
    assert a.min() >= -1
    assert a.max() < 3
    assert abs(float(a.mean()) - 1) < 0.02
    n = draw("aclnnInplaceNormal", 1.0, 2.0, 7, 0)
    assert abs(float(n.mean()) - 1) < 0.03
    assert abs(float(n.std()) - 2) < 0.03
    assert abs(float(((n - 1) / 2).pow(4).mean()) - 3) < 0.2
    r = draw("aclnnInplaceRandom", -3, 5, 1, 0, like=zeros.long())
    assert sorted(r.unique().tolist()) == list(range(-3, 5))
    b = draw("aclnnInplaceBernoulli", 0.3, 1, 0)
    assert set(b.unique().tolist()) == {0.0, 1.0}
    assert abs(float(b.mean()) - 0.3) < 0.02
    p = sim.run("aclnnRandperm", 100, 3, 0, Out(torch.zeros(100, dtype=torch.int64)))[0][0]
    assert sorted(p.tolist()) == list(range(100))
    weights = torch.tensor([0.0, 1.0, 3.0, 0.0])
    drawn = sim.run("aclnnMultinomial", weights, 4000, True, 5, 0, Out(torch.zeros(4000).long()))[
        0
    ][0]
    counts = drawn.bincount(minlength=4)
    assert counts[0] == counts[3] == 0
    assert abs(int(counts[2]) - 3000) < 150


def test_dropout_keeps_and_scales_what_its_mask_says(sim: Any) -> None:
    x = torch.ones(1000)
    mask = torch.zeros(128, dtype=torch.uint8)
    out, bits = [r[0] for r in sim.run("aclnnDropout", x, 0.25, True, 1, 0, Out(x), Out(mask))]
    kept = torch.tensor([bool(bits[i // 8] >> (i % 8) & 1) for i in range(1000)])
    assert abs(float(kept.float().mean()) - 0.75) < 0.05
    assert torch.equal(out, kept / 0.75)
    sim.check("aclnnDropoutDoMask", x, bits, 0.25, Out(kept / 0.75))
    sim.check("aclnnDropoutBackward", x, bits, 2.0, Out(kept * 2.0))
    drawn = sim.run("aclnnDropoutGenMask", (1000,), 0.25, 1, 0, Out(mask))[0][0]
    assert torch.equal(drawn, bits)
    sim.check("aclnnDropout", x, 0.25, False, 1, 0, Out(x), Out(mask))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32])
def test_padding_equals_torch(sim: Any, dtype: Any) -> None:
    x = randn(torch.float32, 2, 3, 4, 5).mul(5).to(dtype)
    for pad in ((1, 2), (1, 2, -1, 3), (0, 0, 0, 0, 2, 1)):
        sim.check("aclnnConstantPadNd", x, pad, 7, Out(F.pad(x, pad, value=7)))
    for name, mode, most in (("Reflection", "reflect", 3), ("Replication", "replicate", 3)):
        for dims in range(1, most + 1):
            pad = (1, 2, 2, 1, 1, 0)[: 2 * dims]
            source = x[0] if dims == 1 else x[None] if dims == 3 else x
            if dims == 3:
                source = source.transpose(1, 2).contiguous()
            wide = source.double().requires_grad_()
            padded = F.pad(wide, pad, mode=mode)
            sim.check(f"aclnn{name}Pad{dims}d", source, pad, Out(padded.detach().to(dtype)))
            if dtype.is_floating_point:
                g = randn(dtype, *padded.shape, seed=1)
                (grad,) = torch.autograd.grad(padded, wide, g.double())
                sim.check(f"aclnn{name}Pad{dims}dBackward", g, source, pad, Out(grad.to(dtype)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_repeat_interleave_equals_torch(sim: Any, dtype: Any) -> None:
    x, repeats = randn(torch.float32, 3, 4).mul(3).to(dtype), torch.tensor([2, 0, 3, 1])
    sim.check("aclnnRepeatInterleaveIntWithDim", x, 3, 1, 12, Out(x.repeat_interleave(3, 1)))
    sim.check(
        "aclnnRepeatInterleaveWithDim", x, repeats, 1, 6, Out(x.repeat_interleave(repeats, 1))
    )
    sim.check("aclnnRepeatInterleaveInt", x, 2, 24, Out(x.repeat_interleave(2)))


def test_value_dependent_results_are_resized(sim: Any) -> None:
    x = torch.tensor([[3.0, 0.0, 3.0], [1.0, 2.0, 0.0]])
    cells = sim.put(torch.zeros(6, 2, dtype=torch.int64))
    sim.cann.ops.aclnnNonzero(sim.put(x), cells)
    sim.synchronize()
    count = int((x != 0).sum())
    assert torch.equal(torch.from_numpy(cells.numpy())[:count], x.nonzero())
    out = sim.put(torch.zeros(6))
    sim.cann.ops.aclnnMaskedSelect(sim.put(x), sim.put(x > 1), out)
    sim.synchronize()
    assert torch.from_numpy(out.numpy())[:3].tolist() == [3.0, 3.0, 2.0]
    value, inverse, counts = (
        sim.put(torch.zeros(6)),
        sim.put(torch.zeros(2, 3).long()),
        sim.put(torch.zeros(6).long()),
    )
    sim.cann.ops.aclnnUnique2(sim.put(x), True, True, True, value, inverse, counts)
    sim.synchronize()
    expected = x.unique(return_inverse=True, return_counts=True)
    assert torch.equal(torch.from_numpy(value.numpy())[:4], expected[0])
    assert torch.equal(torch.from_numpy(inverse.numpy()), expected[1])
    assert torch.equal(torch.from_numpy(counts.numpy())[:4], expected[2])
    source = torch.arange(6.0)
    sim.check("aclnnInplaceMaskedScatter", Out(x.masked_scatter(x > 1, source), x), x > 1, source)


def test_searching_and_counting_equal_torch(sim: Any) -> None:
    edges, x = torch.tensor([1.0, 3.0, 5.0, 7.0]), torch.tensor([[0.0, 3.0, 9.0], [5.0, 6.0, 1.0]])
    for right in (False, True):
        sim.check(
            "aclnnSearchSorted",
            edges,
            x,
            False,
            right,
            None,
            Out(torch.searchsorted(edges, x, right=right)),
        )
    sim.check("aclnnHistc", x, 4, 0.0, 8.0, Out(torch.histc(x, 4, 0, 8)))
    k = torch.tensor([1, 3, 1, 0])
    sim.check("aclnnBincount", k, None, 6, Out(k.bincount(minlength=6)))


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
