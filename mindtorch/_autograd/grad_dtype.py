"""Owns Tensor.grad_dtype: the dtype that a leaf's gradient arrives in and may be assigned in."""

from __future__ import annotations

from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..ops.rules import c_name
from .node import AccumulateGrad

_SLOT = "_grad_dtype"
_UNLIKE = (
    "attempting to assign a gradient with dtype '{}' to a tensor with grad_dtype '{}'. The gradient"
    " must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's"
    " grad_dtype attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with"
    " caution. Diverging the dtypes of a tensor and its gradient may break downstream systems that"
    " assume they match."
)


def _of(tensor: Tensor) -> Dtype | None:
    dtype: Dtype | None = vars(tensor).get(_SLOT, tensor._geom.dtype)
    return dtype


def refuse_dtype(tensor: Tensor, grad: Tensor) -> None:
    """RuntimeError in torch's words for a gradient of another dtype than the tensor takes."""
    expected = _of(tensor)
    if expected is not None and grad.dtype is not expected:
        raise RuntimeError(_UNLIKE.format(c_name(grad.dtype), expected.legacy))


def arrive(leaf: AccumulateGrad, tensor: Tensor) -> None:
    """Let the engine cast what reaches a leaf to the dtype that it takes."""
    geom, dtype = tensor._geom, _of(tensor)
    same = dtype is None or dtype is geom.dtype
    leaf.memory = tensor._storage
    leaf.outs = (geom if same else geom.fresh(dtype=dtype, strides=geom.strides),)


def _grad_dtype(self: Tensor) -> Dtype | None:
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return _of(self)


def _set_grad_dtype(self: Tensor, dtype: Dtype | None) -> None:
    if not (dtype is None or isinstance(dtype, Dtype)):
        raise RuntimeError(
            f"grad_dtype must be a torch.dtype or None, but got {type(dtype).__name__}"
        )
    grad = self.grad  # which warns of a tensor that is no leaf, as in torch
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if grad is not None and dtype not in (None, grad.dtype):
        raise RuntimeError(
            f"Cannot set grad_dtype to '{dtype.legacy}' because there is already a gradient with"
            f" dtype '{c_name(grad.dtype)}'. Please clear the gradient (.grad = None) before"
            " changing grad_dtype, or ensure the new grad_dtype matches the existing gradient's"
            " dtype."
        )
    vars(self)[_SLOT] = dtype
    if isinstance(self._fn, AccumulateGrad):
        arrive(self._fn, self)


grad_dtype = property(_grad_dtype, _set_grad_dtype)
