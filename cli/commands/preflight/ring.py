"""Checks HCCL and the links between devices: one process a device, started by `preflight`.

`python -m mindtorch_npu.commands.preflight.ring HOME SIMULATOR` with RANK, WORLD_SIZE, MASTER_ADDR
and MASTER_PORT. Every rank sends a pattern of bits to the next one, and all reduce numbers whose
sum is known exactly; it prints a JSON list of what was wrong.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from typing import Any, Final

import numpy as np

_ELEMENTS: Final = 1 << 16
_SECONDS: Final = 60


def pattern(rank: int) -> Any:
    """The numbers that a rank sends: every bit of a word is 0 and 1 in many of them."""
    return np.random.default_rng(rank).integers(-(1 << 31), 1 << 31, _ELEMENTS).astype(np.int32)


def check(rank: int, size: int) -> list[str]:
    """What is wrong with the link from the rank before, and with a sum over all."""
    import mindtorch as torch
    from mindtorch import distributed

    wrong = []
    before, after = (rank - 1) % size, (rank + 1) % size
    own = torch.from_numpy(pattern(rank)).to(f"npu:{rank}")
    received = torch.zeros(_ELEMENTS, dtype=torch.int32).to(f"npu:{rank}")
    # Sends wait for who receives: not every rank may begin with one.
    if rank % 2:
        distributed.recv(received, before)
        distributed.send(own, after)
    else:
        distributed.send(own, after)
        distributed.recv(received, before)
    words = int((received.cpu().numpy() != pattern(before)).sum())
    if words:
        wrong.append(f"link npu:{before} → npu:{rank}: {words:,} of {_ELEMENTS:,} words differ")
    # Whole numbers this small have exact sums in float32, in any order.
    summed = torch.full((_ELEMENTS,), float(rank + 1)).to(f"npu:{rank}")
    distributed.all_reduce(summed)
    words = int((summed.cpu().numpy() != size * (size + 1) / 2).sum())
    if words:
        wrong.append(f"all_reduce at npu:{rank}: {words:,} of {_ELEMENTS:,} sums are wrong")
    return wrong


def main() -> int:
    import aclnn_bindings
    import mindtorch as torch
    from mindtorch import distributed
    from mindtorch.npu import install

    home, simulator = sys.argv[1] or None, sys.argv[2] == "1"
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    install.use(aclnn_bindings.open(home, simulator=simulator))
    torch.npu.set_device(rank)
    distributed.init_process_group("hccl", timeout=timedelta(seconds=_SECONDS))
    print(json.dumps(check(rank, size)), flush=True)
    distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
