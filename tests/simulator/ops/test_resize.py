"""Kernels of resize: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import noise, randn, result_and_gradient

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


FLOATS = [torch.float32, torch.float16, torch.bfloat16]
# Weights are computed in float32 from a rounded ratio, the oracle's in double.
LOOSE = {torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}
SIZES = {1: [(7,), (3,), (10,)], 2: [(7, 9), (3, 8), (5, 2)], 3: [(3, 7, 4), (1, 2, 6)]}
INPUT = {1: (2, 3, 5), 2: (2, 3, 4, 5), 3: (1, 2, 3, 4, 5)}
NEAREST = {1: "Nearest1dV2", 2: "Nearest2dV2", 3: "Nearest3d"}
SMOOTH = [
    ("linear", 1, "Linear1d", "Linear1dBackward", False),
    ("bilinear", 2, "Bilinear2d", "Bilinear2dBackwardV2", False),
    ("trilinear", 3, "Trilinear3d", "Trilinear3dBackward", False),
    ("bicubic", 2, "Bicubic2d", "Bicubic2dBackward", False),
    ("bilinear", 2, "Bilinear2dAA", "Bilinear2dAABackward", True),
    ("bicubic", 2, "Bicubic2dAA", "Bicubic2dAAGrad", True),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_upsampling_and_its_gradient_equal_torch(
    sim: Any, dtype: Any, dims: int, mode: str
) -> None:
    x, zeros = randn(dtype, *INPUT[dims]), (0.0,) * dims
    name = NEAREST[dims] if mode == "nearest" else f"NearestExact{dims}d"
    back = f"{'Nearest' if mode == 'nearest' else 'NearestExact'}{dims}dBackward"
    for size in SIZES[dims]:
        y, g, gx = result_and_gradient(lambda a, s=size: F.interpolate(a, s, mode=mode), x)
        sim.check(f"aclnnUpsample{name}", x, size, *zeros, Out(y))
        sim.check(f"aclnnUpsample{back}", g, size, tuple(x.shape), *zeros, Out(gx))
        if mode == "nearest" and dims < 3:
            sim.check(f"aclnnUpsampleNearest{dims}d", x, size, Out(y))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("case", SMOOTH, ids=lambda c: c[2])
def test_smooth_upsampling_and_its_gradient_equal_torch(
    sim: Any, dtype: Any, align: bool, case: Any
) -> None:
    mode, dims, name, back, smooth = case
    x, zeros, tol = randn(dtype, *INPUT[dims]), (0.0,) * dims, LOOSE[dtype]
    for size in SIZES[dims]:
        y, g, gx = result_and_gradient(
            lambda a, s=size: F.interpolate(a, s, mode=mode, align_corners=align, antialias=smooth),
            x,
        )
        sim.check(f"aclnnUpsample{name}", x, size, align, *zeros, Out(y, tolerance=tol))
        sim.check(
            f"aclnnUpsample{back}",
            g,
            size,
            tuple(x.shape),
            align,
            *zeros,
            Out(gx, tolerance=4 * tol),
        )


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
