"""Pooling of planes and regions, unpooling, boxes: against torch, and against what must hold."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")
F = torch.nn.functional


def noise(*shape: int, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_maximum_pooling_equals_torch(sim: Any, ceil: bool, dtype: Any) -> None:
    x = noise(2, 3, 7, 9).to(dtype)
    for kernel, stride, pad, dilation in (
        ((3, 2), (2, 3), (1, 0), (1, 2)),
        ((2,), (2,), (0,), (1,)),
    ):
        y = F.max_pool2d(x.float(), kernel, stride, pad, dilation, ceil).to(dtype)
        accepted(sim, "aclnnMaxPool", x, kernel, stride, 0, pad, dilation, int(ceil), Out(y))
    y = F.max_pool2d(F.pad(x.float(), (1, 0, 0, 1), value=-9), 2, 2)
    accepted(sim, "aclnnMaxPool", x, (2, 2), (2, 2), 0, (0, 1, 1, 0), (1, 1), 0, Out(y.to(dtype)))


def test_whole_planes_are_pooled(sim: Any) -> None:
    x = noise(2, 3, 4, 5)
    accepted(sim, "aclnnGlobalAveragePool", x, Out(x.mean((2, 3), keepdim=True)))
    accepted(sim, "aclnnGlobalMaxPool", x, Out(x.amax((2, 3), keepdim=True)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.int64])
def test_unpooling_puts_maxima_back(sim: Any, dtype: Any) -> None:
    x = noise(2, 3, 4, 6)
    small, at = F.max_pool2d(x, 2, return_indices=True)
    small = (small * 4).to(dtype)
    large = F.max_unpool2d(small.double(), at, 2).to(dtype)
    accepted(sim, "aclnnMaxUnpool2d", small, at, (4, 6), Out(large))
    grad = (noise(2, 3, 4, 6, seed=1) * 4).to(dtype)
    picked = grad.flatten(2).gather(2, at.flatten(2)).view_as(small)
    accepted(sim, "aclnnMaxUnpool2dBackward", grad, small, at, (4, 6), Out(picked))


def test_volumes_are_unpooled(sim: Any) -> None:
    x = noise(2, 3, 4, 4, 6)
    small, at = F.max_pool3d(x, 2, return_indices=True)
    large = F.max_unpool3d(small, at, 2)
    accepted(sim, "aclnnMaxUnpool3d", small, at, (4, 4, 6), (2, 2, 2), (0, 0, 0), Out(large))
    picked = x.flatten(2).gather(2, at.flatten(2)).view_as(small)
    accepted(sim, "aclnnMaxUnpool3dBackward", x, small, at, (4, 4, 6), (2, 2, 2), (0, 0, 0),
             Out(picked))  # fmt: skip


def test_unpooling_outside_the_plane_fails_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    one = torch.ones(1, 1, 1)
    with pytest.raises(AclError, match="out of range for a plane of 4"):
        sim.run("aclnnMaxUnpool2d", one, torch.full((1, 1, 1), 4), (2, 2), Out(torch.ones(1, 2, 2)))


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


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 2, 4, 5)])
def test_affine_grids_equal_torch(sim: Any, corners: bool, size: tuple[int, ...]) -> None:
    dims = len(size) - 2
    theta = noise(2, dims, dims + 1)
    grid = F.affine_grid(theta, list(size), align_corners=corners)
    accepted(sim, "aclnnAffineGrid", theta, size, corners, Out(grid, tolerance=1e-5))


def test_regions_refuse_boxes_without_an_image(sim: Any) -> None:
    x = noise(1, 1, 4, 4)
    refused(sim, "boxes should be", "aclnnRoiAlignV2", x, BOXES[:, 1:], 1, 1, 1.0, 0, True,
            Out(torch.zeros(2, 1, 1, 1)))  # fmt: skip
