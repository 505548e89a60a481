"""torch.distributions.laplace: Laplace under torch's name."""

from .location import Laplace

__all__ = ["Laplace"]
