"""Owns who writes each parameter: from comments, types and names, where const is not enough."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ..overrides import DIRECTIONS
from ..signature import WORKSPACE_SUFFIX, Direction, Kind
from .doxygen import ParamDoc
from .raw import RawParam

_DATA: Final = frozenset(
    [Kind.TENSOR, Kind.TENSOR_LIST, Kind.SCALAR, Kind.SCALAR_LIST, Kind.INT_ARRAY,
     Kind.BOOL_ARRAY, Kind.FLOAT_ARRAY]
)  # fmt: skip
_OUT_NAME: Final = re.compile(r"out(?:[A-Z_0-9]\w*)?|\w*(?:Out|Output|_out)(?:s|\d*|Optional)?|\w+Out[A-Z]\w*")
_REF_NAME: Final = re.compile(r"\w+Ref(?:Optional|List)?")
_BY_TEXT: Final = {"in": Direction.IN, "out": Direction.OUT, "inout": Direction.INOUT}


def _of_pointer(param: RawParam, said: str) -> Direction:
    """A pointer that is not one of ACLNN's own types: const or `[in]` is read, else written."""
    if param.type.startswith("const ") and param.type.count("*") <= 1:
        return Direction.IN
    if said:
        return _BY_TEXT[said]
    if param.type in ("void *", "void *const") or "**" not in param.type and "(*" in param.type:
        return Direction.IN
    return Direction.OUT


def _of_data(param: RawParam, said: str, in_place: bool) -> Direction:
    """A tensor, scalar, array or list: non-const is written, whatever `[in]` says."""
    if said == "inout" or _REF_NAME.fullmatch(param.name):
        return Direction.INOUT
    if not param.type.startswith("const "):
        return Direction.INOUT if in_place and param.name.startswith("self") else Direction.OUT
    return Direction.OUT if said == "out" else Direction.IN


def directions(
    function: str,
    params: Sequence[RawParam],
    kinds: Sequence[Kind],
    docs: Mapping[str, ParamDoc],
) -> list[Direction]:
    """One direction per parameter of `function`."""
    op = function.removesuffix(WORKSPACE_SUFFIX)
    in_place = op.startswith("aclnnInplace")
    out = []
    for param, kind in zip(params, kinds, strict=True):
        doc = docs.get(param.name)
        said = doc.direction if doc else ""
        if kind in _DATA:
            out.append(_of_data(param, said, in_place) if op != function else Direction.IN)
        elif kind in (Kind.POINTER, Kind.EXECUTOR) and "*" in param.type + "&":
            out.append(_of_pointer(param, said))
        elif kind is Kind.STRING and not param.type.startswith("const ") and said:
            out.append(_BY_TEXT[said] if op == function else Direction.IN)
        else:
            out.append(Direction.IN)
    if op != function:
        _const_outputs(params, kinds, out)
        for name, direction in DIRECTIONS.get(op, {}).items():
            for index, param in enumerate(params):
                if param.name == name:
                    out[index] = direction
    return out


def _const_outputs(
    params: Sequence[RawParam], kinds: Sequence[Kind], out: list[Direction]
) -> None:
    """Finds outputs among const tensors, as generated headers write them."""
    tensors = [i for i, k in enumerate(kinds) if k in (Kind.TENSOR, Kind.TENSOR_LIST)]
    for index in tensors:
        if out[index] is Direction.IN and _OUT_NAME.fullmatch(params[index].name):
            out[index] = Direction.OUT
    if tensors and all(out[i] is Direction.IN for i in tensors):
        out[tensors[-1]] = Direction.OUT
