"""torch._functorch.vmap: names that libraries import; batches are made otherwise here."""

from mindtorch._compat.refusals import refusals
from mindtorch._tensor.tensor import Tensor
from mindtorch.func.batches import vmap
from mindtorch.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["Tensor", "tree_flatten", "tree_unflatten", "vmap"]
_NAMES = (
    "_add_batch_dim", "_broadcast_to_and_flatten", "_create_batched_inputs", "_get_name",
    "_maybe_remove_batch_dim", "_process_batched_inputs", "_unwrap_batched",
)  # fmt: skip
__getattr__ = refusals("torch._functorch.vmap", "mindtorch.func.vmap is made otherwise", _NAMES)
