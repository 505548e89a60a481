"""Owns which dtypes an op's ACLNN call claims to take: the install's header and SoC's documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from aclnn_bindings import Kind, product_of, support
from aclnn_bindings.install.products import dtypes_of
from mindtorch.ops import Op

from ...judge.formats import FORMATS
from .case import ACL_DTYPES, DTYPES
from .inputs import main_dtype, samples, tensors_of


@dataclass(frozen=True, slots=True)
class Claims:
    """What the device says it takes: the main tensor's dtypes; documents by ACLNN function.

    `listed(name)` gives the documented dtypes of a function's tensors in header order, or None;
    `excluded(name)` says whether documents list the function for other products alone.
    `source` says who claims; `person`: whoever gave a reference of their own, whose operator has
    to take what they declare; `assumed`: nobody declared it, and a refusal narrows the guess.
    """

    dtypes: tuple[str, ...]
    listed: Callable[[str], tuple[tuple[str, ...], ...] | None] = lambda _name: None
    source: str = "its header"
    person: bool = False
    excluded: Callable[[str], bool] = lambda _name: False
    assumed: bool = False


def excluded_on(soc: str) -> Callable[[str], bool]:
    """Whether documents list a function, though not for the product of `soc`."""

    def excluded(name: str) -> bool:
        documented = support(name)
        return documented is not None and documented.on(product_of(soc)) is False

    return excluded


def source_of(documented: object) -> str:
    """Who claims the dtypes of an operator, by its documents or None."""
    return "header and documents" if documented is not None else "its header"


NOTHING_CLAIMED = Claims(())


def claims(op: Op, declarations: Any, soc: str) -> Claims:
    """The Claims of an op's ACLNN calls on a SoC; `declarations` (or None) are the install's."""

    def listed(name: str) -> tuple[tuple[str, ...], ...] | None:
        signature = declarations.ops.get(name) if declarations is not None else None
        documented = support(name, product_of(soc))
        if signature is None or documented is None:
            return None
        if any(p.kind is Kind.TENSOR_LIST for p in signature.params):
            return None
        tensors = [p for p in signature.params if p.kind is Kind.TENSOR]
        return tuple(documented.dtypes.get(p.name, ()) for p in tensors)

    documented = any(support(call.name, product_of(soc)) for call in op.kernels.aclnn)
    source = source_of(documented or None)
    return Claims(claimed(op, declarations, soc), listed, source, excluded=excluded_on(soc))


def claimed(op: Op, declarations: Any, soc: str) -> tuple[str, ...]:
    """Dtypes for the op's main tensor, in a fixed order; those of its samples where nobody says.

    `declarations` (or None) are the install's; what documents exclude on the SoC is left out.
    """
    for call in op.kernels.aclnn:
        if call.when is not None and len(op.kernels.aclnn) > 1 and call is not op.kernels.aclnn[-1]:
            continue
        claim = _of_call(op, call, declarations, soc)
        if claim:
            return tuple(d for d in DTYPES if d in claim)
    return _of_samples(op)


def _of_call(op: Op, call: Any, declarations: Any, soc: str) -> set[str]:
    position = _main_position(op, call)
    if position is None:
        return set()
    signature = declarations.ops.get(call.name) if declarations is not None else None
    if signature is None or position >= len(signature.params):
        return set()
    param = signature.params[position]
    names = dtypes_of(call.name, param.name, product_of(soc), param.dtypes)
    return {ACL_DTYPES[n] for n in names if n in ACL_DTYPES}


def _main_position(op: Op, call: Any) -> int | None:
    """Where the call passes the op's first tensor argument."""
    tensors = [a.name for a in op.schema.args if a.type.startswith("Tensor")]
    for position, argument in enumerate(call.args):
        if isinstance(argument, str) and argument in tensors:
            return position
    return None


# Rows that convert through the backend, whose table names no call: any type to any other.
_CONVERTING: Final = frozenset(("_to_copy", "copy"))


def _of_samples(op: Op) -> tuple[str, ...]:
    """Composites and views claim what their samples show; floats claim every float."""
    if op.name in _CONVERTING:
        return DTYPES
    text = {main_dtype(tensors_of(s)) for s in samples(op.testing) if tensors_of(s)}
    if text & set(FORMATS):
        text |= {"float32", "float16"}
    return tuple(d for d in DTYPES if d in text)
