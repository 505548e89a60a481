"""Processes as ranks: collectives on cpu and npu, DDP's losses against those of one process."""

import itertools
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch as torch
import mindtorch.distributed as dist
from aclnn_bindings.install.library import bundled_simulator
from mindtorch.distributed.algorithms.ddp_comm_hooks import default_hooks
from mindtorch.utils.data import DistributedSampler

RANKS = Path(__file__).parent / "ranks.py"
AGREE = Path(__file__).parent / "agree.py"
simulated = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


def run(what, device, size, script=RANKS, **variables):
    """(exit codes, outputs, errors) of `size` processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(size):
        environ = {
            **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank),
            "WORLD_SIZE": str(size), "ACLSIM_DEVICES": str(size), "ACLSIM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **variables,
        }  # fmt: skip
        ranks.append(subprocess.Popen(
            [sys.executable, str(script), what, device], env=environ, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ))  # fmt: skip
    told = [rank.communicate(timeout=200) for rank in ranks]
    return [r.returncode for r in ranks], [o for o, _ in told], [e for _, e in told]


def losses(device, size):
    codes, outputs, errors = run("train", device, size)
    assert codes == [0] * size, errors
    return [float(line) for line in outputs[0].split()]


@pytest.mark.parametrize(
    ("device", "size"),
    [("cpu", 2), pytest.param("npu", 2, marks=simulated),
     pytest.param("npu", 3, marks=[simulated, pytest.mark.slow])],
)  # fmt: skip
def test_collectives_give_what_they_must(device, size):
    codes, outputs, errors = run("calls", device, size)
    assert codes == [0] * size, errors
    assert outputs == ["ok\n"] * size


@simulated
def test_ddp_on_two_npus_gives_the_losses_of_one():
    one, two = losses("npu", 1), losses("npu", 2)
    assert len(one) == 5
    assert len(set(one)) == 5
    assert two == pytest.approx(one, rel=2e-6)


@simulated
@pytest.mark.slow
@pytest.mark.parametrize(("device", "size"), [("npu", 4), ("cpu", 2), ("cpu", 4)])
def test_ddp_gives_the_losses_of_one(device, size):
    """About a minute: `pytest -m slow tests/mindtorch/distributed`."""
    assert losses(device, size) == pytest.approx(losses("npu", 1), rel=2e-6)


def agreed(library, size=3):
    """What every rank of `agree.py` tells."""
    codes, outputs, errors = run("", "", size, AGREE, LIBRARY=library)
    assert codes == [0] * size, errors
    return [json.loads(out.splitlines()[-1]) for out in outputs]


def test_groups_points_and_objects_give_what_they_must():
    told = agreed("mindtorch")
    assert told[0]["in a pair"] == told[2]["in a pair"] == [4.0, 4.0]
    assert told[1]["in a pair"] == [2.0, 2.0]  # not in it: nothing happens
    assert [t["ranks"] for t in told] == [[0, 2, 0, 0], [-1, -1, 1, 1], [1, 2, 2, 2]]
    assert told[0]["irecv"] == [[True, True], [[5.0, 5.0], [6.0, 6.0]], [3.0]]
    assert told[0]["recv"] == [2, [2.0, 2.0]]
    assert [t["mesh pair"] for t in told] == [[0, 2, [2, 0]], None, [1, 2, [2, 0]]]
    assert [t["mesh data"] for t in told] == [[6.0, 6.0]] * 3
    assert [t["async"][1][7] for t in told] == [[24.0] * 3] * 3
    assert [t["scatter_object_list"] for t in told] == [[["a"]], [["b"]], [["c"]]]
    assert [t["all_reduce BXOR int32"] for t in told] == [
        [1 ^ 2 ^ 3, 2 ^ 3 ^ 4, 3 ^ 4 ^ 5, 4 ^ 5 ^ 6, 5 ^ 6 ^ 7, 1 ^ 2 ^ 3]
    ] * 3
    assert told[1]["all_reduce flows"] == [[[6.0, 12.0]], [108.0, 216.0]]
    assert [t["permute_tensor gives"][2][0] for t in told] == [2.0, 0.0, 1.0]
    plain, bucket = told[0]["DDP plain"], told[0]["DDP bucket"]
    assert plain == bucket
    assert plain[0][0] != plain[0][3]
    joined = [t["joined True"] for t in told]
    assert joined[0][0] == joined[1][0] == joined[2][0] != told[0]["joined False"][0]
    assert [len(state) for _, _, state in joined] == [0, 4, 0]
    assert told[0]["power 1 {}"] == told[2]["power 1 {}"] != told[0]["kind ALLREDUCE"]
    assert [row[2] for row in told[0]["buckets {'bucket_cap_mb': 0.0001}"]] == [129, *[81, 48] * 3]
    assert told[1]["reduced together"][0] == [3.0, 6.0, 9.0, 12.0, 15.0, 18.0]


@pytest.mark.slow
def test_values_and_refusals_are_those_of_torch_with_gloo():
    """Half a minute: `pytest -m slow tests/mindtorch/distributed`."""
    pytest.importorskip("torch", reason="torch is the oracle")
    own, torchs = agreed("mindtorch"), agreed("torch")
    assert len(torchs[0]) > 150
    for mine, theirs in zip(own, torchs, strict=True):
        # gloo gathers no complex numbers.
        odd = {k: (mine.get(k), theirs.get(k)) for k in mine | theirs
               if mine.get(k) != theirs.get(k) and k != "gather complex64"}  # fmt: skip
        assert not odd


def test_a_silent_rank_is_named_after_the_time_limit():
    codes, outputs, errors = run("silent", "cpu", 2)
    assert codes == [0, 0], errors
    assert outputs[0].splitlines() == [
        "all_reduce SUM: rank 1 is gone or silent: nothing came for 1 s",
        "send 0: rank 1 is gone or silent: nothing came for 0.2 s",
    ]


@pytest.mark.parametrize("device", [
    pytest.param("cpu", marks=pytest.mark.slow), pytest.param("npu", marks=simulated),
])  # fmt: skip
def test_pairs_of_four_reduce_and_exchange_apart(device):
    codes, outputs, errors = run("groups", device, 4)
    assert codes == [0] * 4, errors
    assert outputs == [
        "[3.0, 3.0, 3.0] [0.0, 10.0] 1.5\n", "[3.0, 3.0, 3.0] [1.0] 1.5\n",
        "[7.0, 7.0, 7.0] [20.0, 30.0] 1.5\n", "[7.0, 7.0, 7.0] [21.0] 1.5\n",
    ]  # fmt: skip


@pytest.mark.slow
def test_torchrun_launches_it():
    """Its agent keeps a store at MASTER_PORT; ranks meet behind it."""
    pytest.importorskip("torch", reason="torchrun comes with torch")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
               "3", str(RANKS), "launched", "cpu"]  # fmt: skip
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
               "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"{r} {r} 3.0 {r}" for r in range(3)]


@pytest.mark.slow
def test_sampler_gives_torchs_shares():
    torchs = pytest.importorskip("torch.utils.data.distributed", reason="torch is the oracle")
    for size, count, shuffle, drop in itertools.product(
        (0, 1, 5, 17, 100), (1, 2, 3, 7), (False, True), (False, True)
    ):
        for rank in range(count):
            words = (range(size), count, rank, shuffle, 2, drop)
            mine, theirs = DistributedSampler(*words), torchs.DistributedSampler(*words)
            mine.set_epoch(3)
            theirs.set_epoch(3)
            assert (list(mine), len(mine)) == (list(theirs), len(theirs))


def test_ranks_that_call_different_things_are_told():
    codes, _, errors = run("mismatch", "cpu", 2)
    assert codes == [1, 1]
    assert "rank 0 calls all_reduce SUM" in errors[0]
    assert "rank 1 calls all_gather" in errors[0]


def test_rank_that_left_is_named():
    codes, _, errors = run("leave", "cpu", 2)
    assert codes == [1, 0]
    assert "all_reduce SUM: rank 1 is gone or silent" in errors[0]


def test_unused_parameters_need_to_be_allowed():
    codes, outputs, errors = run("unused", "cpu", 2)
    assert codes == [0, 0], errors
    assert all("find_unused_parameters=True" in out for out in outputs)


@pytest.fixture
def alone(monkeypatch):
    """A group of one."""
    dist.init_process_group("gloo", "tcp://127.0.0.1:1", world_size=1, rank=0)
    yield
    dist.destroy_process_group()


def test_group_of_one_changes_nothing(alone):
    tensor = torch.arange(3.0)
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    assert tensor.tolist() == [0.0, 1.0, 2.0]
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")


def test_backends_are_told_by_devices(alone):
    assert dist.get_backend_config() in ("cpu:gloo,npu:gloo", "cpu:gloo,npu:hccl")
    for name, shown in (("gloo", "cpu:gloo,npu:gloo"), ("cpu:gloo", "cpu:gloo")):
        config = dist.BackendConfig(dist.Backend(name))
        assert str(config) == shown
        assert ",".join(map(":".join, config.get_device_backend_map().items())) == shown
    for wrong in ("cpu:gloo,cpu:gloo", "cpu:gloo:x"):
        with pytest.raises(ValueError, match="Invalid"):
            dist.BackendConfig(wrong)


def test_second_group_is_refused(alone):
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo", "tcp://127.0.0.1:1", world_size=1, rank=0)


def unused_in_turn():
    """Two steps of a model whose second layer takes no part."""

    class First(torch.nn.Sequential):
        def forward(self, x):
            return self[0](x)

    model = First(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
    model = torch.nn.parallel.DistributedDataParallel(model)
    for _ in range(2):
        model(torch.ones(1, 1)).sum().backward()


def test_bad_arguments_are_named(alone):
    with pytest.raises(TypeError, match="op 'XOR': expected one of SUM"):
        dist.all_reduce(torch.ones(1), op="XOR")
    with pytest.raises(ValueError, match="AVG needs floating point"):
        dist.all_reduce(torch.ones(1, dtype=torch.int64), op="AVG")
    one = torch.ones(1)
    for call, error, says in (
        (lambda: dist.all_gather([one] * 2, one), RuntimeError,
         "ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length 1"),
        (lambda: dist.all_gather([torch.ones(2)], one), RuntimeError,
         "ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected (1), got (2))"),
        (lambda: dist.all_reduce(one, group="other"), ValueError,
         "Process group other is not initialized in the world group map."),
        (lambda: dist.all_reduce([1.0]), TypeError,
         "Invalid function argument. Expected parameter `tensor` of type torch.Tensor"),
        (lambda: dist.broadcast(one, 3), RuntimeError,
         "ProcessGroupGloo::broadcast: invalid root rank: 3"),
        (lambda: dist.gather(one, [one], 3), ValueError,
         "Argument ``gather_list`` must NOT be specified on non-destination ranks."),
        (lambda: dist.scatter(one, [one] * 2), RuntimeError,
         "ProcessGroupGloo::scatter: Incorrect input list size 2. Input list size should be 1"),
        (lambda: dist.new_group([0, 1]), ValueError, "the new group's world size should be less"),
        (lambda: dist.new_group([1]), ValueError, "Rank 1 is out of range. Valid ranks are 0 to 0"),
        (lambda: dist.broadcast(one), ValueError, "Must specify global_rank or group_rank"),
        (lambda: dist.all_gather_into_tensor(torch.ones(3), torch.ones(2)), RuntimeError,
         "ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected (2), got (3))"),
        (lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1), [0]), ValueError,
         "DistributedDataParallel device_ids and output_device arguments only work with"),
        (lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.LazyLinear(1)), RuntimeError,
         "Modules with uninitialized parameters can't be used with `DistributedDataParallel`."),
        (lambda: unused_in_turn(), RuntimeError,
         "Parameter indices which did not receive grad for rank 0: 2 3"),
        (lambda: dist.all_reduce(one, dist.ReduceOp.BAND), RuntimeError,
         "Cannot use ReduceOp.BAND with non-integral dtype"),
    ):  # fmt: skip
        with pytest.raises(error, match=re.escape(says)):
            call()
    with pytest.raises(RuntimeError, match="No backend type associated with device type meta"):
        dist.all_reduce(torch.ones(1, device="meta"))


ALONE = {"init_method": "tcp://localhost:1", "world_size": 1, "rank": 0}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"backend": "nccl", **ALONE}, "Distributed package doesn't have NCCL built in"),
        ({"backend": "foo", **ALONE}, "Unknown backend type foo"),
        ({"backend": "foo"}, "RANK expected, but not set"),
        ({"init_method": "ftp:///x"}, "No rendezvous handler for ftp://"),
        ({"init_method": "tcp://h:1", "world_size": 2, "rank": 2}, "rank 2: expected 0 to 1"),
        ({"world_size": 1, "rank": 0}, "MASTER_ADDR expected, but not set"),
        ({}, "RANK expected, but not set"),
    ],
)
def test_bad_groups_are_refused(words, says, monkeypatch):
    for name in ("MASTER_ADDR", "RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises((ValueError, RuntimeError, AssertionError), match=says):
        dist.init_process_group(**words)


def test_gradients_are_sent_by_a_hook(alone):
    seen = []

    def hook(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        seen.append((bucket.index(), bucket.is_last(), [g.shape for g in bucket.gradients()]))
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda future: future.value()[0] * state)

    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    model.register_comm_hook(3.0, hook)
    model(torch.ones(1, 2)).sum().backward()
    assert seen == [(0, True, [(1, 2), (1,)])]
    assert [p.grad.tolist() for p in model.parameters()] == [[[3.0, 3.0]], [3.0]]
    with pytest.raises(RuntimeError, match="can only be called once"):
        model.register_comm_hook(None, hook)
    for name in ("allreduce_hook", "fp16_compress_hook"):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        model.register_comm_hook(None, getattr(default_hooks, name))
        model(torch.full((1, 2), 1.001)).sum().backward()
        assert round(model.module.weight.grad[0, 0].item(), 3) == 1.001


def test_meeting_nobody_says_where():
    with pytest.raises(dist.DistributedError, match=r"rank 1 of 2 could not meet .*127\.0\.0\.1:1"):
        dist.init_process_group("gloo", "tcp://127.0.0.1:1", 0.2, 2, 1)


def test_sampler_takes_the_groups_rank_and_size(alone):
    sampler = DistributedSampler(range(5), shuffle=False)
    assert list(sampler) == [0, 1, 2, 3, 4]


def test_before_a_group_ranks_are_refused():
    assert dist.is_available()
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.get_rank()
