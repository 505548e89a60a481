"""torch.distributions.geometric: Geometric under torch's name."""

from .discrete import Geometric

__all__ = ["Geometric"]
