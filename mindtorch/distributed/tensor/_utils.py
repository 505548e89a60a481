"""Sizes of parts, by torch's names."""

from ._redistribute import local_shape_and_offset as compute_local_shape_and_global_offset

__all__ = ["compute_local_shape_and_global_offset"]
