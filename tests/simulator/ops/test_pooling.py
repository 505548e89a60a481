"""Kernels of pooling: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted
from torch_samples import noise, randn, result_and_gradient

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

F = torch.nn.functional
FLOATS = [torch.float32, torch.float16, torch.bfloat16]
# kernel, stride, padding, dilation, ceil mode
MAX_2D = [
    ((2, 2), (2, 2), (0, 0), (1, 1), False),
    ((3, 2), (2, 1), (1, 0), (1, 1), True),
    ((3, 3), (2, 2), (1, 1), (2, 1), False),
    ((3, 3), (), (1, 1), (1, 1), False),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", MAX_2D, ids=str)
def test_max_pooling_and_its_gradient_equal_torch(sim: Any, dtype: Any, case: Any) -> None:
    kernel, stride, *rest = case
    for shape in ((2, 3, 9, 7), (3, 8, 9)):
        x = randn(dtype, *shape)
        y, g, gx = result_and_gradient(lambda a: F.max_pool2d(a, kernel, stride or None, *rest), x)
        _, at = F.max_pool2d(x.float(), kernel, stride or None, *rest, return_indices=True)
        for index in (torch.int32, torch.int64):
            sim.check(
                "aclnnMaxPool2dWithIndices", x, kernel, stride, *rest, Out(y), Out(at.to(index))
            )
            sim.check(
                "aclnnMaxPool2dWithIndicesBackward",
                g,
                x,
                at.to(index),
                kernel,
                stride,
                *rest,
                Out(gx),
            )


@pytest.mark.parametrize("case", MAX_2D, ids=str)
def test_masks_of_max_pooling_lead_gradients_back(sim: Any, case: Any) -> None:
    kernel, stride, *rest = case
    x = randn(torch.float32, 2, 3, 9, 7)
    y, g, gx = result_and_gradient(lambda a: F.max_pool2d(a, kernel, stride or None, *rest), x)
    row = (-(-y.shape[2] * y.shape[3] // 16) + 1) * 32
    mask = torch.zeros(2, 3, kernel[0] * kernel[1], row, dtype=torch.int8)
    (got, _), (bits, _) = sim.run(
        "aclnnMaxPool2dWithMask", x, kernel, stride, *rest, Out(y), Out(mask)
    )
    assert torch.equal(got, y)
    sim.check("aclnnMaxPool2dWithMaskBackward", g, x, bits, kernel, stride, *rest, Out(gx))


@pytest.mark.parametrize("dtype", FLOATS)
def test_max_pooling_in_space_equals_torch(sim: Any, dtype: Any) -> None:
    x, settings = randn(dtype, 2, 2, 4, 5, 6), ((2, 3, 2), (1, 2, 2), (0, 1, 1), (1, 1, 1), True)
    y, g, gx = result_and_gradient(lambda a: F.max_pool3d(a, *settings), x)
    _, at = F.max_pool3d(x.float(), *settings, return_indices=True)
    at = at.to(torch.int32)
    sim.check("aclnnMaxPool3dWithArgmax", x, *settings, Out(y), Out(at))
    sim.check("aclnnMaxPool3dWithArgmaxBackward", g, x, at, *settings, Out(gx))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("divisor", [0, 3])
@pytest.mark.parametrize("ceil", [False, True])
def test_average_pooling_and_its_gradient_equal_torch(
    sim: Any, dtype: Any, ceil: bool, divisor: int
) -> None:
    for count in (False, True):
        flags = (ceil, count, divisor or None)
        x, settings = randn(dtype, 2, 3, 8, 7), ((3, 2), (2, 2), (1, 1))
        y, g, gx = result_and_gradient(lambda a, s=settings, f=flags: F.avg_pool2d(a, *s, *f), x)
        sim.check("aclnnAvgPool2d", x, *settings, ceil, count, divisor, 0, Out(y))
        sim.check("aclnnAvgPool2dBackward", g, x, *settings, ceil, count, divisor, 0, Out(gx))
        x, settings = randn(dtype, 2, 4, 5, 6), ((2, 3, 2), (2, 2, 1), (1, 1, 0))
        y, g, gx = result_and_gradient(lambda a, s=settings, f=flags: F.avg_pool3d(a, *s, *f), x)
        sim.check("aclnnAvgPool3d", x, *settings, ceil, count, divisor, Out(y))
        sim.check("aclnnAvgPool3dBackward", g, x, *settings, ceil, count, divisor, Out(gx))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [(1, 1), (3, 2), (5, 9)])
def test_adaptive_pooling_and_its_gradient_equal_torch(sim: Any, dtype: Any, size: Any) -> None:
    x, deep = randn(dtype, 2, 3, 7, 6), randn(dtype, 2, 4, 7, 6)
    y, g, gx = result_and_gradient(lambda a: F.adaptive_avg_pool2d(a, size), x)
    sim.check("aclnnAdaptiveAvgPool2d", x, size, Out(y))
    sim.check("aclnnAdaptiveAvgPool2dBackward", g, x, Out(gx))
    y, g, gx = result_and_gradient(lambda a: F.adaptive_max_pool2d(a, size), x)
    at = F.adaptive_max_pool2d(x.float(), size, return_indices=True)[1]
    sim.check("aclnnAdaptiveMaxPool2d", x, size, Out(y), Out(at))
    sim.check("aclnnAdaptiveMaxPool2dBackward", g, x, at, Out(gx))
    cube = (2, *size)
    y, g, gx = result_and_gradient(lambda a: F.adaptive_avg_pool3d(a, cube), deep)
    sim.check("aclnnAdaptiveAvgPool3d", deep, cube, Out(y))
    sim.check("aclnnAdaptiveAvgPool3dBackward", g, deep, Out(gx))
    y, g, gx = result_and_gradient(lambda a: F.adaptive_max_pool3d(a, cube), deep)
    at = F.adaptive_max_pool3d(deep.float(), cube, return_indices=True)[1].to(torch.int32)
    sim.check("aclnnAdaptiveMaxPool3d", deep, cube, Out(y), Out(at))
    sim.check("aclnnAdaptiveMaxPool3dBackward", g, deep, at, Out(gx))


def test_the_maximum_of_a_window_with_nan_is_nan(sim: Any) -> None:
    x = torch.tensor([[[1.0, float("nan"), 3.0, 4.0]]])
    y, at = F.max_pool2d(x, (1, 2), return_indices=True)
    sim.check(
        "aclnnMaxPool2dWithIndices", x, (1, 2), (1, 2), (0, 0), (1, 1), False, Out(y), Out(at)
    )


def test_windows_that_do_not_fit_are_refused(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, y = torch.zeros(1, 4, 4), torch.zeros(1, 2, 2)
    for kernel, padding, words in (((2, 2), (2, 2), "half of the kernel"), ((5, 5), (0, 0), "fit")):
        with pytest.raises(AclError, match=words) as caught:
            sim.run("aclnnAvgPool2d", x, kernel, (2, 2), padding, False, True, 0, 0, Out(y))
        assert caught.value.code == 161002


def test_an_index_outside_of_its_plane_fails_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, at = torch.zeros(1, 2, 2), torch.tensor([[[4]]], dtype=torch.int32)
    with pytest.raises(AclError) as caught:
        sim.run(
            "aclnnMaxPool2dWithIndicesBackward",
            torch.ones(1, 1, 1),
            x,
            at,
            (2, 2),
            (2, 2),
            (0, 0),
            (1, 1),
            False,
            Out(x),
        )
    assert caught.value.code == 507015


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
