"""Rows of torch.fft and what is made of them: transforms, frequencies, short-time transforms."""

from . import frames, named, transforms

__all__ = ["frames", "named", "transforms"]
