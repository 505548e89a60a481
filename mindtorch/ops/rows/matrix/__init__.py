"""Rows of matrix products, contractions, inverses and decompositions."""

from . import (
    contract,
    decompositions,
    fused,
    householder,
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
    "contract", "decompositions", "fused", "householder", "lowrank", "matmul", "matrices", "older",
    "pseudo", "second_names", "spectral", "triangular",
]  # fmt: skip
