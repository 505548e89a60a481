"""Gradients where a function has a corner, a tie or a border are torch's, on cpu and npu.

Samples are drawn from a continuum and miss such places; here their values are halves.
"""

import math

import numpy as np
import pytest
from mindtorch_npu import laws

import mindtorch
from mindtorch.ops.spec import SPACES

torch = pytest.importorskip("torch", reason="torch 2.13 is the oracle")

STEP = 0.5
WORDS = ("loss", "max", "min", "relu", "hard", "shrink", "clamp", "threshold", "grid", "next")
DRAWS = ("rrelu", "fractional", "gumbel")
ON_NPU = {"multi_margin_loss", "_foreach_clamp_min", "_foreach_maximum", "nextafter"}


def function_of(t, op):
    spaces = (
        ["nn.functional"] if op.places & {"nn", "nn_"} else [s for s in SPACES if s in op.places]
    )
    place = t
    for part in (spaces or [""])[0].split("."):
        place = getattr(place, part) if part else place
    return getattr(place, op.base_name, None)


def halves(t, arg, device):
    """The sample's tensor with values at multiples of STEP."""
    if arg.dtype != "float32" or arg.values is not None:
        return arg.make(t, device)
    low, high = math.ceil(arg.low / STEP) * STEP, math.floor(arg.high / STEP) * STEP
    values = np.clip(np.round(arg.array() / STEP) * STEP, low, high)
    flat = t.tensor(values.reshape(-1).tolist(), dtype=t.float32)
    return flat.reshape(arg.shape).to(device).requires_grad_(arg.grad)


def gradients(t, op, sample, device):
    leaves = []

    def change(arg):
        leaves.append(halves(t, arg, device))
        return leaves[-1]

    args, kwargs = sample.map(change)
    result = function_of(t, op)(*args, **kwargs)
    outs = result if isinstance(result, tuple | list) else (result,)
    outs = [o for o in outs if isinstance(o, t.Tensor) and o.requires_grad and o.numel()]
    for out in outs:
        weights = t.arange(1.0, out.numel() + 1, dtype=out.dtype).reshape(out.shape)
        (out * weights.to(device)).sum().backward(retain_graph=True)
    return [None if x.grad is None else x.grad.cpu().reshape(-1).tolist() for x in leaves]


def rows_on(device):
    """The rows with corners, each with its first sample."""
    for op, number, sample in laws.cases():
        name = op.base_name
        is_one = name in ON_NPU if device == "npu" else any(word in name for word in WORDS)
        if is_one and number < 1 and not sample.error and not any(w in name for w in DRAWS):
            yield op, sample


def same(a, b):
    if a is None or b is None:
        return a is b
    return np.allclose(a, b, rtol=2e-3, atol=2e-3, equal_nan=True)


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_gradients_at_corners_ties_and_borders_are_torch_s(device):
    names = set()
    for op, sample in rows_on(device):
        if None in (function_of(torch, op), function_of(mindtorch, op)):
            continue
        try:
            theirs = gradients(torch, op, sample, "cpu")
        except (RuntimeError, TypeError, ValueError, AttributeError):
            continue  # a row of another signature than torch's function
        ours = gradients(mindtorch, op, sample, device)
        if not all(same(a, b) for a, b in zip(theirs, ours, strict=True)):
            names.add(op.name)
    assert not names


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_a_grid_on_the_border_has_no_gradient(device):
    def slopes(t, device, mode, padding):
        image = t.arange(9.0).reshape(1, 1, 3, 3).to(device)
        places = [[-1.0, 1.0], [1.0, 0.2], [-1 / 3, 2.0], [0.1, 0.3]]
        grid = t.tensor([[places]]).to(device).requires_grad_()
        F = t.nn.functional
        F.grid_sample(image, grid, mode, padding, align_corners=True).sum().backward()
        return grid.grad.cpu().reshape(-1).tolist()

    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            theirs = slopes(torch, "cpu", mode, padding)
            assert same(theirs, slopes(mindtorch, device, mode, padding)), (mode, padding)
