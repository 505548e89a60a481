"""functorch.experimental: torch.func's names by an older module."""

from mindtorch.func import (
    functionalize,
    hessian,
    jacfwd,
    jvp,
    replace_all_batch_norm_modules_,
)
from mindtorch.func.batches import chunk_vmap

__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp",
           "replace_all_batch_norm_modules_"]  # fmt: skip
