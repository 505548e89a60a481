"""torch.distributions.cauchy: Cauchy under torch's name."""

from .location import Cauchy

__all__ = ["Cauchy"]
