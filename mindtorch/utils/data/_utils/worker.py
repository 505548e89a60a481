"""torch.utils.data._utils.worker: what a worker process knows of itself."""

from .._worker import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]
