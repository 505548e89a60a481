"""Names the families of rows that torch.nn is made of; holds no row itself."""

from . import (
    nn_activation,
    nn_adaptive_pool,
    nn_conv,
    nn_embedding,
    nn_loss,
    nn_norm,
    nn_pool,
    nn_rearrange,
    nn_softmax,
)

__all__ = [
    "nn_activation",
    "nn_adaptive_pool",
    "nn_conv",
    "nn_embedding",
    "nn_loss",
    "nn_norm",
    "nn_pool",
    "nn_rearrange",
    "nn_softmax",
]
