"""torch.distributions.one_hot_categorical: OneHotCategorical under torch's name."""

from .discrete import OneHotCategorical, OneHotCategoricalStraightThrough

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]
