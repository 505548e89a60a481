"""torch._functorch.eager_transforms: transforms that libraries import from there."""

from mindtorch.func.derivatives import grad, grad_and_value, jvp, vjp
from mindtorch.func.functions import functionalize
from mindtorch.func.jacobians import hessian, jacfwd, jacrev
from mindtorch.func.linearization import linearize

__all__ = [
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
]
