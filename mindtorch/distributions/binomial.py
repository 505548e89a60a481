"""torch.distributions.binomial: Binomial under torch's name."""

from .discrete import Binomial

__all__ = ["Binomial"]
