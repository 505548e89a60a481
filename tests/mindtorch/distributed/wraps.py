"""What a rank of FullyShardedDataParallel tells, in either library: `wraps.py losses|states`."""

import json
import os
import sys
import warnings
from functools import partial
from importlib import import_module

LIBRARY = os.environ.get("LIBRARY", "mindtorch")
torch = import_module(LIBRARY)
dist = import_module(f"{LIBRARY}.distributed")
fsdp = import_module(f"{LIBRARY}.distributed.fsdp")
wrap = import_module(f"{LIBRARY}.distributed.fsdp.wrap")
nn, FSDP = torch.nn, fsdp.FullyShardedDataParallel


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(4, 6), nn.Linear(6, 4)

    def forward(self, x):
        return x + self.l2(torch.relu(self.l1(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(3, 4), nn.Linear(4, 2)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x) + self.shift


def network():
    net = Net()
    for i, p in enumerate(net.parameters()):
        with torch.no_grad():
            p.copy_((torch.arange(p.numel()).reshape(p.shape) * (i + 2) % 7 - 3.0) / 7)
    return net


def steps(model, optimizer, rank, count=3):
    x = (torch.arange(6.0).view(2, 3) + rank) / 5
    losses = []
    for _ in range(count):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 3))
    return losses


BLOCKS = partial(wrap.transformer_auto_wrap_policy, transformer_layer_cls={Block})
OPTIONS = {
    "plain": {}, "original": {"use_orig_params": True},
    "whole": {"sharding_strategy": fsdp.ShardingStrategy.NO_SHARD},
    "gradients": {"sharding_strategy": fsdp.ShardingStrategy.SHARD_GRAD_OP},
    "blocks": {"auto_wrap_policy": BLOCKS},
    "original blocks": {"auto_wrap_policy": wrap.ModuleWrapPolicy({Block}),
                        "use_orig_params": True},
    "by size": {"auto_wrap_policy": partial(wrap.size_based_auto_wrap_policy, min_num_params=20)},
    "half": {"mixed_precision": fsdp.MixedPrecision(
        param_dtype=torch.bfloat16, reduce_dtype=torch.float32, buffer_dtype=torch.bfloat16)},
}  # fmt: skip


def wrapped(**options):
    return FSDP(network(), device_id=torch.device("cpu"), **options)


def losses(rank):
    """Losses, and what the parameters are called and how large this rank's parts are."""
    told = {}
    for name, options in OPTIONS.items():
        model = wrapped(**options)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        told[name] = [steps(model, optimizer, rank), str(model),
                      [(n, list(p.shape)) for n, p in model.named_parameters()]]  # fmt: skip
    return told


def rounded(state):
    return {k: [round(v, 4) + 0.0 for v in t.flatten().tolist()] for k, t in state.items()}


def states(rank):
    """States after steps, which are those of DistributedDataParallel, and go on from there."""
    reference = nn.parallel.DistributedDataParallel(network())
    optimizer = torch.optim.Adam(reference.parameters(), lr=0.05, eps=1e-2)
    steps(reference, optimizer, rank)
    expected = rounded(reference.module.state_dict())
    told = []
    for name in ("plain", "original", "whole", "blocks", "original blocks"):
        model = wrapped(**OPTIONS[name])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05, eps=1e-2)
        steps(model, optimizer, rank)
        state, whole = model.state_dict(), FSDP.optim_state_dict(model, optimizer)
        assert rounded(state) == expected, name
        again = wrapped(**OPTIONS["blocks"])
        another = torch.optim.Adam(again.parameters(), lr=0.05, eps=1e-2)
        assert not any(again.load_state_dict(state))
        another.load_state_dict(FSDP.optim_state_dict_to_load(again, another, whole))
        here, there = steps(again, another, rank), steps(model, optimizer, rank)
        assert here == there, (name, here, there)
        with FSDP.summon_full_params(model), torch.no_grad():
            model.module.head.weight.fill_(2.0)
            shapes = [(n, list(p.shape)) for n, p in model.named_parameters()]
        assert set(model.state_dict()["head.weight"].flatten().tolist()) == {2.0}
        first = fsdp.FullStateDictConfig(rank0_only=True)
        with FSDP.state_dict_type(model, fsdp.StateDictType.FULL_STATE_DICT, first):
            names = list(model.state_dict())
        with FSDP.state_dict_type(model, fsdp.StateDictType.SHARDED_STATE_DICT):
            parts = model.state_dict()
            model.load_state_dict(parts)
        model.zero_grad()
        with model.no_sync():
            model(torch.ones(1, 3)).sum().backward()
        model(torch.ones(1, 3)).sum().backward()
        norm = model.clip_grad_norm_(0.5).item()
        squares = torch.tensor(sum(
            p.grad.square().sum().item() for p in model.parameters() if p.grad is not None
        ))  # fmt: skip
        dist.all_reduce(squares)
        told.append([shapes, names, type(parts["head.weight"]).__name__, round(norm, 3),
                     round(squares.item(), 4)])  # fmt: skip
    return told


