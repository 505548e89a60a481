"""torch.__config__: how this library was made."""

from __future__ import annotations

import numpy

__all__ = ["parallel_info", "show"]


def show() -> str:
    """What computes on cpu and on npu."""
    from mindtorch.version import __version__ as version

    return f"mindtorch {version}\n  - cpu: numpy {numpy.__version__}\n  - npu: ACLNN through cffi\n"


def parallel_info() -> str:
    """Threads that torch's settings name; numpy's BLAS chooses its own."""
    from mindtorch._functional.publish import function
    from mindtorch._tensor.loading import load

    load()
    return f"ATen/Parallel:\n\tat::get_num_threads() : {function('get_num_threads')()}\n"
