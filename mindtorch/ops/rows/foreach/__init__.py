"""Rows over lists of tensors: `_foreach_add` and its like, and their forms that write."""

from . import lists

__all__ = ["lists"]
