"""FullyShardedDataParallel and stages: losses and parts are torch's, states of one network."""

import importlib
import json
from pathlib import Path

import pytest
from agreement import agree

import mindtorch as torch
import mindtorch.distributed as dist
from mindtorch import nn
from mindtorch.distributed import pipelining
from mindtorch.distributed.checkpoint.state_dict import get_optimizer_state_dict
from mindtorch.distributed.fsdp import FullyShardedDataParallel
from mindtorch.distributed.fsdp.wrap import ModuleWrapPolicy
from mindtorch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from tests.mindtorch.distributed.test_distributed import run

WRAPS = Path(__file__).parent / "wraps.py"


def ranks(what, library="mindtorch"):
    """What each of two ranks tells."""
    codes, outputs, errors = run(what, "", 2, WRAPS, LIBRARY=library)
    assert codes == [0, 0], errors
    return [json.loads(out.splitlines()[-1]) for out in outputs]


@pytest.fixture
def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("original", [False, True])
def test_a_wrapped_network_learns_as_it_does_by_itself(alone, original):
    def network():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 5), nn.Sequential(nn.ReLU(), nn.Linear(5, 2)))

    plain = network()
    policy = ModuleWrapPolicy({nn.Linear})
    model = FullyShardedDataParallel(network(), auto_wrap_policy=policy, use_orig_params=original)
    pairs = [(m, torch.optim.AdamW(m.parameters(), lr=0.1)) for m in (plain, model)]
    for _ in range(3):
        losses = []
        for m, optimizer in pairs:
            loss = m(torch.arange(6.0).view(2, 3)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    state = model.state_dict()
    assert list(state) == list(plain.state_dict())
    for name, value in plain.state_dict().items():
        assert value.flatten().tolist() == pytest.approx(state[name].flatten().tolist(), rel=1e-4)
    told = [get_optimizer_state_dict(m, optimizer)["state"] for m, optimizer in pairs]
    assert sorted(told[0]) == sorted(told[1])
    for name, values in told[0].items():
        for key, value in values.items():
            other = told[1][name][key]
            assert value.shape == other.shape
            assert value.flatten().tolist() == pytest.approx(other.flatten().tolist(), rel=1e-3)
    assert not any(model.load_state_dict({k: v * 0 for k, v in state.items()}))
    assert model(torch.ones(1, 3)).tolist() == [[0.0, 0.0]]


def test_wrapping_refuses_what_it_cannot_hold(alone):
    with pytest.raises(TypeError, match="sharding_strategy"):
        FullyShardedDataParallel(nn.Linear(2, 2), sharding_strategy=3)
    inner = nn.Sequential(FullyShardedDataParallel(nn.Linear(2, 2)))
    with pytest.raises(ValueError, match="already have FSDP applied but found 0"):
        FullyShardedDataParallel(inner, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    mixed = nn.Linear(2, 2)
    mixed.bias.requires_grad_(False)
    with pytest.raises(ValueError, match="uniform `requires_grad`"):
        FullyShardedDataParallel(mixed)
    with pytest.raises(ValueError, match="uniform dtype"):
        FullyShardedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()))


@pytest.mark.slow
def test_states_of_parts_are_those_of_one_network():
    told = ranks("states")
    for rank, states in enumerate(told):
        for place, (shapes, names, kind, _, squares) in enumerate(states):
            assert ["head.weight", [2, 4]] in shapes
            assert bool(names) == (rank == 0)
            assert kind == "DTensor"
            whole = place == 2  # where nothing is sharded both ranks have all gradients
            assert squares == pytest.approx(0.5 if whole else 0.25, rel=1e-3)
        assert [s[3] for s in states] == [states[0][3]] * 5


@pytest.mark.parametrize("schedule", [ScheduleGPipe, Schedule1F1B])
def test_a_batch_in_parts_has_the_gradients_of_the_whole(alone, schedule):
    torch.manual_seed(0)
    net, x, y = nn.Linear(3, 2), torch.randn(8, 3), torch.randn(8, 2)
    nn.functional.mse_loss(net(x), y).backward()
    expected = net.weight.grad.flatten().tolist()
    net.zero_grad()
    pipe = schedule(PipelineStage(net, 0, 1, torch.device("cpu")), 4, nn.functional.mse_loss)
    losses = []
    out = pipe.step(x, target=y, losses=losses)
    assert out.flatten().tolist() == pytest.approx(net(x).flatten().tolist())
    assert len(losses) == 4
    assert net.weight.grad.flatten().tolist() == pytest.approx(expected, rel=1e-5)
    assert pipe.eval(x).grad_fn is None


def test_a_model_is_cut_where_its_trace_says(alone):
    class Halves(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)
            self.scale = nn.Parameter(torch.ones(4) * 2)

        def forward(self, x):
            return self.second(torch.tanh(self.first(x)) * self.scale)

    net, x = Halves(), torch.randn(4, 3)
    pipe = pipelining.pipeline(net, (x,), split_spec={"second": pipelining.SplitPoint.BEGINNING})
    stages = [dict(pipe.get_stage_module(i).named_parameters()) for i in range(pipe.num_stages)]
    assert [sorted(s) for s in stages] == [
        ["first.bias", "first.weight", "scale"], ["second.bias", "second.weight"],
    ]  # fmt: skip
    assert stages[0]["scale"] is net.scale
    assert torch.equal(pipe(x), net(x))
    with pytest.raises(RuntimeError, match="cannot capture your model"):
        pipelining.pipeline(nn.Sequential(Branch()), (x,))


class Branch(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


def test_batches_are_cut_and_merged_as_torchs():
    def run(t):
        m = importlib.import_module(f"{t.__name__}.distributed.pipelining.microbatch")
        x, spec = t.arange(10.0).view(5, 2), m.TensorChunkSpec
        told = []
        for args, kwargs, count, *specs in (
            ((x, 3), {"y": x.t(), "k": None}, 2), ((x,), None, 9), ((), {"y": x}, 3),
            ((x,), {"y": x}, 2, (spec(1),), {"y": spec(0)}), (({"a": x, "b": [x, "s"]},), {}, 2),
            ((x, 3), {}, 2, (spec(0), spec(0))), ((x,), {}, 2, (spec(0), spec(0))),
        ):  # fmt: skip
            try:
                parts, named = m.split_args_kwargs_into_chunks(args, kwargs, count, *specs)
                told.append(str((parts, named)))
            except (AssertionError, ValueError) as error:
                told.append((type(error).__name__, str(error)))
        told.append(str(m.merge_chunks([x, x], None)))
        told.append(str(m.merge_chunks([(x, 1), (x, 1)], (spec(1), None))))
        told.append((str(spec.from_tuple((0, 1))[1]), str(spec.from_dict({"a": 1})["a"])))
        with pytest.raises(ValueError, match="did not match chunk spec"):
            m.merge_chunks([(x, 1), (x,)], (spec(1), None))
        with pytest.raises(AssertionError, match="Expected 1, got 2"):
            m.merge_chunks([(x, 1), (x, 2)], (spec(1), None))
        return told

    agree(run)


@pytest.mark.slow
def test_stages_compute_what_those_of_torch_do():
    pytest.importorskip("torch", reason="torch is the oracle")
    assert ranks("stages") == ranks("stages", "torch")


@pytest.mark.slow
def test_losses_and_parts_are_those_of_torch():
    """Half a minute: `pytest -m slow tests/mindtorch/distributed`."""
    pytest.importorskip("torch", reason="torch is the oracle")
    assert ranks("losses") == ranks("losses", "torch")
