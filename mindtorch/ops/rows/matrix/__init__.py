"""Rows of matrix products and decompositions."""

from . import contract, decompositions, fused, matmul, matrices

__all__ = ["contract", "decompositions", "fused", "matmul", "matrices"]
