"""Kernels of shape: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted
from torch_samples import noise, randn, values

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def test_gradient_of_windows_sums_their_sources(sim: Any) -> None:
    x = torch.randn(4, 9, 3).requires_grad_()
    windows = x.unfold(1, 3, 2)
    g = torch.randn(windows.shape)
    (expected,) = torch.autograd.grad(windows, x, g)
    sim.check("aclnnUnfoldGrad", g, (4, 9, 3), 1, 3, 2, Out(expected))


def test_channels_shuffle_between_groups(sim: Any) -> None:
    x = torch.randn(2, 6, 3, 4)
    sim.check("aclnnChannelShuffle", x, 3, Out(torch.channel_shuffle(x, 3)))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(("op", "mode"), [("Reflection", "reflect"), ("Replication", "replicate")])
def test_gradients_of_complex_paddings_equal_torch(
    sim: Any, op: str, mode: str, dims: int, dtype: Any
) -> None:
    x = torch.randn(2, 3, *(4, 5, 6)[:dims], dtype=dtype, requires_grad=True)
    sides = (1, 2, 2, 1, 0, 1)[: 2 * dims]
    padded = torch.nn.functional.pad(x, sides, mode)
    g = torch.randn_like(padded)
    (grad,) = torch.autograd.grad(padded, x, g)
    sim.check(f"aclnn{op}Pad{dims}dBackward", g, x.detach(), sides, Out(grad))


def test_channels_of_bfloat16_are_shuffled(sim: Any) -> None:
    x = torch.arange(24.0).view(1, 6, 4).bfloat16()
    accepted(sim, "aclnnChannelShuffle", x, 2, Out(torch.channel_shuffle(x[..., None], 2)[..., 0]))


def test_chunks_of_many_tensors_stand_side_by_side(sim: Any) -> None:
    tensors = (noise(2, 5, 3), noise(2, 4, 2, seed=1))
    expected = torch.ops.aten._chunk_cat(list(tensors), 1, 3)
    accepted(sim, "aclnnChunkCat", tensors, 1, 3, Out(expected))


FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
DTYPES = [*FLOATS, torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", DTYPES)
def test_joins_and_splits_equal_torch(sim: Any, dtype: Any) -> None:
    a, b = values(dtype, 3, 4, 5), values(dtype, 3, 2, 5, seed=1)
    sim.check("aclnnCat", [a, b, a], 1, Out(torch.cat([a, b, a], 1)))
    sim.check("aclnnStack", [a, a + a], -1, Out(torch.stack([a, a + a], -1)))
    sim.check("aclnnSplitWithSize", a, (1, 3), 1, [Out(p) for p in a.split([1, 3], 1)])
    sim.check("aclnnSplitTensor", a, 2, 2, [Out(p) for p in a.split(2, 2)])
    sim.check("aclnnRepeat", a, (2, 1, 3, 2), Out(a.repeat(2, 1, 3, 2)))
    sim.check("aclnnPermute", a, (2, 0, 1), Out(a.permute(2, 0, 1).contiguous()))
    sim.check("aclnnRoll", a, (2, -1), (1, 2), Out(a.roll((2, -1), (1, 2))))
    sim.check("aclnnRoll", a, (7,), (), Out(a.roll(7)))
    sim.check("aclnnSlice", a, 1, -3, 100, 2, Out(a[:, -3:100:2].contiguous()))
    sim.check("aclnnFlatten", a, 2, Out(a.reshape(12, 5)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("diagonal", [-6, -1, 0, 2, 9])
def test_triangles_and_diagonals_equal_torch(sim: Any, dtype: Any, diagonal: int) -> None:
    a = values(dtype, 2, 4, 5)
    sim.check("aclnnTriu", a, diagonal, Out(a.triu(diagonal)))
    sim.check("aclnnTril", a, diagonal, Out(a.tril(diagonal)))
    sim.check("aclnnInplaceTril", Out(a.tril(diagonal), a), diagonal)
    sim.check("aclnnDiag", a[0, 0], diagonal, Out(a[0, 0].diag(diagonal)))
    if -4 <= diagonal <= 5:
        sim.check("aclnnDiag", a[0], diagonal, Out(a[0].diag(diagonal)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_strided_assignment_equals_torch(sim: Any, dtype: Any) -> None:
    x = values(dtype, 6, 8)
    y = values(dtype, 2, 3, seed=1)
    expected = x.clone()
    expected[1:5:2, 2:8:2] = y
    sim.check("aclnnStridedSliceAssignV2", Out(expected, x), y, (1, 2), (5, 8), (2, 2), (0, 1))


F = torch.nn.functional


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32])
def test_padding_equals_torch(sim: Any, dtype: Any) -> None:
    x = randn(torch.float32, 2, 3, 4, 5).mul(5).to(dtype)
    for pad in ((1, 2), (1, 2, -1, 3), (0, 0, 0, 0, 2, 1)):
        sim.check("aclnnConstantPadNd", x, pad, 7, Out(F.pad(x, pad, value=7)))
    for name, mode, most in (("Reflection", "reflect", 3), ("Replication", "replicate", 3)):
        for dims in range(1, most + 1):
            pad = (1, 2, 2, 1, 1, 0)[: 2 * dims]
            source = x[0] if dims == 1 else x[None] if dims == 3 else x
            if dims == 3:
                source = source.transpose(1, 2).contiguous()
            wide = source.double().requires_grad_()
            padded = F.pad(wide, pad, mode=mode)
            sim.check(f"aclnn{name}Pad{dims}d", source, pad, Out(padded.detach().to(dtype)))
            if dtype.is_floating_point:
                g = randn(dtype, *padded.shape, seed=1)
                (grad,) = torch.autograd.grad(padded, wide, g.double())
                sim.check(f"aclnn{name}Pad{dims}dBackward", g, source, pad, Out(grad.to(dtype)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_repeat_interleave_equals_torch(sim: Any, dtype: Any) -> None:
    x, repeats = randn(torch.float32, 3, 4).mul(3).to(dtype), torch.tensor([2, 0, 3, 1])
    sim.check("aclnnRepeatInterleaveIntWithDim", x, 3, 1, 12, Out(x.repeat_interleave(3, 1)))
    sim.check(
        "aclnnRepeatInterleaveWithDim", x, repeats, 1, 6, Out(x.repeat_interleave(repeats, 1))
    )
    sim.check("aclnnRepeatInterleaveInt", x, 2, 24, Out(x.repeat_interleave(2)))
