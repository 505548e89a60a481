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
from .tensors import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

load()

__all__ = [
    "MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum",
    "is_masked_tensor", "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip
