"""Finds header parameters that no formula takes.

`python -m mindtorch_npu.conformance.operators.untaken` prints them. A fault in the handling of a
parameter that the reference does not take passes every check. Those that change no result are in
idle.py, with the reason.
"""

from __future__ import annotations

from typing import Final

from aclnn_bindings.interface.signature import Declarations, OpSignature

from .idle import idle
from .spec import SPECS, Spec

# What an operator that draws is held against by its distribution (drawn.py), not by a formula.
_DRAWN: Final = frozenset(("seed", "offset", "seedTensor", "offsetTensor"))


def untaken(row: Spec, signature: OpSignature) -> list[str]:
    """Parameters of an operator's header that neither its formula takes nor anything explains."""
    known = row.parameters()
    left = []
    for param in signature.params:
        own = row.renamed.get(param.name, param.name)
        drawn = row.draws is not None and (own in _DRAWN or own in _stated(row))
        told = (
            own in known or own in row.outs or any(own in r.split("|") for r in row.outs.values())
        )
        if not (told or drawn or idle(row.name, own)):
            left.append(own)
    return left


def _stated(row: Spec) -> set[str]:
    """What the samples of an operator that draws give: its distribution is held against them."""
    return {name for sample in row.samples() for name in sample.kwargs}


def by_row(declarations: Declarations) -> dict[str, list[str]]:
    """Untaken parameters of every row, of all versions that it serves."""
    left: dict[str, list[str]] = {}
    for name, row in SPECS.items():
        signature = declarations.ops.get(name)
        for param in untaken(row, signature) if signature is not None else ():
            if param not in left.setdefault(row.name, []):
                left[row.name].append(param)
    return {row: names for row, names in left.items() if names}


def main() -> None:
    """Print them, one row a line, as the tests' list has them."""
    import aclnn_bindings

    from . import rows

    assert rows
    for row, names in sorted(
        by_row(aclnn_bindings.open(None, simulator=True).declarations).items()
    ):
        print(f"{row}: {' '.join(names)}")


if __name__ == "__main__":
    main()
