"""torch.distributions.uniform: Uniform under torch's name."""

from .location import Uniform

__all__ = ["Uniform"]
