"""Names AdamW as torch.optim.adamw does; it stands beside Adam."""

from .adam import AdamW, adamw

__all__ = ["AdamW", "adamw"]
