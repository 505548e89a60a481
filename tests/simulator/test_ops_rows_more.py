"""Distances of pairs, gated units' gradients, masked softmax, random tensors, bits and the like."""

from __future__ import annotations

import math
from typing import Any

import pytest
from kernel_harness import Out, accepted, refused

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")
F = torch.nn.functional


def noise(*shape: int, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
def test_distances_of_pairs_and_their_gradient_equal_torch(sim: Any, p: float) -> None:
    x, y = noise(2, 3, 4).requires_grad_(), noise(2, 5, 4, seed=1)
    d, g = (
        torch.cdist(x, y, p=p, compute_mode="donot_use_mm_for_euclid_dist"),
        noise(2, 3, 5, seed=2),
    )
    (expected,) = torch.autograd.grad((d * g).sum(), x)
    accepted(
        sim, "aclnnCdistBackward", g, x.detach(), y, d.detach(), p, Out(expected, tolerance=1e-4)
    )
    pairs = torch.pdist(y[0], p)
    accepted(sim, "aclnnPdist", y[0], p, Out(pairs, tolerance=1e-5))
    accepted(sim, "aclnnPdistForward", y[0], p, Out(pairs, tolerance=1e-5))


def test_nearest_points_pull_on_each_other(sim: Any) -> None:
    a, b = noise(2, 3, 2).requires_grad_(), noise(2, 4, 2, seed=1).requires_grad_()
    d = ((a[:, :, None] - b[:, None]) ** 2).sum(-1)
    (one, i), (two, k) = d.min(2), d.min(1)
    g1, g2 = noise(2, 3, seed=2), noise(2, 4, seed=3)
    ga, gb = torch.autograd.grad((one * g1).sum() + (two * g2).sum(), (a, b))
    accepted(sim, "aclnnChamferDistanceBackward", a.detach(), b.detach(), i.int(), k.int(), g1, g2,
             Out(ga, tolerance=1e-5), Out(gb, tolerance=1e-5))  # fmt: skip


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("left", [False, True])
def test_gelu_gates_have_gradients(sim: Any, approximate: str, left: bool) -> None:
    x, g = noise(3, 8).requires_grad_(), noise(3, 4, seed=1)
    halves = x.chunk(2, -1)
    active, other = halves if left else halves[::-1]
    gelu = F.gelu(active, approximate=approximate)
    (expected,) = torch.autograd.grad((gelu * other * g).sum(), x)
    args = (g, x.detach(), gelu.detach(), -1, int(approximate == "tanh"))
    accepted(sim, "aclnnGeGluV3Backward", *args, left, Out(expected, tolerance=1e-5))
    if not left:
        accepted(sim, "aclnnGeGluBackward", *args, Out(expected, tolerance=1e-5))
    a, b = x.detach().chunk(2, -1)
    accepted(sim, "aclnnGeluMul", x.detach(), approximate,
             Out(F.gelu(a, approximate=approximate) * b, tolerance=1e-5))  # fmt: skip


def test_fat_relu_keeps_what_exceeds_its_threshold(sim: Any) -> None:
    x = noise(3, 8)
    a, b = x.chunk(2, -1)
    accepted(sim, "aclnnFatreluMul", x, torch.tensor([0.3]), Out(torch.where(a > 0.3, a, 0.0) * b))


@pytest.mark.parametrize("fixed", [False, True])
def test_masked_softmax_and_its_gradient(sim: Any, fixed: bool) -> None:
    x = noise(2, 3, 4, 4).requires_grad_()
    mask = torch.ones(4, 4).triu(1).bool() if fixed else noise(2, 1, 4, 4, seed=1) > 0.5
    y = (x * 0.7).masked_fill(mask, -10000.0).softmax(-1)
    accepted(
        sim,
        "aclnnScaledMaskedSoftmax",
        x.detach(),
        mask,
        0.7,
        fixed,
        Out(y.detach(), tolerance=1e-5),
    )
    g = noise(2, 3, 4, 4, seed=2)
    (expected,) = torch.autograd.grad((y * g).sum(), x)
    accepted(sim, "aclnnScaledMaskedSoftmaxBackward", g, y.detach(), mask, 0.7, fixed,
             Out(expected, tolerance=1e-4))  # fmt: skip


def test_window_attention_adds_mask_and_bias_before_its_softmax(sim: Any) -> None:
    x, mask, bias = noise(2, 3, 2, 4, 4), noise(3, 4, 4, seed=1), noise(2, 4, 4, seed=2)
    y = (x * 0.5 + mask[None, :, None] + bias).softmax(-1)
    accepted(sim, "aclnnMaskedSoftmaxWithRelPosBias", x, mask, bias, 0.5, 0, Out(y, tolerance=1e-5))
    accepted(sim, "aclnnMaskedSoftmaxWithRelPosBias", x.flatten(0, 1), None, bias, 0.5, 0,
             Out((x * 0.5 + bias).softmax(-1).flatten(0, 1), tolerance=1e-5))  # fmt: skip


def test_random_slopes_lie_between_their_bounds(sim: Any) -> None:
    x, zero = noise(4, 50), torch.zeros(4, 50)
    accepted(sim, "aclnnRReluWithNoise", x, zero, 0.1, 0.3, False, 1, 0, Out(F.rrelu(x, 0.1, 0.3)))
    (noise_, _), (y, _) = sim.run(
        "aclnnRReluWithNoise", x, Out(zero), 0.1, 0.3, True, 1, 0, Out(zero)
    )
    assert (noise_[x > 0] == 1).all()
    slopes = noise_[x <= 0]
    assert 0.1 <= slopes.min() < slopes.max() <= 0.3
    torch.testing.assert_close(y, x * noise_)
    ((again, _),) = sim.run(
        "aclnnInplaceRReluWithNoise", Out(zero, given=x), zero, 0.1, 0.3, True, 1, 0
    )
    torch.testing.assert_close(again, y)


def test_signs_pack_into_bits(sim: Any) -> None:
    x = torch.tensor([5.0, 4, 3, 2, 0, -1, -2, 4, 3, 2, 1, 0, -1, -2])
    packed = torch.tensor([[159], [15]], dtype=torch.uint8)
    accepted(sim, "aclnnSignBitsPack", x, 2, Out(packed))
    signs = torch.cat([torch.where(x >= 0, 1.0, -1.0), -torch.ones(2)])
    accepted(sim, "aclnnSignBitsUnpack", packed.flatten(), 2, torch.float32, Out(signs.view(2, 8)))


def test_segment_sums_and_their_gradient(sim: Any) -> None:
    x = noise(2, 5).requires_grad_()
    sums = torch.stack([(x[:, None] * m).sum(-1) for m in
                        (torch.ones(5, 5).tril(-1).T[j] for j in range(5))], -1)  # fmt: skip
    total = x.cumsum(1)
    sums = total[:, :, None] - total[:, None]
    y = sums.masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf).exp()
    accepted(sim, "aclnnExpSegsum", x.detach(), Out(y.detach(), tolerance=1e-5))
    g = noise(2, 5, 5, seed=1)
    (expected,) = torch.autograd.grad((y * g).sum(), x)
    accepted(sim, "aclnnExpSegsumBackward", g, y.detach(), Out(expected, tolerance=1e-4))


