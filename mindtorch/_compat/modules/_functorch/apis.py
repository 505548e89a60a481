"""torch._functorch.apis: transforms that libraries import from there."""

from mindtorch.func.batches import vmap
from mindtorch.func.derivatives import grad, grad_and_value

__all__ = ["grad", "grad_and_value", "vmap"]
