"""Kernels of operators that only the Ascend950 profile has, run in a child with that profile."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from kernel_harness import Out
from numpy_harness import Ops
from numpy_harness import Out as Out8

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

PROFILE = "Ascend950"
INSIDE = os.environ.get("ACLSIM_SOC", "").startswith(PROFILE)
inside = pytest.mark.skipif(not INSIDE, reason="runs in the child that has the 950 profile")


@pytest.mark.skipif(INSIDE, reason="this is the child")
def test_operators_of_the_950_profile_pass_in_a_child() -> None:
    environment = {**os.environ, "ACLSIM_SOC": PROFILE}
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", __file__]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stdout[-3000:]
    assert " passed" in child.stdout


@inside
def test_square_and_bucketize_equal_torch(sim: Any) -> None:
    x, edges = torch.randn(3, 5), torch.tensor([-1.0, 0.0, 1.0])
    sim.check("aclnnSquare", x, Out(x * x))
    for right in (False, True):
        expected = torch.bucketize(x, edges, right=right, out_int32=True)
        sim.check("aclnnBucketize", x, edges, True, right, Out(expected))


@inside
def test_dropout_v3_keeps_and_scales_what_its_mask_says(sim: Any) -> None:
    x, mask = torch.ones(1000), torch.zeros(128, dtype=torch.uint8)
    out, bits = (r[0] for r in sim.run("aclnnDropoutV3", x, None, 0.25, 1, 0, Out(x), Out(mask)))
    kept = torch.tensor([bool(bits[i // 8] >> (i % 8) & 1) for i in range(1000)])
    assert abs(float(kept.float().mean()) - 0.75) < 0.05
    assert torch.equal(out, kept / 0.75)
    sim.check("aclnnDropoutV3Grad", x, bits, 2.0, Out(kept * 2.0))


@inside
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_copies_convert_eight_bit_floats(nops: Ops, name: str) -> None:
    x, small = np.array([1.0, -2.0, 0.375, 24.0], "float32"), np.dtype(name)
    (made,) = nops("aclnnInplaceCopy", Out8(x.shape, small, np.zeros(4, small)), x)
    np.testing.assert_array_equal(made, x.astype(small))
    for dtype in (small, "float16", "float32"):
        like = np.zeros(4, dtype)
        (back,) = nops("aclnnInplaceCopy", Out8(x.shape, dtype, like), x.astype(small))
        np.testing.assert_array_equal(back.astype("float32"), x)


@inside
def test_gradient_of_repeats_sums_the_copies(sim: Any) -> None:
    repeats = torch.tensor([2, 0, 3])
    x = torch.randn(3, 5).requires_grad_()
    many = x.repeat_interleave(repeats, 0)
    g = torch.randn(many.shape)
    (expected,) = torch.autograd.grad(many, x, g)
    sim.check("aclnnRepeatInterleaveGrad", g, repeats, 0, Out(expected))


@inside
def test_pooled_regions_remember_where_their_maxima_are(sim: Any) -> None:
    x = torch.randn(1, 2, 6, 6)
    rois = torch.tensor([[0.0, 1.0, 1.0, 4.0, 4.0]])
    y, at = torch.nn.functional.max_pool2d(x[:, :, 1:5, 1:5], 2, return_indices=True)
    place = ((at // 4 + 1) * 6 + at % 4 + 1).int()
    sim.check("aclnnRoiPoolingWithArgMax", x, rois, 2, 2, 1.0, 1.0, Out(y), Out(place))
    back = torch.zeros(1, 2, 36).scatter(2, place.long().flatten(2), y.flatten(2)).view_as(x)
    sim.check("aclnnRoiPoolingGradWithArgMax", y, Out(back), rois, place, 2, 2, 1.0)


@inside
def test_adam_steps_with_powers_of_its_coefficients(sim: Any) -> None:
    var, m, v, g = torch.randn(4, 3, 5).unbind()
    v = v.abs()
    names, values = ("p1", "p2", "lr", "b1", "b2", "eps"), (0.9, 0.99, 0.1, 0.9, 0.99, 1e-3)
    one = {name: torch.tensor([value]) for name, value in zip(names, values, strict=True)}
    m2, v2 = m + (g - m) * 0.1, v + (g * g - v) * 0.01
    moved = var - 0.1 * 0.01**0.5 / 0.1 * m2 / (v2.sqrt() + 1e-3)
    sim.check("aclnnApplyAdam", Out(moved, var, 1e-5), m, v, *one.values(), g, False, False)
    expected = var.clone().requires_grad_()
    optimizer = torch.optim.AdamW([expected], 0.1, (0.9, 0.99), 1e-3, 0.05, foreach=False)
    expected.grad = g.clone()
    optimizer.step()
    state, zero = optimizer.state[expected], torch.zeros(3, 5)
    sim.check("aclnnApplyAdamW", Out(expected.detach(), var, 1e-5),
              Out(state["exp_avg"], zero, 1e-5), Out(state["exp_avg_sq"], zero, 1e-5),
              torch.ones(1), torch.ones(1), one["lr"], torch.tensor([0.05]), one["b1"], one["b2"],
              one["eps"], g, None, False, False)  # fmt: skip


@inside
def test_lists_change_in_place(sim: Any) -> None:
    x, y = torch.rand(5) + 0.1, torch.rand(5) + 0.1
    two = torch.tensor([2.0])
    for op, args, expected in (
        ("ACos", (), (x * 0.5).acos()), ("Log", (), (x * 0.5).log()),
        ("AddList", ((y,), two), x * 0.5 + 2 * y), ("SubList", ((y,), two), x * 0.5 - 2 * y),
        ("MulList", ((y,),), x * 0.5 * y), ("DivList", ((y,),), x * 0.5 / y),
        ("MulScalar", (two,), x), ("SubScalar", (two,), x * 0.5 - 2),
    ):  # fmt: skip
        sim.check(f"aclnnForeach{op}Inplace", (Out(expected, x * 0.5),), *args)


@inside
@pytest.mark.parametrize(("op", "mode"), [("Max", "amax"), ("Min", "amin"), ("Mul", "prod")])
def test_rows_are_reduced_by_index(sim: Any, op: str, mode: str) -> None:
    x, updates, at = torch.randn(4, 3), torch.randn(3, 3), torch.tensor([0, 3, 3])
    expected = x.scatter_reduce(0, at[:, None].expand(3, 3), updates, mode)
    sim.check(f"aclnnScatter{op}", Out(expected, given=x), at, updates, False)
    divided = x.clone()
    for row, given in zip(at, updates, strict=True):
        divided[row] /= given
    sim.check("aclnnScatterDiv", Out(divided, given=x), at, updates, False)


@inside
def test_strided_slices_follow_their_masks(sim: Any) -> None:
    x = torch.arange(120).view(2, 3, 4, 5)

    def masks(begin: int = 0, end: int = 0, dots: int = 0, new: int = 0, drop: int = 0) -> Any:
        return begin, end, dots, new, drop

    for begin, end, strides, mask, expected in (
        ((0, 1, 0, 4), (2, 3, 4, 0), (1, 1, 2, 1), masks(drop=8), x[0:2, 1:3, 0:4:2, 4]),
        ((0, 3), (0, 0), (1, -1), masks(end=2, dots=1), x[..., [3, 2, 1, 0]]),
        ((1, 0, 1), (0, 0, 3), (1, 1, 1), masks(new=2, drop=1), x[1][None, 1:3]),
        ((-1, 2), (0, 9), (-1, 1), masks(end=1), x.flip(0)[:, 2:]),
        ((0, 2), (2, 1), (1, 1), masks(), x[0:2, 2:1]),
    ):
        sim.check("aclnnStridedSlice", x, begin, end, strides, *mask, Out(expected.contiguous()))


@inside
def test_transpositions_and_reshapes_come_in_either_order(sim: Any) -> None:
    x = torch.arange(24).view(2, 3, 4)
    sim.check("aclnnConfusionTranspose", x, (2, 0, 1), (4, 6), True,
              Out(x.permute(2, 0, 1).reshape(4, 6)))  # fmt: skip
    sim.check("aclnnConfusionTranspose", x, (1, 0), (6, 4), False, Out(x.reshape(6, 4).t()))


@inside
@pytest.mark.parametrize("masked", [False, True])
def test_channels_look_at_their_own_past(sim: Any, masked: bool) -> None:
    half = torch.randn(6, 2, 4).half(), torch.randn(3, 4).half()
    x, w = (t.float().requires_grad_() for t in half)
    mask = torch.rand(2, 6) > 0.4 if masked else None
    padded = torch.nn.functional.pad(x.permute(1, 2, 0), (2, 0))
    y = torch.nn.functional.conv1d(padded, w.t()[:, None], groups=4).permute(2, 0, 1)
    y = y if mask is None else y * mask.t()[..., None]
    sim.check("aclnnMaskedCausalConv1d", *half, mask, Out(y.detach().half().contiguous()))
    g = torch.randn(6, 2, 4).half()
    grads = torch.autograd.grad((y * g.float()).sum(), (x, w))
    sim.check("aclnnMaskedCausalConv1dBackward", g, *half, mask, *(Out(t.half()) for t in grads))


@inside
def test_a_split_vocabulary_gives_sums_and_predicted_logits(sim: Any) -> None:
    logits, target = torch.randn(3, 5), torch.tensor([7, 2, 9], dtype=torch.int32)
    top = logits.amax(1)
    shifted = logits - top[:, None]
    predicted = torch.stack([shifted[0, 2], torch.tensor(0.0), shifted[2, 4]])
    sim.check("aclnnCrossEntropySumExpAndIndexLogit", logits, target, top, 5, 10, Out(predicted),
              Out(shifted.exp().sum(1), tolerance=1e-5), Out(shifted.exp(), tolerance=1e-5),
              Out(torch.tensor([2, 0, 4], dtype=torch.int32)),
              Out(torch.tensor([False, True, False])))  # fmt: skip


@inside
def test_bits_and_scalars_combine_in_place(sim: Any) -> None:
    a, b = torch.tensor([12, 10]), torch.tensor([10, 7])
    sim.check("aclnnBitwiseAndTensorOut", a, b, Out(a & b))
    sim.check("aclnnInplaceBitwiseAndTensorOut", Out(a & b, given=a), b)
    x = torch.tensor([1.0, 2.0])
    sim.check("aclnnInplaceAddV3", 3.0, Out(3 + 2 * x, given=x), 2.0)
