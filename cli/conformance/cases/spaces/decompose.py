"""Owns the space of decompositions and solutions: matrices in batches, well conditioned."""

from __future__ import annotations

from typing import Any, Final

from mindtorch.ops import Op
from mindtorch.ops.samples import Sample

from ....spec.factors import Factor, factor
from .space import LAYOUTS, DesignLevels, DesignScope, Space, common, data

_CHOICES: Final[dict[str, tuple[str, tuple[Any, ...]]]] = {
    "linalg_qr": ("mode", ("reduced", "complete", "r")),
    "qr": ("some", ("yes", "no")),
    "linalg_svd": ("full_matrices", ("yes", "no")),
    "_linalg_svd_v": ("full_matrices", ("yes", "no")),
    "linalg_eigh": ("uplo", ("L", "U")),
    "linalg_inv": ("", ()),
    "linalg_slogdet": ("", ()),
    "_triangular_solve": ("upper", ("yes", "no")),
}
_SQUARE: Final = frozenset(("linalg_eigh", "linalg_inv", "linalg_slogdet", "_triangular_solve"))
_LEAD: Final[dict[str, tuple[int, ...]]] = {"none": (), "1": (1,), "3": (3,), "2x2": (2, 2)}
DECOMPOSED: Final = frozenset(_CHOICES)


def _factors(op: Op, scope: DesignScope) -> list[Factor]:
    # Of inverses and determinants pivots lie anywhere.
    pivoted = ("pivoted", "permuted") if op.name in ("linalg_inv", "linalg_slogdet") else ()
    factors = common(op, scope, ("dominant", *pivoted))
    # Equal rows leave vectors open.
    factors[2] = factor("layout", *(x for x in LAYOUTS if x not in ("expanded", "middle")))
    name, levels = _CHOICES[op.name]
    factors += [
        factor("m", 5, 1, 2, 9, 17, *((33, 65) if scope.full else ())),
        factor("batch", *_LEAD),
    ]  # fmt: skip
    if name:
        factors.append(factor(name, *levels))
    if op.name == "_triangular_solve":
        factors += [factor("transpose", "no", "yes"), factor("unitriangular", "no", "yes"),
                    factor("columns", 3, 1, 17), factor("layout1", *factors[2].levels)]  # fmt: skip
    if op.name not in _SQUARE:
        factors.append(factor("n", 3, 1, 2, 5, 9, 16, *((33,) if scope.full else ())))
    return factors


def _build(op: Op, selection: DesignLevels) -> Sample:
    m = selection.number("m")
    if selection.flag("unitriangular"):
        m = min(m, 9)  # nothing outweighs the rest then: solutions grow with the size
    n = selection.number("n", m)
    matrix = data(op, (*_LEAD[selection["batch"]], m, n), selection)
    name, _ = _CHOICES[op.name]
    if not name:
        return Sample((matrix,))
    if op.name == "_triangular_solve":
        return _triangular(op, selection, matrix)
    choice: Any = selection.flag(name) if selection[name] in ("yes", "no") else selection[name]
    return Sample((matrix, choice))


def _triangular(op: Op, selection: DesignLevels, matrix: Any) -> Sample:
    right = data(op, (*matrix.shape[:-1], selection.number("columns")), selection, 1)
    flags = (selection.flag(x) for x in ("upper", "transpose", "unitriangular"))
    return Sample((right, matrix, *flags))


DECOMPOSE: Final = Space(_factors, _build)
