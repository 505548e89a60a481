"""The cpu backend: rows' numpy kernels, computing in torch's precision."""

from .backend import backend

__all__ = ["backend"]
