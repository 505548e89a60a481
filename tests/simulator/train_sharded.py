"""Trains a small network on one device, or on several that share its parameters between them.

`python train_sharded.py cpu 1` and `python train_sharded.py npu 2` print equal losses, once for
each way of sharing: whole data parallel shards (FSDP), tensors, sequences.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

STEPS, BATCH, LENGTH, WORDS = 4, 8, 8, 12
WAYS = ("fsdp", "tensor", "sequence")


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(WORDS, 16), Block(), Block(), nn.Linear(16, WORDS))


def share(model: nn.Sequential, way: str, device: str, ranks: int) -> None:
    mesh = init_device_mesh(device, (ranks,))
    embedding, first, second, head = model
    if way == "fsdp":
        for block in (first, second, model):
            fully_shard(block, mesh=mesh)
        return
    rows: dict[str, object] = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    inside = Replicate()
    if way == "sequence":
        inside = Shard(1)
        rows = {
            "norm": SequenceParallel(),
            "up": ColwiseParallel(input_layouts=inside),
            "down": RowwiseParallel(output_layouts=inside),
        }
    for block in (first, second):
        parallelize_module(block, mesh, rows)
    parallelize_module(
        embedding, mesh, RowwiseParallel(input_layouts=Replicate(), output_layouts=inside)
    )
    parallelize_module(
        head, mesh, ColwiseParallel(input_layouts=inside, output_layouts=Replicate())
    )


def train(rank: int, way: str, device: str, ranks: int) -> list[float]:
    model = network().to(device)
    if ranks > 1:
        share(model, way, device, ranks)
    # A step over many tensors at once refuses those that are shared beside those that are not.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    parts = ranks if way == "fsdp" else 1
    mine = slice(rank % parts * BATCH // parts, (rank % parts + 1) * BATCH // parts)
    torch.manual_seed(1)
    seen = []
    for _ in range(STEPS):
        words = torch.randint(0, WORDS, (BATCH, LENGTH))[mine].to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.roll(-1, 1).flatten())
        loss.backward()
        optimizer.step()
        whole = loss.detach().clone()
        if parts > 1:
            dist.all_reduce(whole)
        seen.append(whole.item() / parts)
    return seen


def run(rank: int, device: str, ranks: int) -> None:
    if device == "npu":
        import torch_npu

        torch_npu.npu.set_device(rank)
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", RANK=str(rank), WORLD_SIZE=str(ranks))
        dist.init_process_group("hccl", rank=rank, world_size=ranks)
    for way in WAYS:
        losses = train(rank, way, device, ranks)
        if rank == 0:
            print(*losses, flush=True)
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    where, count = sys.argv[1], int(sys.argv[2])
    if count == 1:
        run(0, where, 1)
    else:
        import torch.multiprocessing

        torch.multiprocessing.spawn(run, args=(where, count), nprocs=count)
