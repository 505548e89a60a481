"""Owns the names of torch.optim.lr_scheduler."""

from ._base import EPOCH_DEPRECATION_WARNING, LRScheduler
from ._composed import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from ._cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from ._formulas import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)


class _LRScheduler(LRScheduler):
    """The name of LRScheduler before torch 2.0; a base that no scheduler here has."""


for _name, _class in list(globals().items()):
    if isinstance(_class, type) and _class.__module__.startswith(f"{__name__}."):
        _class.__module__ = __name__

__all__ = [
    "EPOCH_DEPRECATION_WARNING", "ChainedScheduler", "ConstantLR", "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR",
    "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
