"""torch.distributions.exp_family: the base class under torch's name."""

from .distribution import ExponentialFamily

__all__ = ["ExponentialFamily"]
