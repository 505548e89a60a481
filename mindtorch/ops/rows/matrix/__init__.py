"""Rows of matrix products, contractions, inverses and decompositions."""

from . import (
    contract,
    decompositions,
    deprecated,
    fused,
    householder,
    integers,
    lowrank,
    matmul,
    matrices,
    pseudo,
    second_names,
    spectral,
    triangular,
)

__all__ = [
    "contract", "decompositions", "deprecated", "fused", "householder", "integers", "lowrank",
    "matmul", "matrices", "pseudo", "second_names", "spectral", "triangular",
]  # fmt: skip
