"""What each rank of a test does: `python ranks.py WHAT DEVICE`."""

import os
import sys

import mindtorch as torch
import mindtorch.distributed as dist
from mindtorch import nn

STEPS, BATCH = 5, 24


def place(device: str) -> str:
    if device == "npu":
        torch.npu.set_device(dist.get_rank())
        return f"npu:{dist.get_rank()}"
    return device


def train(device: str) -> None:
    """Losses of whole batches, by rank 0, one a line; a rank takes its share of each batch."""
    where, rank, size = place(device), dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # ranks start differently, and take rank 0's parameters
    model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32).eval(), nn.ReLU(), nn.Linear(32, 4))
    model = nn.parallel.DistributedDataParallel(model.to(where), bucket_cap_mb=1e-3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    draw = torch.Generator().manual_seed(7)
    share = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
    for _ in range(STEPS):
        x, y = (torch.randn(BATCH, n, generator=draw)[share].to(where) for n in (8, 4))
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        whole = loss.detach()
        dist.all_reduce(whole, op=dist.ReduceOp.AVG)
        if rank == 0:
            print(f"{whole.item():.9f}", flush=True)


def calls(device: str) -> None:
    """Every collective against what it must give, in several dtypes."""
    where, rank, size = place(device), dist.get_rank(), dist.get_world_size()
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.complex64):
        turn = 1 + 2j if dtype.is_complex else 1
        mine = ((torch.arange(6) + 10 * rank) * turn).to(dtype).to(where)
        all_of = [(torch.arange(6) + 10 * r) * turn for r in range(size)]

        def same(tensor, expected, dtype=dtype):
            assert tensor.cpu().tolist() == expected.to(dtype).tolist(), (tensor, expected)

        total = mine.clone()
        dist.all_reduce(total)
        same(total, sum(all_of))
        if not dtype.is_complex:
            most = mine.clone()
            dist.all_reduce(most, op=dist.ReduceOp.MAX)
            same(most, all_of[-1])
        to = mine.clone()
        dist.broadcast(to, src=size - 1)
        same(to, all_of[-1])
        parts = [torch.empty_like(mine) for _ in range(size)]
        dist.all_gather(parts, mine)
        for part, expected in zip(parts, all_of, strict=True):
            same(part, expected)
        part = torch.empty(6 // size, dtype=dtype, device=where)
        dist.reduce_scatter_tensor(part, mine)
        width = 6 // size
        same(part, sum(all_of)[rank * width : (rank + 1) * width])
        got = torch.empty_like(mine)
        dist.all_to_all_single(got, mine)
        same(got, torch.cat([a[rank * width : (rank + 1) * width] for a in all_of]))
        strided = torch.zeros(6, 2, dtype=dtype, device=where)[:, 0]
        strided.copy_(mine)
        dist.all_reduce(strided)
        same(strided, sum(all_of))
        if rank == 0:
            dist.send(mine, 1)
        elif rank == 1:
            dist.recv(got, 0)
            same(got, all_of[0])
        # Each rank sends before it receives: over HCCL none may wait for the other.
        ring = [dist.P2POp(dist.isend, mine, (rank + 1) % size),
                dist.P2POp(dist.irecv, got, (rank - 1) % size)]  # fmt: skip
        for work in dist.batch_isend_irecv(ring):
            work.wait()
        same(got, all_of[rank - 1])
    told = [None] * size
    dist.all_gather_object(told, {"rank": rank})
    assert [t["rank"] for t in told] == list(range(size))
    dist.barrier()
    print("ok", flush=True)


def mismatch(device: str) -> None:
    """Ranks that call different things are told so."""
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(2))
    else:
        dist.all_gather([torch.ones(2) for _ in range(dist.get_world_size())], torch.ones(2))


def leave(device: str) -> None:
    """The last rank goes without a word."""
    if dist.get_rank() == dist.get_world_size() - 1:
        os._exit(0)
    dist.all_reduce(torch.ones(2))


def silent(device: str) -> None:
    """The last rank is there, and says nothing: the others give up after the group's time limit."""
    group = dist.new_group(timeout=1.0)
    if dist.get_rank() < dist.get_world_size() - 1:
        try:
            dist.all_reduce(torch.ones(2), group=group)
        except dist.DistBackendError as error:
            print(error, flush=True)
        work = dist.irecv(torch.ones(2), dist.get_world_size() - 1)
        try:
            work.wait(timeout=0.2)
        except dist.DistBackendError as error:
            print(error, flush=True)
    dist.barrier()


def groups(device: str) -> None:
    """Pairs of four, each with a reduction and parts of different sizes of its own."""
    where, rank = place(device), dist.get_rank()
    own, _ = dist.new_subgroups(2)
    mine = torch.full((3,), float(rank + 1), device=where)
    dist.all_reduce(mine, group=own)
    # The first of a pair has an element for each of them, the second one for the first.
    first = dist.get_rank(own) == 0
    there, here = ([1, 1], [1, 1]) if first else ([1, 0], [1, 0])
    got = torch.zeros(sum(here), device=where)
    source = torch.arange(float(sum(there)), device=where) + 10 * rank
    dist.all_to_all_single(got, source, here, there, group=own)
    whole = torch.ones(1, device=where) * rank
    dist.all_reduce(whole, op=dist.ReduceOp.AVG)
    print(mine.tolist(), got.tolist(), whole.item(), flush=True)


def launched(device: str) -> None:
    """What a launcher set, and a sum over all."""
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total)
    print(dist.get_rank(), dist.get_node_local_rank(), total.item(), os.environ["LOCAL_RANK"],
          flush=True)  # fmt: skip


def unused(device: str) -> None:
    """A parameter that takes no part keeps ranks in step when that is allowed."""
    model = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    model.forward = lambda x: model["a"](x)
    for allowed in (True, False):
        wrapped = nn.parallel.DistributedDataParallel(model, find_unused_parameters=allowed)
        wrapped(torch.ones(1, 2)).sum().backward()
        if allowed:
            assert model["a"].weight.grad is not None
            assert model["b"].weight.grad is None
            wrapped(torch.ones(1, 2)).sum().backward()
    try:
        wrapped(torch.ones(1, 2))
    except RuntimeError as error:
        print(error, flush=True)


if __name__ == "__main__":
    what, device = sys.argv[1:]
    dist.init_process_group(timeout=60.0)
    globals()[what](device)
    dist.destroy_process_group()
