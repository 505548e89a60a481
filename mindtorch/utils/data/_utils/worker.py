"""torch.utils.data._utils.worker: what a worker process knows of itself."""

from typing import Any

from .. import _worker
from .._worker import WorkerInfo, _generate_state, get_worker_info

__all__ = ["WorkerInfo", "_generate_state", "get_worker_info"]


def __getattr__(name: str) -> Any:
    if name == "_worker_info":
        return _worker._info
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
