"""torch.distributions.categorical: Categorical under torch's name."""

from .discrete import Categorical

__all__ = ["Categorical"]
