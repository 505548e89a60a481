"""Sampling of images at a grid's places by the simulator, and its gradients."""

from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

F = torch.nn.functional
INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


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
