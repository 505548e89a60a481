"""torch.distributions.one_hot_categorical: OneHotCategorical under torch's name."""

from .discrete import OneHotCategorical

__all__ = ["OneHotCategorical"]