def stages(rank):
    """A network in two stages: results, losses and gradients of batches in four parts."""
    pipes = import_module(f"{LIBRARY}.distributed.pipelining")
    told = []
    for schedule in (pipes.ScheduleGPipe, pipes.Schedule1F1B):
        net = network()
        parts = nn.Sequential(net.first, net.blocks[0]), nn.Sequential(net.blocks[1], net.head)
        stage = pipes.PipelineStage(parts[rank], rank, 2, torch.device("cpu"))
        pipe = schedule(stage, 4, loss_fn=nn.functional.mse_loss)
        optimizer = torch.optim.SGD(parts[rank].parameters(), lr=0.1)
        x, y = torch.arange(24.0).view(8, 3) / 9, torch.arange(16.0).view(8, 2) / 9
        for _ in range(2):
            losses = []
            out = pipe.step(x) if rank == 0 else pipe.step(target=y, losses=losses)
            grads = {k: p.grad for k, p in parts[rank].named_parameters()}
            whole = {} if out is None else {"out": out, "losses": torch.stack(losses)}
            told.append([rounded(grads), rounded(whole)])
            optimizer.step()
            optimizer.zero_grad()
        refusals = []
        for wrong in (lambda s=stage: pipes.Schedule1F1B(s, 1),
                      lambda n=net: pipes.PipelineStage(n, 5, 2, "cpu")):  # fmt: skip
            try:
                wrong()
            except ValueError as error:
                refusals.append(str(error))
        told.append(refusals)
    return told + cut_stages(rank, pipes)


class Weighted(nn.Module):
    """Layers and a parameter of its own, cut where `cuts` says."""

    def __init__(self, cut=None):
        super().__init__()
        torch.manual_seed(0)
        self.scale = nn.Parameter(torch.arange(4.0) / 4)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])
        self.norm, self.cut = nn.LayerNorm(4), cut
        self.by = nn.Module()
        self.by.register_buffer("shift", torch.ones(4) / 8)

    def forward(self, x):
        x = x + self.by.shift
        for i, layer in enumerate(self.layers):
            if i == 2 and self.cut is not None:
                self.cut()
            x = torch.tanh(layer(x) + self.scale) if i % 3 == 0 else layer(x)
        return self.norm(x) * self.scale if self.cut is None else self.norm(x)


def cut_stages(rank, pipes):
    """A model cut by its trace, and two stages a process."""
    told = []
    point = pipes.SplitPoint
    x, y = torch.arange(32.0).view(8, 4).sin(), torch.arange(32.0).view(8, 4).cos()
    for net, spec in (
        (Weighted(), {"layers.2": point.BEGINNING}), (Weighted(), {"layers.1": point.END}),
        (Weighted(pipes.pipe_split), None),
    ):  # fmt: skip
        pipe = pipes.pipeline(net, (x[:2],), split_spec=spec)
        stage = pipe.build_stage(rank, torch.device("cpu"))
        names = [list(pipe.get_stage_module(i).state_dict()) for i in (0, 1)]
        schedule = pipes.ScheduleGPipe(stage, 4, loss_fn=nn.functional.mse_loss)
        losses = []
        schedule.step(x) if rank == 0 else schedule.step(target=y, losses=losses)
        grads = {k: p.grad for k, p in sorted(stage.submod.named_parameters())}
        told.append([pipe.num_stages, names, rounded(grads), [round(v.item(), 4) for v in losses]])
        children = [n for n, _ in pipe.split_gm.named_children()]
        told.append([children, stage.is_first, stage.is_last])
    for kind in (pipes.ScheduleLoopedBFS, pipes.ScheduleInterleaved1F1B):
        net = Weighted()
        mine = [
            pipes.PipelineStage(net.layers[i], i, 4, torch.device("cpu")) for i in (rank, rank + 2)
        ]
        schedule = kind(mine, 4, loss_fn=nn.functional.mse_loss)
        losses = []
        out = schedule.step(x) if rank == 0 else schedule.step(target=y, losses=losses)
        grads = {
            f"{s.stage_index}.{k}": p.grad for s in mine for k, p in s.submod.named_parameters()
        }
        told.append([rounded(grads), rounded({} if out is None else {"out": out})])
        told.append([round(v.item(), 4) for v in losses])
    for wrong in (
        lambda: pipes.pipeline(Weighted(), (x,), split_spec={"nope": point.END}),
        lambda: pipes.pipeline(Weighted(), (x,), split_spec={"norm": 3}),
        lambda: pipes.pipeline(Weighted(), (x,), split_spec={}, split_policy=lambda g: g),
        lambda: pipe.get_stage_module(7), lambda: schedule.step(x[:3]),
        lambda: schedule.step(x, losses=()), lambda: schedule.eval(y=x[:2]),
        lambda: pipes.PipelineStage(net, 0, 1, "cpu"),
    ):  # fmt: skip
        try:
            wrong()
        except (AttributeError, RuntimeError, TypeError, ValueError) as error:
            told.append([type(error).__name__, str(error)])
    return told


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", timeout=__import__("datetime").timedelta(seconds=60))
    print(json.dumps(globals()[sys.argv[1]](dist.get_rank())), flush=True)
    dist.destroy_process_group()
