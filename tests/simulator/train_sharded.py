"""Trains a small network on one device, or on several that share its parameters between them.

`python train_sharded.py cpu 1` and `python train_sharded.py npu 2` print equal losses, once for
each way of sharing: copies fed by threads of one process (DataParallel), whole data parallel
shards (FSDP), tensors, sequences, and shards of sequences.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

STEPS, BATCH, LENGTH, WORDS = 4, 8, 8, 12
WAYS = ("fsdp", "tensor", "sequence", "fsdp+sequence")
NORM = 0.5  # below that of every step; torch clips no gradients of which only some are shared
UNCLIPPED = "tensor"


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(WORDS, 16), Block(), Block(), nn.Linear(16, WORDS))


def share_blocks(model: nn.Sequential, way: str, mesh: DeviceMesh) -> None:
    """Split the model's tensors over `mesh`; what is between blocks is split by sequences."""
    embedding, first, second, head = model
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


def share(model: nn.Sequential, way: str, device: str, ranks: int) -> int:
    """Share the model as `way` says; into how many parts its batch falls."""
    ways = way.split("+")
    parts = {1: {"fsdp": ranks}.get(way, 1), 2: ranks // 2}[len(ways)]
    mesh = init_device_mesh(device, (parts, ranks // parts), mesh_dim_names=("data", "model"))
    if ways[-1] != "fsdp":
        share_blocks(model, ways[-1], mesh["model"])
    if ways[0] == "fsdp":
        _, first, second, _ = model
        for block in (first, second, model):
            fully_shard(block, mesh=mesh["data"])
    return parts


def train(
    rank: int, model: nn.Module, device: str, ranks: int, parts: int, clip: bool = True
) -> list[float]:
    # A step over many tensors at once refuses those that are shared beside those that are not.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    part = rank * parts // ranks
    mine = slice(part * BATCH // parts, (part + 1) * BATCH // parts)
    torch.manual_seed(1)
    seen = []
    for _ in range(STEPS):
        words = torch.randint(0, WORDS, (BATCH, LENGTH))[mine].to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.roll(-1, 1).flatten())
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), NORM)
        optimizer.step()
        whole = loss.detach().clone()
        if parts > 1:
            dist.all_reduce(whole)
            whole /= ranks
        seen.append(whole.item())
    return seen


def copies(device: str, ranks: int) -> nn.Module:
    """A network on each of the devices, run by threads of this process."""
    if device == "npu":
        import torch_npu  # noqa: F401  registers the device
    model = network().to(device)
    return nn.DataParallel(model, device_ids=list(range(ranks))) if ranks > 1 else model


def run(rank: int, device: str, ranks: int) -> None:
    if device == "npu":
        import torch_npu

        torch_npu.npu.set_device(rank)
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", RANK=str(rank), WORLD_SIZE=str(ranks))
        dist.init_process_group("hccl", rank=rank, world_size=ranks)
    for way in WAYS:
        model = network().to(device)
        parts = share(model, way, device, ranks) if ranks > 1 else 1
        losses = train(rank, model, device, ranks, parts, clip=way != UNCLIPPED)
        if rank == 0:
            print(*losses, flush=True)
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    where, count = sys.argv[1], int(sys.argv[2])
    print(*train(0, copies(where, count), where, 1, 1), flush=True)
    if count == 1:
        run(0, where, 1)
    else:
        import torch.multiprocessing

        torch.multiprocessing.spawn(run, args=(where, count), nprocs=count)
