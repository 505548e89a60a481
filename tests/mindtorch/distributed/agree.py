"""What a rank of a group of three prints, in mindtorch or (`LIBRARY=torch`) in torch with gloo."""

import importlib
import json
import math
import os
import warnings

if os.environ.get("LIBRARY") == "torch":
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed import _functional_collectives as collected
    from torch.distributed.algorithms.join import Join
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.nn import functional as flows
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        SequenceParallel,
        loss_parallel,
        parallelize_module,
    )  # fmt: skip
else:
    import mindtorch as torch
    import mindtorch.distributed as dist
    from mindtorch import nn
    from mindtorch.distributed import _functional_collectives as collected
    from mindtorch.distributed.algorithms.join import Join
    from mindtorch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from mindtorch.distributed.nn import functional as flows
    from mindtorch.distributed.optim import ZeroRedundancyOptimizer
    from mindtorch.distributed.tensor import Replicate, Shard, distribute_tensor
    from mindtorch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        SequenceParallel,
        loss_parallel,
        parallelize_module,
    )  # fmt: skip


def place(name):
    return importlib.import_module(f"{torch.__name__}.{name}")


DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64",
          "complex64")  # fmt: skip
OPS = ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
told = {}


def plain(value):
    if isinstance(value, torch.Tensor):
        if value.is_complex():
            return [str(complex(x)) for x in value.reshape(-1).tolist()]
        return value.tolist()
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def tell(name, call):
    """Keep what a call gives, or that it is refused."""
    try:
        told[name] = plain(call())
    except Exception:
        told[name] = "refused"


def changed(tensor, work=None):
    if work is not None:
        work.wait()
    return tensor


def collectives(rank, size, group):
    for name in DTYPES:
        dtype = getattr(torch, name)

        def mine(dtype=dtype):
            return (torch.arange(6) % 5 + rank + 1).to(dtype)

        for op in OPS:
            t = mine()
            tell(
                f"all_reduce {op} {name}",
                lambda t=t, op=op: changed(t, dist.all_reduce(t, getattr(dist.ReduceOp, op))),
            )
        t = mine()
        tell(f"reduce {name}", lambda t=t: (dist.reduce(t, 1), t if rank == 1 else 0)[1])
        t = mine()
        tell(f"broadcast {name}", lambda t=t: changed(t, dist.broadcast(t, 2)))
        parts = [torch.zeros(6, dtype=dtype) for _ in range(size)]
        tell(f"all_gather {name}", lambda p=parts, t=t: (dist.all_gather(p, mine()), p)[1])
        out = torch.zeros(6, dtype=dtype)
        split = ([1, 2, 3], [[1, 1, 1], [2, 2, 2], [3, 3, 3]][rank])
        out = torch.zeros(sum(split[1]), dtype=dtype)
        tell(
            f"all_to_all_single {name}",
            lambda o=out, s=split: (dist.all_to_all_single(o, mine(), s[1], s[0]), o)[1],
        )
        out = torch.zeros(2, dtype=dtype)
        tell(
            f"reduce_scatter {name}",
            lambda o=out: (dist.reduce_scatter(o, list(mine().split(2))), o)[1],
        )
        many = [torch.zeros(6, dtype=dtype) for _ in range(size)] if rank == 0 else None
        tell(f"gather {name}", lambda m=many: (dist.gather(mine(), m, 0), m)[1])
        out = torch.zeros(2, dtype=dtype)
        whole = list(mine().split(2)) if rank == 2 else None
        tell(f"scatter {name}", lambda o=out, w=whole: (dist.scatter(o, w, 2), o)[1])


def asynchronous(rank, size, group):
    works, tensors = [], [torch.full((3,), float(i + rank)) for i in range(8)]
    for t in tensors:
        works.append(dist.all_reduce(t, async_op=True))
    last = torch.ones(1)
    dist.all_reduce(last)  # waits its turn behind those
    tell("async", lambda: ([w.wait() for w in works], tensors, last,
                           all(w.is_completed() for w in works)))  # fmt: skip


