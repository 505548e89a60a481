"""Rows of matrix products, contractions, inverses and decompositions."""

from . import (
    contract,
    decompositions,
    fused,
    lowrank,
    matmul,
    matrices,
    older,
    pseudo,
    spectral,
    triangular,
)

__all__ = [
    "contract", "decompositions", "fused", "lowrank", "matmul", "matrices", "older", "pseudo",
    "spectral", "triangular",
]  # fmt: skip
