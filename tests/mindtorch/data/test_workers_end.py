"""Worker processes of a DataLoader end with whoever started them, however that ends."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from mindtorch.utils.data import DataLoader, Dataset

_PROGRAM = """
import signal
import time
import mindtorch as torch

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
data = torch.utils.data.TensorDataset(torch.arange(1000.0))
batches = iter(torch.utils.data.DataLoader(data, num_workers=2))
next(batches)
print(*[process.pid for process in batches._workers.processes], flush=True)
time.sleep(100)
"""


class Numbers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return index


def living(pids):
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked up in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_a_killed_parent(how):
    command = [sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        parent.send_signal(how)
        parent.wait()
    until = time.monotonic() + 60
    while living(pids) and time.monotonic() < until:
        time.sleep(0.1)
    left = living(pids)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert (len(pids), left) == (2, [])


def test_workers_that_were_started_end_where_another_cannot_start(monkeypatch):
    started = []
    start = multiprocessing.Process.start

    def second_fails(process):
        if started:
            raise KeyboardInterrupt
        start(process)
        started.append(process)

    monkeypatch.setattr(multiprocessing.Process, "start", second_fails)
    with pytest.raises(KeyboardInterrupt):
        iter(DataLoader(Numbers(), num_workers=2))
    started[0].join(30)
    assert not started[0].is_alive()


def test_persistent_workers_end_with_their_loader():
    loader = DataLoader(Numbers(), num_workers=2, persistent_workers=True)
    assert len(list(loader)) == len(list(loader)) == 64
    processes = loader._workers.processes
    assert all(process.is_alive() for process in processes)
    del loader
    assert not any(process.is_alive() for process in processes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_that_drops_an_iterator_ends_none_of_its_parent_s_workers():
    batches = iter(DataLoader(Numbers(), num_workers=1))
    next(batches)
    child = os.fork()
    if child == 0:
        del batches
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(batches)) == 63