def points(rank, size, group):
    here = torch.full((2,), float(rank))
    got = [torch.zeros(2) for _ in range(4)]
    if rank == 0:
        waiting = [dist.irecv(got[0], 1, tag=5), dist.irecv(got[1], 1, tag=6)]
        total = torch.ones(1)
        dist.all_reduce(total)  # passes what is awaited
        tell("irecv", lambda: ([w.wait() for w in waiting], got[:2], total))
        tell("recv", lambda: (dist.recv(got[2]), got[2]))
    else:
        dist.all_reduce(torch.ones(1))
        if rank == 1:
            dist.isend(here * 6, 0, tag=6).wait()
            dist.isend(here * 5, 0, tag=5).wait()
        else:
            dist.send(here, 0)
    dist.barrier()
    to, back = (rank + 1) % size, (rank - 1) % size
    tell(
        "batch",
        lambda: (
            [
                w.wait()
                for w in dist.batch_isend_irecv(
                    [dist.P2POp(dist.isend, here, to), dist.P2POp(dist.irecv, got[3], back)]
                )
            ],
            got[3],
        ),
    )
    tell("to itself", lambda: dist.send(here, rank))


def objects(rank, size, group):
    own = {"rank": rank, "t": list(range(rank))}
    box = [None] * size
    tell("all_gather_object", lambda: (dist.all_gather_object(box, own), box)[1])
    box = [None] * size if rank == 1 else None
    tell("gather_object", lambda: (dist.gather_object(own, box, 1), box)[1])
    pair = [own, "x"] if rank == 2 else [None, None]
    tell("broadcast_object_list", lambda: (dist.broadcast_object_list(pair, 2), pair)[1])
    one = [None]
    many = [["a"], ["b"], ["c"]] if rank == 0 else None
    tell("scatter_object_list", lambda: (dist.scatter_object_list(one, many, 0), one)[1])


def groups(rank, size, group):
    pair = dist.new_group([0, 2])
    trio = dist.new_group()
    member = rank in (0, 2)
    tell(
        "ranks",
        lambda: (
            dist.get_rank(pair),
            dist.get_world_size(pair),
            dist.get_rank(trio),
            dist.get_rank(dist.group.WORLD),
        ),
    )
    t = torch.full((2,), float(rank + 1))
    if member:
        tell("in a pair", lambda: changed(t, dist.all_reduce(t, group=pair)))
        tell("from the other", lambda: changed(t * 0 + rank, dist.broadcast(t, 2, group=pair)))
        tell("group_src", lambda: (dist.broadcast(t, group_src=1, group=pair), t)[1])
        tell(
            "translated",
            lambda: (
                dist.get_global_rank(pair, 1),
                dist.get_group_rank(pair, 2),
                dist.get_process_group_ranks(pair),
            ),
        )
        tell("outside", lambda: dist.broadcast(t, 1, group=pair))
    else:
        tell("in a pair", lambda: changed(t, dist.all_reduce(t, group=pair)))
    both = torch.full((2,), float(rank))
    tell("all again", lambda: changed(both, dist.all_reduce(both, group=trio)))
    if member:
        dist.destroy_process_group(pair)
    tell("after one left", lambda: changed(both, dist.all_reduce(both)))


