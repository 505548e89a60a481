"""Owns torch._C._functorch's names for code that asks about tensors of a batch."""

from __future__ import annotations

from .._compat.refusals import refused
from .._tensor.tensor import Tensor
from ._batched import BatchedTensor

_WHY = "mindtorch.func.vmap alone makes tensors of a batch"
_add_batch_dim = refused("torch._C._functorch._add_batch_dim", _WHY)
_remove_batch_dim = refused("torch._C._functorch._remove_batch_dim", _WHY)


def is_batchedtensor(tensor: object) -> bool:
    """Whether a tensor stands for one element of a batch that vmap goes through."""
    return isinstance(tensor, BatchedTensor)


def is_legacy_batchedtensor(tensor: object) -> bool:
    """False: there is one vmap."""
    return False


def is_gradtrackingtensor(tensor: object) -> bool:
    """False: gradients of functions are those of autograd."""
    return False


def is_functorch_wrapped_tensor(tensor: object) -> bool:
    """Whether a tensor stands for others."""
    return is_batchedtensor(tensor)


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The whole batch of a tensor that shows one element."""
    if not isinstance(tensor, BatchedTensor):
        raise RuntimeError(f"get_unwrapped: {type(tensor).__name__} is no tensor of a batch")
    return tensor._value
