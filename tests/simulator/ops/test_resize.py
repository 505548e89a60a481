"""Kernels of resize: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import noise, randn

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

F = torch.nn.functional


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize("scales", [(2.0, 1.5), (0.5, 3.0)])
def test_planes_are_resized_by_scales(sim: Any, mode: str, scales: tuple[float, float]) -> None:
    x = noise(2, 3, 4, 6)
    size = [int(4 * scales[0]), int(6 * scales[1])]
    corners = None if mode == "nearest" else False
    y = F.interpolate(x, size, mode=mode, align_corners=corners)
    accepted(sim, "aclnnResize", x, (1.0, 1.0, *scales), mode, Out(y, tolerance=1e-5))
    refused(sim, "mode should be", "aclnnResize", x, (1.0, 1.0, *scales), "cubic", Out(y))


def test_a_given_scale_decides_over_the_sizes(sim: Any) -> None:
    x = randn(torch.float32, 1, 2, 5, 5)
    y = F.interpolate(x, scale_factor=(1.5, 1.3), mode="bilinear", recompute_scale_factor=False)
    sim.check(
        "aclnnUpsampleBilinear2d", x, tuple(y.shape[2:]), False, 1.5, 1.3, Out(y, tolerance=1e-5)
    )


def test_an_output_that_contradicts_its_size_is_refused(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x = torch.zeros(1, 1, 2, 2)
    with pytest.raises(AclError, match="outputSize") as caught:
        sim.run("aclnnUpsampleBilinear2d", x, (4, 5), False, 0.0, 0.0, Out(torch.zeros(1, 1, 4, 4)))
    assert caught.value.code == 161002
