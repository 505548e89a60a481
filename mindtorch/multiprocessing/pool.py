"""torch.multiprocessing.pool: the standard library's pool; arguments and results may be tensors.

Its queues pickle by ForkingPickler, which `mindtorch.multiprocessing` tells of tensors.
"""

import gc
from multiprocessing import pool
from multiprocessing.pool import Pool
from typing import Any

__all__ = ["Pool", "clean_worker"]


def clean_worker(*args: Any, **kwargs: Any) -> None:
    """What a pool's process runs; what it held goes before the process does."""
    vars(pool)["worker"](*args, **kwargs)
    gc.collect()
