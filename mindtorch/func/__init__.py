"""Owns torch.func: functions made of functions: gradients, Jacobians, products, batches.

Derivatives are reverse mode throughout: `jvp` is the derivative of a vjp. `vmap` runs a function of
one element on the whole batch, row by row (`_batched`, `_rules`).
"""

from .batches import functional_call, stack_module_state, vmap
from .derivatives import grad, grad_and_value, jvp, vjp
from .functions import functionalize, replace_all_batch_norm_modules_
from .jacobians import hessian, jacfwd, jacrev
from .linearization import linearize
from .rearrangement import rearrange

__all__ = ["functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd",
           "jacrev", "jvp", "linearize", "rearrange", "replace_all_batch_norm_modules_",
           "stack_module_state", "vjp", "vmap"]  # fmt: skip
