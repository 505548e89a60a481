"""Owns torch.func's functional_call; transforms of functions (vmap, grad) are not offered."""

from ..nn.utils.stateless import functional_call

__all__ = ["functional_call"]
