"""Checks HCCL and the links between devices: one process a device, started by `preflight`.

`python -m mindtorch_npu.commands.preflight.ring HOME SIMULATOR DEVICE` with RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT. Every rank sends patterns of bits to the next one, and all reduce
numbers whose sum is known exactly; after each step it prints a line of JSON with what was wrong.
While nothing comes, a rank goes on with copies of its own, and prints how many it has done: they
show that the host let it run.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import numpy as np

from ...conformance.run.cann_words import one_line
from .links import COPIES_A_LINE

_ELEMENTS: Final = 1 << 16
_SECONDS: Final = 60
_ROUNDS: Final = 32  # a link that corrupts one message in ten escapes three times in a hundred
_PAUSE: Final = 0.002


def pattern(rank: int) -> Any:
    """The numbers that a rank sends: every bit of a word is 0 and 1 in many of them."""
    return np.random.default_rng(rank).integers(-(1 << 31), 1 << 31, _ELEMENTS).astype(np.int32)


def wait_for(done: Any, device: str, number: int) -> None:
    """Wait for the event of a round; between two looks at it copy something on another stream."""
    import mindtorch as torch

    copies, since, own, stream = 0, time.monotonic(), torch.zeros(16), torch.npu.Stream(device)
    while not done.query():
        with torch.npu.stream(stream):
            own.to(device).cpu()
        copies += 1
        if copies % COPIES_A_LINE == 0:
            say("waits", round=number, since=since)
        time.sleep(_PAUSE)


def link(rank: int, size: int, device: str) -> list[str]:
    """What is wrong with the link from the rank before."""
    import mindtorch as torch
    from mindtorch import distributed

    before, after = (rank - 1) % size, (rank + 1) % size
    own = torch.from_numpy(pattern(rank)).to(device)
    received = torch.zeros(_ELEMENTS, dtype=torch.int32).to(device)
    expected, words, rounds = pattern(before), 0, 0
    # Together, so that one link in which nothing moves holds up none but its own two ranks.
    both = [distributed.P2POp(distributed.isend, own, after),
            distributed.P2POp(distributed.irecv, received, before)]  # fmt: skip
    for number in range(_ROUNDS):
        try:
            distributed.batch_isend_irecv(both)
            done = torch.npu.Event()
            done.record()
            wait_for(done, device, number)
            differing = int((received.cpu().numpy() != expected).sum())
        except Exception as error:
            say("failed", round=number, error=one_line(error))
            raise
        words, rounds = words + differing, rounds + (differing > 0)
    if not words:
        return []
    return [f"rank {before}: {words:,} words of {rounds} of {_ROUNDS} messages differ"]


def total(rank: int, size: int, device: str) -> list[str]:
    """What is wrong with a sum over all ranks."""
    import mindtorch as torch
    from mindtorch import distributed

    # Whole numbers this small have exact sums in float32, in any order.
    summed = torch.full((_ELEMENTS,), float(rank + 1)).to(device)
    distributed.all_reduce(summed)
    words = int((summed.cpu().numpy() != size * (size + 1) / 2).sum())
    if not words:
        return []
    return [f"all_reduce at {device}: {words:,} of {_ELEMENTS:,} sums are wrong"]


def say(step: str, wrong: Sequence[str] = (), **more: float | str) -> None:
    """Tell at once that a step is over: whoever waits for the next one may wait in vain."""
    line = {"step": step, "at": time.monotonic(), "wrong": list(wrong), **more}
    print(json.dumps(line), flush=True)


def main() -> int:
    import aclnn_bindings
    import mindtorch as torch
    from mindtorch import distributed
    from mindtorch.npu import install

    home, simulator, device = sys.argv[1] or None, sys.argv[2] == "1", sys.argv[3]
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    install.use(aclnn_bindings.open(home, simulator=simulator))
    torch.npu.set_device(device)
    distributed.init_process_group("hccl", timeout=timedelta(seconds=_SECONDS))
    say("ready")
    say("link", link(rank, size, device))
    say("sum", total(rank, size, device))
    distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
