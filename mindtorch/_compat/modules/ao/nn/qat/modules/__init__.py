"""torch.ao.nn.qat.modules."""

from mindtorch._compat.refusals import refusals

from .conv import Conv1d, Conv2d, Conv3d
from .linear import Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Linear"]

__getattr__ = refusals(
    "torch.ao.nn.qat.modules",
    "mindtorch has Linear and Conv of it, not this",
    ["Embedding", "EmbeddingBag"],
)
