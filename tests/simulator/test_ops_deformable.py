"""Samples off the grid and short causal convolutions, against torch's own sampling and autograd."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")
F = torch.nn.functional


def noise(*shape: int, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_attention_over_levels_samples_as_grid_sample_does(sim: Any) -> None:
    shapes, heads, width = [(3, 4), (2, 2)], 2, 3
    value = noise(2, 16, heads, width).requires_grad_()
    at = torch.rand(2, 5, heads, 2, 4, 2, generator=torch.Generator().manual_seed(1)) * 1.4 - 0.2
    at.requires_grad_()
    share = noise(2, 5, heads, 2, 4, seed=2).softmax(-1).requires_grad_()
    total, first = 0, 0
    for level, (h, w) in enumerate(shapes):
        plane = value[:, first : first + h * w].permute(0, 2, 3, 1).reshape(2 * heads, width, h, w)
        grid = at[:, :, :, level].transpose(1, 2).flatten(0, 1) * 2 - 1
        sampled = F.grid_sample(plane, grid, align_corners=False)  # [B H, D, Q, P]
        by = share[:, :, :, level].transpose(1, 2).flatten(0, 1)[:, None]
        total = total + (sampled * by).sum(-1).view(2, heads * width, 5)
        first += h * w
    y = total.transpose(1, 2).contiguous()
    given = (
        value.detach(),
        torch.tensor(shapes),
        torch.tensor([0, 12]),
        at.detach(),
        share.detach(),
    )
    accepted(sim, "aclnnMultiScaleDeformableAttnFunction", *given, Out(y.detach(), tolerance=1e-5))
    g = noise(*y.shape, seed=3)
    grads = torch.autograd.grad((y * g).sum(), (value, at, share))
    accepted(sim, "aclnnMultiScaleDeformableAttentionGrad", *given, g,
             *(Out(t, tolerance=1e-4) for t in grads))  # fmt: skip


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize("scales", [(2.0, 1.5), (0.5, 3.0)])
def test_planes_are_resized_by_scales(sim: Any, mode: str, scales: tuple[float, float]) -> None:
    x = noise(2, 3, 4, 6)
    size = [int(4 * scales[0]), int(6 * scales[1])]
    corners = None if mode == "nearest" else False
    y = F.interpolate(x, size, mode=mode, align_corners=corners)
    accepted(sim, "aclnnResize", x, (1.0, 1.0, *scales), mode, Out(y, tolerance=1e-5))
    refused(sim, "mode should be", "aclnnResize", x, (1.0, 1.0, *scales), "cubic", Out(y))


def test_interpolated_points_give_back_to_their_three_neighbours(sim: Any) -> None:
    known = noise(2, 3, 5).requires_grad_()
    at = torch.tensor([[[0, 1, 2], [4, 4, 0]], [[3, 2, 1], [0, 3, 3]]])
    share = noise(2, 2, 3, seed=1).softmax(-1)
    y = torch.stack([(known[b][:, at[b]] * share[b]).sum(-1) for b in range(2)])
    g = noise(2, 3, 2, seed=2)
    (expected,) = torch.autograd.grad((y * g).sum(), known)
    accepted(
        sim, "aclnnThreeInterpolateBackward", g, at.int(), share, 5, Out(expected, tolerance=1e-5)
    )
