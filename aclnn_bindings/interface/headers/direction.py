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
_OUT_NAME: Final = re.compile(
    r"(?!grad|dy|prev)(?:out(?:put)?(?:[A-Z_0-9]\w*)?|\w+(?:Out|Output|_out)(?:s|\d*|Optional)?)"
)
_REF_NAME: Final = re.compile(r"\w+Ref(?:Optional|List)?")
_BY_TEXT: Final = {"in": Direction.IN, "out": Direction.OUT, "inout": Direction.INOUT}


def _of_pointer(param: RawParam, marker: str) -> Direction:
    """A pointer that is not one of ACLNN's own types: const or `[in]` is read, else written."""
    if param.type.startswith("const ") and param.type.count("*") <= 1:
        return Direction.IN
    if marker:
        return _BY_TEXT[marker]
    if param.type in ("void *", "void *const"):
        return Direction.IN
    return Direction.OUT


def _of_data(param: RawParam, kind: Kind, marker: str, in_place: bool) -> Direction:
    """A tensor or list that is not const is written, whatever `[in]` says; arrays are read."""
    if marker == "inout" or _REF_NAME.fullmatch(param.name):
        return Direction.INOUT
    if kind not in (Kind.TENSOR, Kind.TENSOR_LIST):
        return Direction.OUT if marker == "out" else Direction.IN
    if not param.type.startswith("const "):
        return Direction.INOUT if in_place and param.name.startswith("self") else Direction.OUT
    return Direction.OUT if marker == "out" else Direction.IN


def directions(
    function: str,
    params: Sequence[RawParam],
    kinds: Sequence[Kind],
    docs: Mapping[str, ParamDoc],
) -> list[Direction]:
    """One direction per parameter of `function`."""
    op = function.removesuffix(WORKSPACE_SUFFIX)
    in_place = "Inplace" in op
    out = []
    for param, kind in zip(params, kinds, strict=True):
        doc = docs.get(param.name)
        marker = doc.direction if doc else ""
        if kind in _DATA:
            out.append(_of_data(param, kind, marker, in_place) if op != function else Direction.IN)
        elif kind is Kind.POINTER:
            out.append(_of_pointer(param, marker))
        elif kind is Kind.STRING and not param.type.startswith("const ") and marker:
            out.append(_BY_TEXT[marker] if op == function else Direction.IN)
        else:
            out.append(Direction.IN)
    if op == function:
        return out
    _const_outputs(params, kinds, out, in_place)
    known = DIRECTIONS.get(op, {})
    return [known.get(p.name, way) for p, way in zip(params, out, strict=True)]


def _const_outputs(
    params: Sequence[RawParam], kinds: Sequence[Kind], out: list[Direction], in_place: bool
) -> None:
    """Finds outputs among const tensors, as generated headers write them.

    Such headers list inputs, then attributes, then outputs, so the tensors behind the last
    attribute are outputs; without attributes the names tell, else the last tensor is it. An
    operator that writes in place has its first tensor as output.
    """
    tensors = [i for i, k in enumerate(kinds) if k in (Kind.TENSOR, Kind.TENSOR_LIST)]
    if not tensors or any(out[i] is Direction.OUT for i in tensors):
        return
    outputs = [i for i in tensors if _OUT_NAME.fullmatch(params[i].name)]
    if all(out[i] is Direction.IN for i in tensors):
        if in_place:
            out[tensors[0]] = Direction.INOUT
        else:
            last = max((i for i, k in enumerate(kinds[:-2]) if k not in _DATA), default=-1)
            trailing = [i for i in tensors if i > last] if tensors[0] < last else []
            outputs = trailing or outputs or tensors[-1:]
    for index in outputs:
        if out[index] is Direction.IN:
            out[index] = Direction.OUT
