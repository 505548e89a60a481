"""torch._functorch.apis: transforms that libraries import from there."""

from mindtorch.func.batches import chunk_vmap, vmap
from mindtorch.func.derivatives import grad, grad_and_value

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]
