"""torch.functional: functions of torch under the module that they are written in."""

from __future__ import annotations

from typing import Any

from ._functional.publish import function
from ._tensor.loading import load

_NAMES = (
    "align_tensors", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes",
    "broadcast_tensors", "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu",
    "meshgrid", "norm", "pca_lowrank", "svd_lowrank",
    "split", "stft", "tensordot", "unique", "unique_consecutive", "unravel_index",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'mindtorch.functional' has no attribute '{name}'")
    load()
    return function(name)


def __dir__() -> list[str]:
    return sorted(_NAMES)