def meshes(rank, size, group):
    grid = init_device_mesh("cpu", (size, 1), mesh_dim_names=("data", "model"))
    pair = DeviceMesh("cpu", torch.tensor([2, 0]))
    tell("mesh", lambda: (grid.mesh, grid.shape, grid.ndim, grid.size(), grid.size(1)))
    tell("mesh names", lambda: (grid.mesh_dim_names, grid.device_type, grid["data"].mesh))
    tell("mesh place", lambda: (grid.get_coordinate(), grid.get_local_rank("data")))
    tell("mesh order", lambda: (grid["model", "data"].mesh, grid["data"]["data"].shape))
    t = torch.full((2,), float(rank + 1))
    tell("mesh data", lambda: changed(t, dist.all_reduce(t, group=grid.get_group("data"))))
    tell("mesh model", lambda: changed(t, dist.all_reduce(t, group=grid["model"].get_group())))
    tell("mesh groups", lambda: [dist.get_world_size(g) for g in grid.get_all_groups()])
    tell("mesh flat", lambda: (grid["data", "model"]._flatten("all").mesh, grid._flatten().size()))
    if rank != 1:
        tell("mesh pair", lambda: (pair.get_local_rank(), pair.get_group().size(), pair.mesh))
        tell("mesh sum", lambda: changed(t, dist.all_reduce(t, group=pair.get_group())))
    else:
        tell("mesh pair", lambda: pair.get_coordinate())
    tell("mesh equal", lambda: (grid == grid["data", "model"], grid == pair))
    wrong = {
        "no dim": lambda: grid.get_group(), "no name": lambda: grid["other"],
        "no names": lambda: pair["data"], "no rank": lambda: grid.get_local_rank(),
        "too many": lambda: init_device_mesh("cpu", (size + 1,)),
        "index": lambda: init_device_mesh("cpu:0", (size,)),
        "names": lambda: init_device_mesh("cpu", (size, 1), mesh_dim_names=("a",)),
        "twice": lambda: init_device_mesh("cpu", (size, 1), mesh_dim_names=("a", "a")),
    }  # fmt: skip
    for name, call in wrong.items():
        tell(f"mesh {name}", call)


def flowing(rank, size, group):
    """Collectives through which gradients flow, and those that give new tensors."""
    group = dist.group.WORLD

    def graded(name, call, *shape):
        x = ((torch.arange(12.0)[: math.prod(shape)] + 1) * (rank + 1)).view(shape)
        x.requires_grad_()

        def both():
            y = call(x)
            each = y if isinstance(y, tuple) else (y,)
            sum((t * t * (rank + 2)).sum() for t in each).backward()
            return each, x.grad

        tell(f"{name} flows", both)

    several = [[1, 0, 1], [2, 1, 0], [0, 1, 2]]
    graded("all_reduce", flows.all_reduce, 2)
    graded("all_reduce MAX", lambda x: flows.all_reduce(x, dist.ReduceOp.MAX), 2)
    graded("all_gather", flows.all_gather, 2)
    graded("broadcast", lambda x: flows.broadcast(x * 1, 1), 2)
    graded("reduce_scatter", lambda x: flows.reduce_scatter(torch.zeros(2), list(x)), size, 2)
    graded("gather", lambda x: flows.gather(x, 1), 2)
    graded("scatter", lambda x: flows.scatter([x, x * 2, x * 3], 0), 2)
    graded("all_to_all", lambda x: flows.all_to_all(
        [torch.zeros(2) for _ in range(size)], [x, x * 2, x * 3]), 2)  # fmt: skip
    graded("all_to_all_single", lambda x: flows.all_to_all_single(
        torch.zeros(sum(r[rank] for r in several), 2), x, [r[rank] for r in several],
        several[rank]), sum(several[rank]), 2)  # fmt: skip
    ranks, t = list(range(size)), torch.arange(6.0) + rank
    for name, call in {
        "all_reduce": lambda: collected.all_reduce(t, "sum", ranks),
        "all_gather_tensor": lambda: collected.all_gather_tensor(t.view(2, 3), 1, group),
        "reduce_scatter_tensor": lambda: collected.reduce_scatter_tensor(t, "sum", 0, group),
        "all_to_all_single": lambda: collected.all_to_all_single(t, None, None, group),
        "broadcast": lambda: collected.broadcast(t, 1, group),
        "permute_tensor": lambda: collected.permute_tensor(t, [1, 2, 0], group),
    }.items():
        tell(f"{name} gives", lambda call=call: collective(call))
    learned = t.clone().requires_grad_()
    tell("wrapped", lambda: (collected.all_reduce(learned, "sum", group) * 2).grad_fn.name())


