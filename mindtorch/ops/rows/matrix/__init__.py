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
    second_names,
    spectral,
    triangular,
)

__all__ = [
    "contract", "decompositions", "fused", "lowrank", "matmul", "matrices", "older", "pseudo",
    "second_names",
    "spectral", "triangular",
]  # fmt: skip
