"""What a rank of checkpoints tells: `shards.py write|read FOLDER`, in mindtorch or torch."""

import json
import os
import sys
import warnings
from importlib import import_module

LIBRARY = os.environ.get("LIBRARY", "mindtorch")
torch = import_module(LIBRARY)
dist = import_module(f"{LIBRARY}.distributed")
dcp = import_module(f"{LIBRARY}.distributed.checkpoint")
states = import_module(f"{LIBRARY}.distributed.checkpoint.state_dict")
tensor = import_module(f"{LIBRARY}.distributed.tensor")
fsdp = import_module(f"{LIBRARY}.distributed.fsdp")
meshes = import_module(f"{LIBRARY}.distributed.device_mesh")
nn, Shard, Replicate = torch.nn, tensor.Shard, tensor.Replicate
Options = states.StateDictOptions


def plain(value):
    if isinstance(value, tensor.DTensor):
        return [plain(value.full_tensor().detach()), list(value.to_local().shape)]
    if isinstance(value, torch.Tensor):
        return [round(v, 4) + 0.0 for v in value.flatten().tolist()]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value if isinstance(value, str | int | float | None) else repr(value)


def network(seed):
    net = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 1))
    for i, p in enumerate(net.parameters()):
        with torch.no_grad():
            p.copy_((torch.arange(p.numel()).reshape(p.shape) * (i + 2) + seed) % 7 - 3.0)
    return net


def spread(size):
    """Tensors over a mesh: parts of unequal sizes, a copy, one that some ranks have none of."""
    mesh = meshes.init_device_mesh("cpu", (size,))
    return {
        name: tensor.distribute_tensor(torch.arange(float(r * c)).view(r, c), mesh, [placement])
        for name, r, c, placement in (("rows", 5, 4, Shard(0)), ("columns", 2, 3, Shard(1)),
                                      ("copy", 3, 2, Replicate()), ("one", 1, 2, Shard(0)))
    }  # fmt: skip


def write(rank, size, folder):
    net = network(0)
    fsdp.fully_shard(net[0])
    fsdp.fully_shard(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1, eps=1e-2)
    net(torch.ones(2, 3) * (rank + 1)).square().sum().backward()
    optimizer.step()
    model, optim = states.get_state_dict(net, optimizer)
    told = {"model": model, "optim": optim, "step": 7, "mine": torch.ones(2) * rank,
            **spread(size)}  # fmt: skip
    metadata = dcp.save(told, checkpoint_id=folder)
    places = [
        (i.fqn, i.offset and list(i.offset), i.index, info.relative_path)
        for i, info in metadata.storage_data.items()
    ]
    return {"state": told, "places": sorted(places, key=repr),
            "files": sorted(os.listdir(folder))}  # fmt: skip


def read(rank, size, folder):
    net = network(3)
    fsdp.fully_shard(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.5)
    model, optim = states.get_state_dict(net, optimizer)
    told = {"model": model, "optim": optim, "step": 0, "mine": torch.zeros(2)}
    mesh = meshes.init_device_mesh("cpu", (size,))
    for name, value in spread(size).items():
        other = Shard(1) if value.placements[0] == Shard(0) else Shard(0)
        told[name] = tensor.distribute_tensor(torch.zeros(value.shape), mesh, [other])
    dcp.load(told, checkpoint_id=folder)
    states.set_state_dict(net, optimizer, model_state_dict=model, optim_state_dict=optim)
    whole = Options(full_state_dict=True, cpu_offload=True)
    wholes = states.get_state_dict(net, optimizer, options=whole)
    before = plain(wholes)  # torch puts parts into what it is given
    flat = states.get_optimizer_state_dict(
        net, optimizer, options=Options(flatten_optimizer_state_dict=True)
    )
    again = network(1)
    fsdp.fully_shard(again)
    another = torch.optim.Adam(again.parameters(), lr=0.7)
    first = Options(full_state_dict=True, broadcast_from_rank0=True)
    keys = states.set_model_state_dict(again, wholes[0], options=first)
    states.set_optimizer_state_dict(again, another, wholes[1], options=first)
    errors = []
    for wrong in ({"rows": torch.ones(2 + rank)}, {"absent": torch.ones(1)}):
        try:
            dcp.load(wrong, checkpoint_id=folder)
        except dcp.CheckpointException as error:
            errors.append([str(error).splitlines()[-1], sorted(error.failures)])
    return {
        "told": told, "wholes": before, "flat": sorted(flat), "keys": keys, "errors": errors,
        "again": [dict(again.state_dict()), another.state_dict()["state"][0]],
        "lr": another.param_groups[0]["lr"],
    }  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", timeout=__import__("datetime").timedelta(seconds=60))
    told = globals()[sys.argv[1]](dist.get_rank(), dist.get_world_size(), sys.argv[2])
    print(json.dumps(plain(told)), flush=True)
    dist.destroy_process_group()