def collective(call):
    """What a collective gives and of which kind, and what views and sums of it are."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        t = call()
    told = [str(w.message) for w in caught if "_functional" in str(w.message)]
    results = [t, t[:1], t + 0, t.view(-1), collected.wait_tensor(t), t.detach().exp(), t.sum()]
    return told, [type(r).__name__ for r in results], t + 0, repr(t), t.numpy().tolist()


def refused(rank, size, group):
    t = torch.ones(2)
    tell("rank out of range", lambda: dist.broadcast(t, 7))
    tell("second start", lambda: dist.init_process_group("gloo"))
    tell("all_gather list", lambda: dist.all_gather([t], t))
    tell("ranks twice", lambda: dist.new_group([0, 0]))
    tell("rank unknown", lambda: dist.new_group([0, 9]))


def network(rank=0, left=(), **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    for i, p in enumerate(model.parameters()):
        with torch.no_grad():
            p.copy_((torch.arange(p.numel()).reshape(p.shape) % 7 - 3.0) / (5 + i))
    with torch.no_grad():
        model[1].running_mean.add_(rank)
    if left:
        wrapper = nn.parallel.DistributedDataParallel
        wrapper._set_params_and_buffers_to_ignore_for_model(model, left)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wrapped = nn.parallel.DistributedDataParallel(model, **options)
    return wrapped, [f"{w.category.__name__} {w.message}" for w in caught]


def training(rank, size, group):
    pair = dist.new_group([0, 2])
    for label, options in {
        "plain": {}, "bucket": {"bucket_cap_mb": 0.0001}, "view": {"gradient_as_bucket_view": True},
        "static": {"static_graph": True}, "own buffers": {"broadcast_buffers": False},
        "own forwards": {"forward_sync_buffers": False, "gradient_as_bucket_view": True},
        "both": {"forward_sync_buffers": False, "broadcast_buffers": True, "check_reduction": True},
        "left": {}, "apart": {"init_sync": False},
        "group": {"process_group": dist.new_group()}, "pair": {"process_group": pair},
    }.items():  # fmt: skip
        if label == "pair" and rank == 1:
            continue
        names = ("3.weight", "1.running_mean") if label == "left" else ()
        model, warned = network(rank, names, **options)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        losses = []
        for step in range(4):
            x = (torch.arange(24).reshape(6, 4) * (rank + 1) + step) % 5 / 4.0
            if label != "static" and step == 2:
                with model.no_sync():
                    model(x).square().mean().backward()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            views = [p.grad._base is not None for p in model.parameters()]
            optimizer.zero_grad()
            losses.append(round(loss.item(), 5))
            model(x)  # a forward without a backward is none of the reducer's
        mean = model.module[1].running_mean
        told[f"DDP {label}"] = [
            losses,
            [round(v, 5) for v in mean.tolist()],
            [round(v, 5) for v in model.module[3].weight[0].tolist()],
            sorted(model.state_dict()),
            views,
            warned,
            model.broadcast_buffers,
        ]


def joined(rank, size, group):
    """Ranks with other counts of inputs, each with a part of the optimizer's state."""
    for whole in (True, False):
        torch.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(
            nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2))
        )
        with torch.no_grad():
            for p in model.parameters():
                p.copy_((torch.arange(p.numel()).reshape(p.shape) % 7 - 3.0) / 5)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
        with Join([model, optimizer], divide_by_initial_world_size=whole):
            for step in range(1 + 2 * rank):
                optimizer.zero_grad()
                x = (torch.arange(24).reshape(6, 4) * (rank + 1) + step) % 5 / 4.0
                model(x).square().mean().backward()
                optimizer.step()
        tell("state of all", optimizer.state_dict)
        optimizer.consolidate_state_dict(1)
        state = optimizer.state_dict()["state"] if rank == 1 else {}
        told[f"joined {whole}"] = [
            [round(v, 4) for t in model.state_dict().values() for v in t.flatten().tolist()],
            [len(group["params"]) for group in optimizer.optim.param_groups],
            {str(k): round(v["exp_avg"].sum().item(), 4) for k, v in state.items()},
        ]


