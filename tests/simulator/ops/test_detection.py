"""Kernels of detection: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


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


BOXES = torch.tensor([[1.0, 2.0, 3.0, 10.0, 12.0], [0.0, 4.0, 1.0, 9.0, 6.0]])  # image, x0, y0, ...


@pytest.mark.parametrize("aligned", [False, True])
def test_regions_of_a_plane_that_rises_evenly_hold_the_values_of_their_bins(
    sim: Any, aligned: bool
) -> None:
    """Bilinear samples of a linear function are exact, so that a bin has its centre's value."""
    y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    planes = torch.stack([y, x, 2 * y - x]).expand(2, 3, 16, 16).contiguous()
    shift = 0.5 if aligned else 0.0
    size = BOXES[:, 3:] - BOXES[:, 1:3]
    steps = (torch.arange(2) + 0.5) / 2
    cx = BOXES[:, 1, None] - shift + size[:, :1] * steps
    cy = BOXES[:, 2, None] - shift + size[:, 1:] * steps
    rows, cols = cy[:, :, None].expand(2, 2, 2), cx[:, None, :].expand(2, 2, 2)
    expected = torch.stack([rows, cols, 2 * rows - cols], 1)
    accepted(sim, "aclnnRoiAlignV2", planes, BOXES, 2, 2, 1.0, 2, aligned, Out(expected))


def test_the_gradient_of_regions_is_their_adjoint(sim: Any) -> None:
    x, g = noise(2, 2, 12, 14), noise(2, 2, 3, 2, seed=1)
    ((y, _),) = sim.run("aclnnRoiAlignV2", x, BOXES, 3, 2, 1.0, 0, True, Out(torch.zeros_like(g)))
    ((back, _),) = sim.run("aclnnRoiAlignV2Backward", g, BOXES, tuple(x.shape), 3, 2, 1.0, 0, True,
                           Out(torch.zeros_like(x)))  # fmt: skip
    assert float((y * g).sum()) == pytest.approx(float((back * x).sum()), rel=1e-4)


def test_regions_with_images_apart_average_and_take_maxima(sim: Any) -> None:
    x = torch.arange(16.0).view(1, 1, 4, 4)
    rois, images = torch.tensor([[0.0, 0.0, 2.0, 2.0]]), torch.tensor([0], dtype=torch.int32)
    # Four samples at 0.5 and 1.5 along both axes.
    samples = torch.tensor([2.5, 3.5, 6.5, 7.5])
    accepted(sim, "aclnnRoiAlign", x, rois, images, "avg", 1, 1, 2, 1.0,
             Out(samples.mean().view(1, 1, 1, 1)))  # fmt: skip


def test_overlaps_of_boxes_are_unions_or_foregrounds(sim: Any) -> None:
    a = torch.tensor([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 4.0]])
    b = torch.tensor([[1.0, 0.0, 3.0, 2.0], [0.0, 0.0, 2.0, 2.0], [5.0, 5.0, 6.0, 6.0]])
    common = torch.tensor([[2.0, 4.0, 0.0], [2.0, 1.0, 0.0]])
    size_a, size_b = torch.tensor([[4.0], [6.0]]), torch.tensor([[4.0, 4.0, 1.0]])
    accepted(sim, "aclnnIou", a, b, "iou", 0.0, False, Out(common / (size_a + size_b - common)))
    accepted(sim, "aclnnIou", a, b, "iof", 0.0, False, Out(common / size_b))
    pairs = common.diagonal()[:, None] / (size_a + size_b[:, :2].t() - common.diagonal()[:, None])
    accepted(sim, "aclnnIou", a, b[:2], "iou", 0.0, True, Out(pairs))


def test_regions_refuse_boxes_without_an_image(sim: Any) -> None:
    x = noise(1, 1, 4, 4)
    refused(sim, "boxes should be", "aclnnRoiAlignV2", x, BOXES[:, 1:], 1, 1, 1.0, 0, True,
            Out(torch.zeros(2, 1, 1, 1)))  # fmt: skip


def test_nearest_points_pull_on_each_other(sim: Any) -> None:
    a, b = noise(2, 3, 2).requires_grad_(), noise(2, 4, 2, seed=1).requires_grad_()
    d = ((a[:, :, None] - b[:, None]) ** 2).sum(-1)
    (one, i), (two, k) = d.min(2), d.min(1)
    g1, g2 = noise(2, 3, seed=2), noise(2, 4, seed=3)
    ga, gb = torch.autograd.grad((one * g1).sum() + (two * g2).sum(), (a, b))
    accepted(sim, "aclnnChamferDistanceBackward", a.detach(), b.detach(), i.int(), k.int(), g1, g2,
             Out(ga, tolerance=1e-5), Out(gb, tolerance=1e-5))  # fmt: skip
