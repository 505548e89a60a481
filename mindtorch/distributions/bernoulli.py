"""torch.distributions.bernoulli: Bernoulli under torch's name."""

from .discrete import Bernoulli

__all__ = ["Bernoulli"]
