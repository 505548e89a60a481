"""torch.distributions.normal: Normal under torch's name."""

from .location import Normal

__all__ = ["Normal"]
