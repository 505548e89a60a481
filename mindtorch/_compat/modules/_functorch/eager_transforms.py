"""torch._functorch.eager_transforms: transforms that libraries import from there."""

from collections.abc import Sequence
from typing import Any

from mindtorch.func.derivatives import argument_numbers, grad, grad_and_value, jvp, vjp
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


def _slice_argnums(args: Sequence[Any], argnums: int | Sequence[int], as_tuple: bool = True) -> Any:
    """The arguments of those numbers; one alone where the number is, unless `as_tuple`."""
    numbers = argument_numbers(argnums, args)
    one = isinstance(argnums, int) and not as_tuple
    return args[numbers[0]] if one else tuple(args[n] for n in numbers)
