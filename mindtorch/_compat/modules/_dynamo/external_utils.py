"""torch._dynamo.external_utils: whether a compiler is at work."""

from ..compiler import is_compiling

__all__ = ["is_compiling"]
