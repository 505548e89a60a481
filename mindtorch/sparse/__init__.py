"""Owns torch.sparse: tensors by coordinates and by compressed rows or columns.

Values are ordinary tensors: gradients go to them, on any device that has their ops.
"""

from collections.abc import Callable

from .._compat.refusals import refusals
from ._build import (
    check_sparse_tensor_invariants,
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from ._legacy import legacy_types
from ._methods import attach
from ._products import (
    addmm,
    hspmm,
    log_softmax,
    mm,
    sampled_addmm,
    smm,
    softmax,
    sparse_sum as sum,
    spdiags,
    sspaddmm,
)


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """`gradcheck` for functions of sparse tensors: as it is, for it takes them."""
    return gradcheck


attach()
globals().update(legacy_types())

__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "hspmm", "log_softmax", "mm",
    "sampled_addmm", "smm", "softmax", "sparse_bsc_tensor", "sparse_bsr_tensor",
    "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor",
    "spdiags", "sspaddmm", "sum",
]  # fmt: skip

__getattr__ = refusals(
    "torch.sparse",
    "mindtorch has no kernels for it; to_dense() makes an ordinary tensor",
    ("SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT",
     "SparseSemiStructuredTensorCUTLASS", "solve", "spsolve",
     "to_sparse_semi_structured"),
)  # fmt: skip
