"""Tensors over a mesh of one process compute, print and refuse as torch's."""

import importlib
import io
import re
import warnings

import pytest

import mindtorch
import mindtorch.distributed.fsdp as ours_fsdp
import mindtorch.distributed.tensor.parallel as ours_parallel

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
import torch.distributed.fsdp as torchs_fsdp  # noqa: E402
import torch.distributed.tensor.parallel as torchs_parallel  # noqa: E402

FUNCTIONS = """
    x @ y|x + y|x * y|x.exp()|x * 2|x / 2|-x|x + 1|x.sum()|x.mean(0)|x.max()
    x.var(0)|x.norm()|x.softmax(0)|x.softmax(1)|x.t()|x.view(16)|x.view(2, 2, 4)
    x.view(4, 2, 2)|x.unsqueeze(0)|torch.cat([x, x])|torch.stack([x, x])|x[0]|x[1:3]|x[:, 1:3]
    x.clone()|x.double()|x.argmax()|x.max(0)[0]|x.cumsum(0)|x.sort(0)[0]|x.topk(2, 1)[0]
    (x > 1).any()|(x > 1).all()|x.permute(1, 0)|x.expand(2, 4, 4)|torch.zeros_like(x)|x.flip(0)
    F.layer_norm(x, (4,))|F.dropout(abs(x))|x.repeat(2, 1)|x.masked_fill(x > 1, 0)|x.split(2)[0]
    torch.bmm(x[None], x[None])|x.logsumexp(0)|x.amax(0)|x.clamp(0, 1)|x.tril()
    x.clone().mul_(2)|x.clone().copy_(y)|F.gelu(x / 17)|torch.where(x > 1, x, x)|x.equal(x)
    x.clone().normal_()|F.embedding(one.long(), x.redistribute(placements=[Shard(1)]))
"""
STATEMENTS = """
    x + torch.ones(4, 4)|distribute_tensor(torch.ones(2), m, [Shard(1)])|zeros(2, device_mesh=m)
    distribute_tensor(torch.ones(2), m, [Shard(0), Shard(0)])|distribute_tensor(torch.ones(2))
    x.redistribute()|x.redistribute(placements=[Partial()])|DTensor.from_local(x, m)|x.numpy()
    full((2,), 3.0, device_mesh=m, placements=[Shard(0)])|x.item()|one.item()|copy.deepcopy(x)
    DTensor.from_local(torch.ones(2, 3, requires_grad=True), m, [Shard(0)])
    distribute_tensor(torch.ones(2, requires_grad=True) * 2, m)|nn.Parameter(x)|nn.init.ones_(x)
    parallelize_module(nn.ReLU(), m, ColwiseParallel())|parallelize_module(nn.ReLU(), m, 3)
    parallelize_module(nn.ReLU(), m)|parallelize_module(nn.Linear(1, 1), m, {"x": 1})
    ColwiseParallel()|SequenceParallel()|Partial("avg")|Shard(0) == Shard(1)|one * 3|str(Shard(1))
    PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate())
    distribute_module(distribute_module(nn.Linear(2, 2), m), m)|loaded(x)
    trained(nn.Linear(4, 2), None)|trained(nn.Linear(4, 2), ColwiseParallel())
    trained(nn.Linear(4, 2), RowwiseParallel())|trained(nn.LayerNorm(4), SequenceParallel())
    init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))["tp"]|x.to_local()
    shared(fsdp.MixedPrecisionPolicy())|shared(fsdp.MixedPrecisionPolicy(torch.bfloat16, one.dtype))
    shared(fsdp.MixedPrecisionPolicy(torch.bfloat16, output_dtype=one.dtype))|fsdp.OffloadPolicy()
    fsdp.fully_shard(nn.ModuleList())|fsdp.fully_shard(fsdp.fully_shard(nn.Linear(2, 2)))
    fsdp.fully_shard(nn.PReLU(), reshard_after_forward=2)|fsdp.fully_shard(nn.Linear(1, 1), mesh=m)
    distribute_tensor(torch.ones(2), m, [Shard(3)])|x.redistribute(placements=[Shard(-3)])
    DTensor.from_local(torch.ones(2), m, [Shard(1)])|distribute_tensor(x, m, [Shard(-3)])
    late()|copy.deepcopy(fsdp.fully_shard(nn.Linear(1, 1)))|fsdp.MixedPrecisionPolicy(x.dtype)
"""