def spread(rank, size, group):
    """Tensors over the ranks, also where parts differ in size; values and gradients as wholes."""
    mesh, functional = init_device_mesh("cpu", (size,)), nn.functional
    functions = {
        "exp": lambda x: x.exp(), "sum": lambda x: x.sum(), "mean": lambda x: x.mean(0),
        "softmax": lambda x: x.softmax(0), "t": lambda x: x.t(), "select": lambda x: x[1],
        "slice": lambda x: x[:, 1:3], "mm": lambda x: x @ x.t(), "max": lambda x: x.max(),
        "cat": lambda x: torch.cat([x, x]), "norm": lambda x: x.norm(), "std": lambda x: x.std(0),
        "layer_norm": lambda x: functional.layer_norm(x, (4,)), "mul": lambda x: x * x.mean(),
        "cumsum": lambda x: x.cumsum(1), "expand": lambda x: x.unsqueeze(0).expand(2, -1, 4),
        "to": lambda x: x.redistribute(placements=[Shard(1)]) * 2, "view": lambda x: x.view(-1),
        "halves": lambda x: x.reshape(-1, 2), "quarters": lambda x: x.view(1, len(x), 4, 1),
        "thirds": lambda x: torch.cat([x, x, x], 1).view(len(x), 3, 4),
    }  # fmt: skip
    for rows, placement in ((2 * size, Shard(0)), (5, Shard(0)), (4, Shard(1)), (4, Replicate())):
        for name, function in functions.items():
            values = (torch.arange(4.0 * rows).view(rows, 4) % 7 - 2).requires_grad_()
            x = distribute_tensor(values, mesh, [placement])

            def call(x=x, function=function):
                y = function(x)
                (y * y).sum().backward()
                both = y.full_tensor(), x.grad.full_tensor()
                return [[round(v, 3) + 0.0 for v in t.flatten().tolist()] for t in both]

            # Of a part without elements torch has no largest: others wait.
            if (placement, name) != (Shard(1), "max"):
                tell(f"{name} of {placement} {rows}", call)
    logits = distribute_tensor(torch.arange(18.0).view(3, 6) % 5, mesh, [Shard(1)])
    logits.requires_grad_()
    with loss_parallel():
        loss = nn.functional.cross_entropy(logits, torch.tensor([0, 3, 2]))
        loss.backward()
    both = loss.full_tensor(), logits.grad.full_tensor().flatten()
    told["loss_parallel"] = [round(both[0].item(), 4), [round(v, 4) for v in both[1].tolist()]]
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3), nn.LayerNorm(3))
    with torch.no_grad():
        for p in net.parameters():
            p.copy_((torch.arange(p.numel()).reshape(p.shape) % 7 - 3.0) / 5)
    parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    parallelize_module(net, mesh, {"3": SequenceParallel(sequence_dim=0, use_local_output=True)})
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1, eps=1e-2)  # a gradient is all but zero
    net(torch.arange(8.0).view(2, 4) / 8).square().sum().backward()
    optimizer.step()
    told["parallel"] = {
        k: [round(v, 3) + 0.0 for v in p.full_tensor().flatten().tolist()]
        for k, p in net.named_parameters()
    }


