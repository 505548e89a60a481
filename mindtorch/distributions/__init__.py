"""Owns torch.distributions: what is drawn, how likely, how far from another."""

from . import constraints
from .discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from .distribution import Distribution, ExponentialFamily
from .location import Cauchy, Gumbel, Laplace, Normal, Uniform
from .relaxed_bernoulli import RelaxedBernoulli

__all__ = ["Bernoulli", "Binomial", "Categorical", "Cauchy", "Distribution", "ExponentialFamily",
           "Geometric", "Gumbel", "Laplace", "Multinomial", "Normal", "OneHotCategorical",
           "OneHotCategoricalStraightThrough", "RelaxedBernoulli", "Uniform",
           "constraints"]  # fmt: skip
