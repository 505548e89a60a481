"""Sampling of images at a grid's places by the simulator, and its gradients."""

from typing import Any

import pytest
from kernel_harness import Out
from torch_samples import randn

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

F = torch.nn.functional
INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("dims", [2, 3])
def test_sampling_and_its_gradients_equal_torch(
    sim: Any, dims: int, mode: int, padding: int, align: bool
) -> None:
    if dims == 3 and mode == 2:
        pytest.skip("volumes have no bicubic sampling")
    dtype = torch.float32
    x, places = randn(dtype, 2, 3, *(4, 5, 6)[:dims]), (5, 4, 3)[:dims]
    grid = randn(dtype, 2, *places, dims, seed=1)
    wide = [t.double().requires_grad_() for t in (x, grid)]
    y = F.grid_sample(*wide, INTERPOLATIONS[mode], PADDINGS[padding], align)
    g = randn(dtype, *y.shape, seed=2)
    gx, gg = (t.to(dtype) for t in torch.autograd.grad(y, wide, g.double()))
    settings = (mode, padding, align)
    expected = Out(y.detach().to(dtype), tolerance=2e-5)
    sim.check(f"aclnnGridSampler{dims}D", x, grid, *settings, expected)
    outs = (Out(gx, tolerance=5e-5), Out(gg, tolerance=2e-4))
    name = f"aclnnGridSampler{dims}DBackward"
    sim.check(name, g, x, grid, *settings, (True, True), *outs)
    sim.check(name, g, x, grid, *settings, (False, True), None, outs[1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_small_floats_are_sampled_in_float(sim: Any, dtype: Any) -> None:
    x, grid = randn(dtype, 1, 2, 5, 6), randn(dtype, 1, 3, 4, 2, seed=1)
    y = F.grid_sample(x.double(), grid.double(), align_corners=False).to(dtype)
    sim.check("aclnnGridSampler2D", x, grid, 0, 0, False, Out(y, tolerance=2e-2))


@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_places_that_are_no_numbers_are_sampled_as_in_torch(
    sim: Any, mode: int, padding: int
) -> None:
    grid = torch.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [1e30, -1e30]]]])
    x = torch.ones(1, 1, 3, 3)
    y = F.grid_sample(x, grid, INTERPOLATIONS[mode], PADDINGS[padding], align_corners=False)
    sim.check("aclnnGridSampler2D", x, grid, mode, padding, False, Out(y))


def test_a_grid_of_another_batch_is_refused(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, grid = torch.zeros(1, 1, 3, 3), torch.zeros(2, 2, 2, 2)
    with pytest.raises(AclError, match="batch") as caught:
        sim.run("aclnnGridSampler2D", x, grid, 0, 0, False, Out(torch.zeros(2, 1, 2, 2)))
    assert caught.value.code == 161002