def coalesced(rank, size, _):
    """Several calls at once, and groups' counts."""
    manager = place("distributed.distributed_c10d")._coalescing_manager

    def together(*calls):
        tensors = [torch.arange(6.0) + rank, torch.ones(6)]
        outputs = [torch.zeros(2), torch.zeros(2)]
        with manager(async_ops=True) as works:
            for call in calls:
                for o, t in zip(outputs, tensors, strict=True):
                    call(o, t)
        works.wait()
        return tensors + outputs

    tell("reduced together", lambda: together(lambda _, t: dist.all_reduce(t)))
    tell("parts together", lambda: together(dist.reduce_scatter_single))
    tell("mixed", lambda: together(lambda _, t: dist.all_reduce(t), dist.reduce_scatter_single))
    for several in ([torch.ones(2) * rank, torch.ones(1)], torch.ones(1), [torch.ones(1), 3], 3):
        tell(f"several {len(told)}", lambda ts=several: (dist.all_reduce_coalesced(ts), ts)[1])
    outputs = [[torch.zeros(2), torch.zeros(1)] for _ in range(size)]
    inputs = [torch.ones(2) * rank, torch.ones(1)]
    work = dist.all_gather_coalesced(outputs, inputs, async_op=True)
    told["gathered"] = plain(work.wait())
    for wrong in ((3, inputs), (outputs[:1], inputs), ([torch.ones(1)], inputs)):
        tell(f"gathered {len(told)}", lambda w=wrong: dist.all_gather_coalesced(*w))
    c10d = place("distributed.distributed_c10d")
    told["complex"] = [c10d.supports_complex(getattr(dist.ReduceOp, op)) for op in OPS]
    for ranks in ([[0], [0]], None, []):
        tell(f"subgroups {ranks}", lambda r=ranks: dist.new_subgroups_by_enumeration(r))
    for count in (None, 0, 2, 7):
        tell(f"subgroups of {count}", lambda c=count: dist.new_subgroups(c))
    tell("split", lambda: dist.split_group())


def counted(rank, size, _):
    """What a CommDebugMode counts, and functions of local tensors."""
    mode = place("distributed.tensor.debug").CommDebugMode
    local_map = place("distributed.tensor.experimental").local_map
    made = place("distributed.tensor")
    mesh = init_device_mesh("cpu", (size,))
    ways = {"0": Shard(0), "1": Shard(1), "whole": Replicate()}
    ways |= {op: made.Partial(op) for op in ("sum", "avg", "max")}
    for rows in (2 * size, 5):
        values = torch.arange(4.0 * rows).view(rows, 4) * (1 + rank)
        for first, now in ways.items():
            local = distribute_tensor(values, mesh, [now]).to_local() if first in "01" else values
            for then in ways:

                def moved(then=then, now=now, local=local, shape=values.shape):
                    x = made.DTensor.from_local(
                        local, mesh, [now], run_check=False, shape=shape, stride=(4, 1)
                    )
                    with mode() as seen:
                        y = x.redistribute(placements=[ways[then]]).to_local()
                    counts = {str(k): v for k, v in seen.get_comm_counts().items()}
                    return [[round(v, 3) for v in y.flatten().tolist()], str(counts)]

                # Of whole values that differ, ranks have what they have.
                if "sum" not in then and "avg" not in then and "max" not in then:
                    tell(f"{rows} {first} to {then}", moved)
    x = distribute_tensor(torch.arange(8.0).view(4, 2), mesh, [Replicate()])
    doubled = local_map(lambda t, k: (t * k, 3), ([Replicate()], None), ([Replicate()], None))
    tell("mapped", lambda: [doubled(x, 2.0)[0].to_local(), doubled(x, 2.0)[1]])
    tell("mapped plain", lambda: doubled(torch.ones(2), 2.0)[0])
    for options in (
        {"in_placements": ([Shard(0)],)}, {"in_placements": ([Replicate()],) * 2},
        {"in_placements": (None,)}, {"out_placements": ([Replicate()],) * 2},
        {"in_placements": ([Shard(0)],), "redistribute_inputs": True},
    ):  # fmt: skip
        options = {"out_placements": [Replicate()], **options}
        call = local_map(lambda t: t.sum(), **options)
        tell(f"mapped {len(told)}", lambda call=call: call(x).to_local())


