"""States by names are those of torch, and models and optimizers go on from them."""

import pytest

import mindtorch
from mindtorch.distributed.checkpoint import state_dict as ours


def run(torch, states):
    def network():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))
        for i, p in enumerate(net.parameters()):
            with torch.no_grad():
                p.copy_(torch.arange(p.numel()).reshape(p.shape) / 7 + i)
        return net, torch.optim.AdamW(net.parameters(), lr=0.1)

    def step(net, optimizer):
        net(torch.arange(12.0).reshape(4, 3)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    net, optimizer = network()
    step(net, optimizer)
    whole = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
    model_state, state = states.get_state_dict(net, optimizer, options=whole)
    told = {**state, "param_groups": [{k: g[k] for k in ("params", "lr", "betas")}
                                      for g in state["param_groups"]]}  # fmt: skip
    again, another = network()
    keys = states.set_state_dict(
        again, another, model_state_dict=model_state, optim_state_dict=state, options=whole
    )
    step(net, optimizer)
    step(again, another)
    net[1].bias.requires_grad_(False)
    left = states.get_model_state_dict(
        net, options=states.StateDictOptions(ignore_frozen_params=True)
    )
    empty = torch.nn.Linear(3, 2)
    loaded = states.set_model_state_dict(
        empty,
        {"weight": torch.ones(2, 3)},
        options=states.StateDictOptions(strict=False),
    )
    told = [told, list(model_state), list(keys), list(left), dict(again.state_dict()),
            list(loaded), empty.weight]  # fmt: skip
    return torch.utils._pytree.tree_map(
        lambda v: tuple(v.flatten().tolist()) if hasattr(v, "tolist") else v, told
    )


def test_states_by_names_are_those_of_torch():
    torch = pytest.importorskip("torch", reason="torch is the oracle")
    from torch.distributed.checkpoint import state_dict as theirs

    mine, its = run(mindtorch, ours), run(torch, theirs)
    (a, shape), (b, other) = (mindtorch.utils._pytree.tree_flatten(t) for t in (mine, its))
    assert str(shape) == str(other)
    assert [v for v in a if not isinstance(v, float)] == [v for v in b if not isinstance(v, float)]
    floats = [[v for v in leaves if isinstance(v, float)] for leaves in (a, b)]
    assert floats[0] == pytest.approx(floats[1], rel=1e-4, abs=1e-5)


def test_options_that_need_others_are_refused():
    options = ours.StateDictOptions(broadcast_from_rank0=True)
    with pytest.raises(ValueError, match="full_state_dict"):
        ours.get_model_state_dict(mindtorch.nn.Linear(2, 2), options=options)


def test_a_model_on_meta_takes_the_tensors_of_a_full_state():
    empty = mindtorch.nn.Linear(3, 2, device="meta")
    state = {"weight": mindtorch.ones(2, 3), "bias": mindtorch.zeros(2)}
    whole = ours.StateDictOptions(full_state_dict=True)
    assert not any(ours.set_model_state_dict(empty, state, options=whole))
    assert empty.weight.tolist() == [[1.0] * 3] * 2