def test_projections_are_split_into_heads(sim: Any) -> None:
    qkv, bias = noise(2, 3, 24), noise(24, seed=1)
    outs = torch.ops.aten._transform_bias_rescale_qkv(qkv, bias, 2)
    accepted(sim, "aclnnTransformBiasRescaleQkv", qkv, bias, 2, *(Out(o) for o in outs))


def test_sinkhorn_makes_rows_and_columns_weigh_the_same(sim: Any) -> None:
    x = noise(4, 3)
    ((p, _),) = sim.run("aclnnSinkhorn", x, 1e-7, Out(torch.zeros(4, 3)))
    torch.testing.assert_close(p.sum(0), torch.full((3,), 1 / 3), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(p.sum(1), torch.full((4,), 1 / 4), rtol=1e-3, atol=1e-4)
    ratio = (p / x.exp()).log()  # of rank one
    torch.testing.assert_close(ratio - ratio[:1] - ratio[:, :1] + ratio[0, 0], torch.zeros(4, 3),
                               rtol=0, atol=1e-4)  # fmt: skip


def test_scales_stand_from_their_axis_on(sim: Any) -> None:
    x, scale, bias = noise(2, 3, 4, 5), noise(3, 4, seed=1), noise(3, 4, seed=2)
    accepted(
        sim, "aclnnScale", x, scale, bias, 1, 2, True, Out(x * scale[..., None] + bias[..., None])
    )
    refused(sim, "doesn't fit", "aclnnScale", x, scale, bias, 2, 2, True, Out(x))


def test_angles_of_real_and_complex_numbers(sim: Any) -> None:
    x = torch.tensor([1.0, -2.0, 0.0, math.nan])
    z = torch.tensor([1 + 1j, -1 - 1j, 2j])
    sim.check("aclnnAngleV2", x, Out(x.angle()))
    sim.check("aclnnAngleV2", z, Out(z.angle()))


def test_seeds_in_tensors_give_the_numbers_of_seeds_on_the_host(sim: Any) -> None:
    zero = torch.zeros(200)
    for op, args in {"Normal": (1.0, 2.0), "Uniform": (0.0, 2.0), "Random": (0, 9)}.items():
        ((here, _),) = sim.run(f"aclnnInplace{op}", Out(zero), *args, 3, 5)
        width = torch.uint64 if op == "Uniform" else torch.int64
        seeds = (torch.tensor([3]).to(width), torch.tensor([4]).to(width))
        ((there, _),) = sim.run(f"aclnnInplace{op}Tensor", Out(zero), *args, *seeds, 1)
        torch.testing.assert_close(there, here)
        assert len(here.unique()) > 5
