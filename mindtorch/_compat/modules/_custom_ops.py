"""torch._custom_ops: torch.library's older calls."""

from mindtorch.library import get_ctx, impl, impl_abstract

__all__ = ["get_ctx", "impl", "impl_abstract"]
