"""torch.autograd.variable: Variable is Tensor."""

from .._tensor.tensor import Tensor as Variable

__all__ = ["Variable"]
