"""Owns `torch.autograd`: a view of `_autograd` under torch's names."""

from ._autograd.function import Function, once_differentiable
from ._autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ._autograd.surface import backward, grad

__all__ = ["Function", "backward", "enable_grad", "grad", "inference_mode", "no_grad",
           "once_differentiable", "set_grad_enabled"]  # fmt: skip
