"""Owns loss_parallel: losses of logits that lie in parts along their classes."""

from .._api import implicit_replication as loss_parallel

__all__ = ["loss_parallel"]
