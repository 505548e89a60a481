"""torch.distributions.multinomial: Multinomial under torch's name."""

from .discrete import Multinomial

__all__ = ["Multinomial"]