def names(lib, parallel):
    import copy

    tensor = lib.distributed.tensor

    def loaded(x):
        file = io.BytesIO()
        lib.save(x, file)
        file.seek(0)
        return lib.load(file)

    def trained(module, style):
        with lib.no_grad():
            for p in module.parameters():
                p.copy_((lib.arange(p.numel()).reshape(p.shape) % 7 - 3.0) / 5)
        if style is None:
            tensor.distribute_module(module, m)
        else:
            parallel.parallelize_module(module, m, style)
        inputs = lib.arange(12.0).view(1, 3, 4) ** 2
        if style is None:
            inputs = tensor.DTensor.from_local(inputs, m)
        optimizer = lib.optim.AdamW(module.parameters(), 0.1)
        y = module(inputs)
        y.square().sum().backward()
        optimizer.step()
        return y, module, module.state_dict(), optimizer.state_dict()["state"]

    def shared(policy):
        net = lib.nn.Sequential(lib.nn.Linear(4, 4), lib.nn.ReLU(), lib.nn.Linear(4, 2))
        with lib.no_grad():
            for p in net.parameters():
                p.copy_((lib.arange(p.numel()).reshape(p.shape) % 7 - 3.0) / 4)
        net[2].bias.requires_grad_(False)
        fsdp.fully_shard(net[0], mp_policy=policy)
        fsdp.fully_shard(net, mp_policy=policy)
        optimizer = lib.optim.SGD(net.parameters(), 0.125)
        steps = [net]
        for _ in range(2):
            y = net(lib.arange(8.0).view(2, 4))
            steps += [y.detach(), [type(p).__name__ for p in net.parameters()]]
            y.square().mean().backward()
            steps += [repr(p.grad) for p in net.parameters()]
            optimizer.step()
        net.unshard()
        whole = repr(net[2].weight)
        net.reshard()
        return steps, whole, repr(net.state_dict()), net.double()[2].bias, type(net)

    def late():
        """What backward passes that reduce nothing leave for the one that does."""
        net = lib.nn.Linear(4, 2, bias=False)
        net.weight.requires_grad_(False).copy_(lib.ones(2, 4)).requires_grad_(True)
        fsdp.fully_shard(net)
        net.set_requires_gradient_sync(False)
        net(lib.ones(1, 4)).sum().backward()
        grads = [net.weight.grad]
        net.set_requires_gradient_sync(True)
        net(lib.arange(4.0).view(1, 4)).sum().backward()
        return [*grads, repr(net.weight.grad)]

    fsdp = ours_fsdp if lib is mindtorch else torchs_fsdp
    m = lib.distributed.device_mesh.init_device_mesh("cpu", (1,))
    one = tensor.distribute_tensor(lib.ones(1), m)
    public = {k: getattr(tensor, k) for k in ("DTensor", "distribute_tensor", "distribute_module",
              "Shard", "Replicate", "Partial", "zeros", "full", "init_device_mesh")}  # fmt: skip
    styles = {k: getattr(parallel, k) for k in parallel.__all__ if hasattr(ours_parallel, k)}
    return {**public, **styles, "torch": lib, "nn": lib.nn, "F": lib.nn.functional, "m": m,
            "one": one, "copy": copy, "fsdp": fsdp,
            "shared": shared, "late": late, "loaded": loaded, "trained": trained}  # fmt: skip


def text(scope, code):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value = repr(eval(code, scope))
        except Exception as error:
            value = f"{type(error).__name__}: {error}"
    warned = [str(w.message) for w in seen if w.category is UserWarning]
    value = re.sub("mindtorch", "torch", "\n".join([value, *warned]))
    return re.sub(r"-0\.(0+)\b", r" 0.\1", value)


def story(lib, parallel):
    scope = names(lib, parallel)
    spread, kinds = scope["distribute_tensor"], ("Shard(0)", "Shard(1)", "Replicate()", "Partial()")
    values = lib.arange(1.0, 17.0).view(4, 4)
    for kind in kinds:
        for other in kinds if kind != "Partial()" else kinds[2:3]:
            scope["x"] = spread(values, scope["m"], [eval(kind, scope)])
            scope["y"] = spread(values, scope["m"], [eval(other, scope)])
            codes = FUNCTIONS.replace("\n", "|").split("|")
            for code in codes if other == kinds[2] else codes[:4]:
                if code.strip() and not (kind == kinds[1] and "view(16)" in code):
                    lib.manual_seed(0)
                    yield kind, other, code.strip(), text(scope, code.strip())
    scope["x"] = spread(values, scope["m"], [scope["Shard"](0)])
    for code in STATEMENTS.replace("\n", "|").split("|"):
        if code.strip():
            yield code.strip(), text(scope, code.strip())
    for function in (lambda x: x * 2, lambda x: x.softmax(0), lambda x: x @ x.t(),
                     lambda x: x.redistribute(placements=[scope["Replicate"]()]).to_local(),
                     lambda x: x[1].exp().mean(), lambda x: x.view(16)):  # fmt: skip
        x = spread((values / 9).requires_grad_(), scope["m"], [scope["Shard"](0)])
        y = function(x)
        y.square().sum().backward()
        yield type(y.grad_fn).__name__, repr(x.grad.to_local()), repr(x.grad.placements)


def test_a_mesh_of_one_computes_and_says_what_torchs_does():
    stories = []
    for lib, parallel in ((mindtorch, ours_parallel), (torch, torchs_parallel)):
        dist = lib.distributed
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            stories.append(list(story(lib, parallel)))
        finally:
            dist.destroy_process_group()
    odd = [pair for pair in zip(*stories, strict=True) if pair[0] != pair[1]]
    assert not odd, "\n".join(f"{a}\n{b}\n" for a, b in odd)


def test_wrappers_of_activations_have_the_names_of_what_is_inside():
    def wrapped(lib, path):
        tools = importlib.import_module(f"{path}.checkpoint_wrapper")
        net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Sequential(lib.nn.Linear(2, 1)))
        with lib.no_grad():
            for p in net.parameters():
                p.fill_(0.5)
        tools.apply_activation_checkpointing(net, check_fn=lambda m: isinstance(m, lib.nn.Linear))
        for impl in tools.CheckpointImpl:
            whole = tools.offload_wrapper(tools.checkpoint_wrapper(net, impl))
            y = whole(lib.ones(1, 2, requires_grad=True))
            y.sum().backward()
            yield repr(whole), list(whole.state_dict()), [n for n, _ in whole.named_parameters()]
            yield str(whole.load_state_dict(whole.state_dict())), y.item(), repr(whole[0].bias.grad)

    place = "distributed.algorithms._checkpoint"
    ours, theirs = wrapped(mindtorch, f"mindtorch.{place}"), wrapped(torch, f"torch.{place}")
    assert list(ours) == list(theirs)
