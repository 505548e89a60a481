"""A wait is for what was queued when it began, also while another thread goes on queueing."""

import threading
from collections.abc import Callable, Iterator

import pytest

import mindtorch as torch

MATRIX = 450  # a product of them takes the simulator some 6 ms
BATCH, BATCHES = 12, 30


class Feeder:
    """A thread that keeps the default stream busy with products, one to two batches ahead."""

    def __init__(self) -> None:
        self.batches = 0
        self.stop = threading.Event()
        self.is_ahead = threading.Event()
        self._thread = threading.Thread(target=self._feed)
        self._thread.start()

    def _feed(self) -> None:
        x = torch.ones(MATRIX, MATRIX, device="npu")
        ends: list[torch.npu.Event] = []
        while self.batches < BATCHES and not self.stop.is_set():
            for _ in range(BATCH):
                x @ x
            ends.append(torch.npu.Event())
            ends[-1].record()
            self.batches += 1
            if self.batches > 2:
                self.is_ahead.set()
                ends[-2].synchronize()

    def close(self) -> None:
        self.stop.set()
        self._thread.join()


@pytest.fixture
def feeder() -> Iterator[Feeder]:
    feeder = Feeder()
    feeder.is_ahead.wait()
    yield feeder
    feeder.close()
    torch.npu.synchronize()


WAITS: dict[str, Callable[[torch.Tensor], object]] = {
    "a read": lambda y: y.tolist(),
    "the stream": lambda _: torch.npu.current_stream().synchronize(),
    "the device": lambda _: torch.npu.synchronize(),
}


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_ends_while_another_thread_feeds_the_stream(wait: str, feeder: Feeder) -> None:
    WAITS[wait](torch.ones(2, device="npu"))
    assert feeder.batches < BATCHES


@pytest.mark.parametrize("wait", WAITS)
def test_a_failure_before_the_wait_is_raised_by_it(wait: str, feeder: Feeder) -> None:
    y = torch.arange(4.0, device="npu")
    y.index_select(0, torch.tensor([99.0]).npu().long())  # the device alone knows it
    with pytest.raises(RuntimeError, match="value 99 in index is out of range"):
        WAITS[wait](y)
    assert feeder.batches < BATCHES
    feeder.close()
    torch.npu.restart_device(0)
