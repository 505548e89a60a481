"""torch.multiprocessing.reductions: how tensors and storages are pickled for other processes."""

from __future__ import annotations

import os
from multiprocessing.reduction import ForkingPickler

from .._functional.sharing import rebuild_tensor, reduce_tensor, send_shared
from .._tensor.tensor import Tensor
from ..nn.parameter import Parameter

__all__ = [
    "ForkingPickler", "fd_id", "init_reductions", "rebuild_tensor",
    "reduce_tensor",
]  # fmt: skip


def fd_id(fd: int) -> tuple[int, int]:
    """What tells a descriptor's file from others: its number and its device's."""
    state = os.fstat(fd)
    return state.st_ino, state.st_dev


def init_reductions() -> None:
    """Let pipes and queues carry tensors by memory, as importing torch.multiprocessing does."""
    send_shared(Tensor, Parameter)
