"""Owns torch.masked: reductions and normalizations of the elements where a mask is true.

A mask is brought to the input's shape; what it leaves out becomes the reduction's identity.
"""

from __future__ import annotations

from .._tensor.loading import load
from .normalizations import log_softmax, normalize, softmax, softmin
from .reductions import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    prod,
    std,
    sum,
    var,
)

load()

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp",
    "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum",
    "var",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"):
        raise AttributeError(
            f"module 'mindtorch.masked' has no attribute '{name}': tensors with masks are a torch"
            " prototype that is absent here; pass mask= to the functions of this module"
        )
    raise AttributeError(f"module 'mindtorch.masked' has no attribute '{name}'")
