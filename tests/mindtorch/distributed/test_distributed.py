"""Processes as ranks: collectives on cpu and npu, DDP's losses against those of one process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch as torch
import mindtorch.distributed as dist
from aclnn_bindings.install.library import bundled_simulator
from mindtorch.utils.data import DistributedSampler

RANKS = Path(__file__).parent / "ranks.py"
simulated = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


def run(what, device, size):
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
            "OPENBLAS_NUM_THREADS": "1",
        }  # fmt: skip
        ranks.append(subprocess.Popen(
            [sys.executable, str(RANKS), what, device], env=environ, text=True,
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


def test_second_group_is_refused(alone):
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo", "tcp://127.0.0.1:1", world_size=1, rank=0)


def test_bad_arguments_are_named(alone):
    with pytest.raises(ValueError, match="op 'XOR': expected one of SUM"):
        dist.all_reduce(torch.ones(1), op="XOR")
    with pytest.raises(ValueError, match="AVG needs floating point"):
        dist.all_reduce(torch.ones(1, dtype=torch.int64), op="AVG")
    with pytest.raises(ValueError, match="2 tensors were given, expected 1"):
        dist.all_gather([torch.ones(1)] * 2, torch.ones(1))
    with pytest.raises(NotImplementedError, match="no subgroups"):
        dist.all_reduce(torch.ones(1), group="other")
    with pytest.raises(ValueError, match="no way for tensors on meta"):
        dist.all_reduce(torch.ones(1, device="meta"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"backend": "nccl"}, "expected one of gloo, hccl"),
        ({"init_method": "file:///x"}, "expected env:// or tcp://"),
        ({"init_method": "tcp://h:1", "world_size": 2, "rank": 2}, "rank 2: expected 0 to 1"),
        ({}, "MASTER_ADDR expected, but not set"),
    ],
)
def test_bad_groups_are_refused(words, says, monkeypatch):
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(ValueError, match=says):
        dist.init_process_group(**words)


def test_meeting_nobody_says_where():
    with pytest.raises(dist.DistributedError, match=r"rank 1 of 2 could not meet .*127\.0\.0\.1:1"):
        dist.init_process_group("gloo", "tcp://127.0.0.1:1", 0.2, 2, 1)


def test_sampler_takes_the_groups_rank_and_size(alone):
    sampler = DistributedSampler(range(5), shuffle=False)
    assert list(sampler) == [0, 1, 2, 3, 4]


def test_before_a_group_ranks_are_refused_and_launchers_are_seen(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert not dist.is_available()
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.get_rank()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert dist.is_available()
