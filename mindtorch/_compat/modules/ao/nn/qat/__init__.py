"""torch.ao.nn.qat: layers whose weights are rounded as they train."""

from mindtorch._compat.refusals import refusals

from .modules import *  # noqa: F403

__getattr__ = refusals(
    "torch.ao.nn.qat",
    "mindtorch has Linear and Conv of it, not this",
    ["Embedding", "EmbeddingBag"],
)
