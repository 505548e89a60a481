"""Owns torch.multiprocessing: the standard library's, whose queues carry pickled tensors."""

from multiprocessing import *  # noqa: F403
from multiprocessing import get_context, get_start_method, set_start_method
from typing import Any


def spawn(
    fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False, **_: object
) -> Any:
    """Run `fn(rank, *args)` in `nprocs` new processes; RuntimeError when one fails."""
    context = get_context("spawn")
    workers = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for worker in workers:
        worker.start()
    if not join:
        return workers
    for worker in workers:
        worker.join()
    failed = [i for i, w in enumerate(workers) if w.exitcode]
    if failed:
        raise RuntimeError(f"spawn: processes {failed} ended with an error; see their output")
    return None


__all__ = ["get_context", "get_start_method", "set_start_method", "spawn"]
