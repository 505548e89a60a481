"""torch.distributions.gumbel: Gumbel under torch's name."""

from .location import Gumbel

__all__ = ["Gumbel"]
