"""Owns torch.autograd.Variable: an older name of Tensor, which detaches what it is called with."""

from __future__ import annotations

import warnings

from .._autograd.running import ENGINE
from .._compat.class_names import class_name
from .._tensor.tensor import Tensor
from ..ops.spec import aten

__all__ = ["Variable"]


class VariableMeta(type):
    """All tensors are instances of Variable, which has none of its own."""

    def __call__(
        cls, data: object = None, requires_grad: bool = False, volatile: bool = False,
        **options: object,
    ) -> Tensor:  # fmt: skip
        if options:
            name = next(iter(options))
            raise TypeError(f"{name!r} is an invalid keyword argument for this function")
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                stacklevel=2,
            )
        if data is None:
            data = aten.empty((0,))
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {class_name(data)}")
        variable: Tensor = aten.alias(data.detach()) if type(data) is not Tensor else data.detach()
        if requires_grad:
            if not (data.is_floating_point() or data.is_complex()):
                raise RuntimeError(
                    "Only Tensors of floating point and complex dtype can require gradients"
                )
            variable.requires_grad_()
        return variable

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(data)`: a tensor of the same memory without history; empty without data.

    TypeError for data that is no tensor, RuntimeError for integers that are to have gradients.
    """

    _execution_engine = ENGINE