def hooks(rank, size, _):
    """What sends gradients: their buckets, PowerSGD's sums, means of parameters."""
    kinds = place("distributed.algorithms.ddp_comm_hooks")
    power = place("distributed.algorithms.ddp_comm_hooks.powerSGD_hook")
    default = place("distributed.algorithms.ddp_comm_hooks.default_hooks")

    def trained(hook, state, digits=2, **options):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
        net.append(nn.Linear(8, 1))
        net = nn.parallel.DistributedDataParallel(net, **options)
        if isinstance(hook, kinds.DDPCommHookType):
            kinds.register_ddp_comm_hook(hook, net, state)
        else:
            net.register_comm_hook(state, hook)
        sums = []
        for i in range(4):
            net.zero_grad()
            net(torch.arange(10.0).view(2, 5).sin() + rank + i).square().sum().backward()
            sums.append([round(p.grad.abs().sum().item(), digits) for p in net.parameters()])
        return sums

    def seen(state, bucket):
        state.append([bucket.index(), bucket.is_last(), bucket.buffer().numel()])
        state[-1] += [tuple(g.shape) for g in bucket.gradients()]
        return default.allreduce_hook(None, bucket)

    for options in (
        {}, {"bucket_cap_mb": 0.0001}, {"bucket_cap_mb": 0.0003, "find_unused_parameters": True},
        {"bucket_cap_mb": 0.0003, "static_graph": True},
    ):  # fmt: skip
        state = []
        trained(seen, state, **options)
        told[f"buckets {options}"] = plain(state)
    for rank_of, options in (
        (1, {}), (2, {"min_compression_rate": 0.5, "orthogonalization_epsilon": 1e-8}),
        (3, {"min_compression_rate": 0.5, "warm_start": False, "random_seed": 3}),
        (1, {"batch_tensors_with_same_shape": True}),
    ):  # fmt: skip
        state = power.PowerSGDState(None, rank_of, 2, **options)
        told[f"power {rank_of} {options}"] = trained(power.powerSGD_hook, state)
        told[f"stats {rank_of} {options}"] = [state.iter, *state.compression_stats()]
    tell("power early", lambda: power.PowerSGDState(None, start_powerSGD_iter=1))
    for kind in kinds.DDPCommHookType:
        tell(f"kind {kind.name}", lambda k=kind: trained(k, None, 1))
    local = place("distributed.algorithms.ddp_comm_hooks.post_localSGD_hook")
    state = local.PostLocalSGDState(None, None, 2, post_local_gradient_allreduce=False)
    told["local"] = trained(local.post_localSGD_hook, state)
    means = place("distributed.algorithms.model_averaging.averagers")
    tall = place("distributed.algorithms.model_averaging.hierarchical_model_averager")
    optim = place("distributed.optim").PostLocalSGDOptimizer
    for name, make in {
        "every 2": lambda: means.PeriodicModelAverager(2, warmup_steps=1),
        "by groups": lambda: tall.HierarchicalModelAverager({2: 1, 4: size}, warmup_steps=1),
        "period 0": lambda: means.PeriodicModelAverager(0),
        "no groups": lambda: tall.HierarchicalModelAverager(),
        "part of all": lambda: tall.HierarchicalModelAverager({2: 1}),
    }.items():

        def stepped(make=make):
            p = nn.Parameter(torch.ones(2) * rank)
            optimizer = optim(torch.optim.SGD([p], lr=1.0), make())
            values = []
            for i in range(6):
                p.grad = torch.ones(2) * (rank + i)
                optimizer.step()
                values.append(round(p.sum().item(), 3))
            return [*values, optimizer.state_dict()["step"]]

        tell(name, stepped)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", timeout=__import__("datetime").timedelta(seconds=100))
    rank, size = dist.get_rank(), dist.get_world_size()
    for part in (
        collectives,
        asynchronous,
        points,
        objects,
        groups,
        meshes,
        spread,
        flowing,
        refused,
        training,
        joined,
        coalesced,
        counted,
        hooks,
    ):
        part(rank, size, None)
    dist.barrier()
    print(json.dumps(told), flush=True)
    dist.destroy_process_group()
