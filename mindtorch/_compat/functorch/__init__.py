"""Owns functorch's names: torch.func by its older name, which torch's distribution brings too."""

from ...func import (
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    vjp,
    vmap,
)
from ..refusals import refusals

__all__ = ["functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp",
           "vmap"]  # fmt: skip
_NAMES = ("FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble",
          "make_functional", "make_functional_with_buffers", "make_fx")  # fmt: skip
__getattr__ = refusals(
    "functorch", "use torch.func.functional_call and torch.func.stack_module_state", _NAMES
)
