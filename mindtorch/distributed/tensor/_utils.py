"""What is asked of shards' sizes: refused, as tensors are not spread over processes."""

from ..._compat.refusals import refusals

_NAMES = ("compute_local_shape_and_global_offset",)
__all__ = list(_NAMES)
__getattr__ = refusals(
    "torch.distributed.tensor._utils", "mindtorch spreads no tensors over processes", _NAMES
)
