"""Kernels of embedding: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted
from torch_samples import noise, randn

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("last", [False, True])
def test_bags_of_embeddings_equal_torch(sim: Any, mode: int, last: bool) -> None:
    weight, at = noise(7, 5), torch.tensor([1, 2, 4, 5, 4, 3, 2, 6])
    offsets = torch.tensor([0, 3, 3, 8][: 4 if last else 3])
    scale = noise(8, seed=1) if mode == 0 else None
    out, _, _, best = torch.ops.aten._embedding_bag(
        weight, at, offsets, False, mode, False, scale, last, 4
    )
    size = torch.tensor([2, 0, 4])  # without the two of padding; torch counts for means only
    bags = torch.bucketize(torch.arange(8), offsets[:3], right=True) - 1
    accepted(sim, "aclnnEmbeddingBag", weight, at, offsets, False, mode, False, scale, last, 4,
             Out(out), Out(bags), Out(size),
             Out(best if mode == 2 else size))  # fmt: skip


FLOATS = [torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS)
def test_embeddings_and_their_gradients_equal_torch(sim: Any, dtype: Any) -> None:
    weight, at = randn(dtype, 9, 6), torch.tensor([[1, 8, 1], [0, 3, 1]])
    sim.check("aclnnEmbedding", weight, at, Out(weight[at]))
    grad = randn(dtype, 2, 3, 6, seed=1)
    for padding, scale in ((-1, False), (1, False), (-1, True)):
        expected = torch.ops.aten.embedding_dense_backward(grad.double(), at, 9, padding, scale)
        sim.check(
            "aclnnEmbeddingDenseBackward",
            grad,
            at,
            9,
            padding % 2**64,
            scale,
            Out(expected.to(dtype)),
        )
