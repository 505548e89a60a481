"""Trains a small network on one device, or on several that average their gradients.

`python train_ddp.py cpu 1` and `python train_ddp.py npu 2` print equal losses.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH = 6, 24


def train(rank: int, device: str, ranks: int) -> None:
    """Each rank takes its share of every batch; rank 0 prints the losses of whole batches."""
    if device == "npu":
        import torch_npu

        torch_npu.npu.set_device(rank)
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", RANK=str(rank), WORLD_SIZE=str(ranks))
        dist.init_process_group("hccl", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    model: nn.Module = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)).to(device)
    if ranks > 1:
        model = DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    share = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
    for _ in range(STEPS):
        inputs, targets = torch.randn(BATCH, 8), torch.randn(BATCH, 4)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs[share].to(device)), targets[share].to(device))
        loss.backward()
        optimizer.step()
        whole = loss.detach()
        if ranks > 1:
            dist.all_reduce(whole)
        if rank == 0:
            print(f"{whole.item() / ranks:.9f}", flush=True)
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    where, count = sys.argv[1], int(sys.argv[2])
    if count == 1:
        train(0, where, 1)
    else:
        import torch.multiprocessing

        torch.multiprocessing.spawn(train, args=(where, count), nprocs=count)
