"""Owns torch.func.rearrange: dimensions by name, `"b (h w) c -> b h w c"`, as in einops."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from .._tensor.tensor import Tensor
from ..ops.spec import aten

_TOKEN = re.compile(r"\.\.\.|[()]|[^\s()]+")
_REST = "..."
Axis = list[str]  # names that one dimension holds; none: a dimension of size 1


class DimensionBindError(Exception):
    """Sizes of a group do not follow from that of its dimension."""


def _axes(side: str, pattern: str) -> list[Axis | str]:
    """The dimensions of one side of a pattern; `...` stands for the rest."""
    result: list[Axis | str] = []
    group: Axis | None = None
    for token in _TOKEN.findall(side):
        if token == "(":
            if group is not None:
                raise ValueError(f"Brackets cannot be nested in the pattern {pattern}")
            group = []
        elif token == ")":
            if group is None:
                raise ValueError(f"Brackets are not balanced in the pattern {pattern}")
            result.append(group)
            group = None
        elif token == _REST and group is None:
            result.append(_REST)
        elif token.isdecimal():
            if int(token) != 1:
                raise ValueError("rearrange only supports unnamed axes of size 1")
            if group is None:
                result.append([])
        elif group is not None:
            group.append(token)
        else:
            result.append([token])
    if group is not None:
        raise ValueError(f"Brackets are not balanced in the pattern {pattern}")
    return result


def _names(axes: Sequence[Axis | str]) -> list[str]:
    names = [n for axis in axes for n in ([axis] if isinstance(axis, str) else axis)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"Indexing expression contains duplicate dimension {name!r}")
    return names


def _refuse(left: Sequence[str], right: Sequence[str], sizes: Mapping[str, int], text: str) -> None:
    if _REST in right and _REST not in left:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {text}")
    if one_sided := {*left} ^ {*right}:
        raise ValueError(
            f"Identifiers only on one side of rearrange expression (should be on both): {one_sided}"
        )
    if unknown := {*sizes} - {*left}:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")


def _split(axis: Axis, size: int, sizes: dict[str, int], first: int) -> None:
    """Find the size of the name of a group that has none."""
    unknown = [name for name in axis if name not in sizes]
    if len(unknown) > 1:
        names = " and ".join(f"d{first + axis.index(name)}" for name in unknown[:2])
        raise DimensionBindError(f"cannot infer the sizes of two dimensions at once {names}")
    known = prod(sizes[name] for name in axis if name in sizes)
    if unknown and size % known == 0:
        sizes[unknown[0]] = size // known
    elif unknown or known != size:
        listed = tuple(sizes.get(name, "?") for name in axis)
        relation = "dimension does not evenly fit into larger dimension"
        raise DimensionBindError(f"inferred {relation}: {size} vs {listed}")


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int
) -> Tensor:
    """The tensor with its dimensions transposed, split, sizes_after or units as `pattern` says.

    A list of tensors is stacked first. A name in brackets is part of a dimension; its size is in
    `axes_lengths` unless it follows. ValueError for a pattern that is none, DimensionBindError
    for sizes that do not fit.
    """
    x = tensor if isinstance(tensor, Tensor) else aten.stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = (_axes(side, pattern) for side in sides)
    sources = _names(left)
    _refuse(sources, _names(right), axes_lengths, pattern)
    rest = x.ndim - len(left) + 1 if _REST in left else 0
    if rest < 0 or (_REST not in left and x.ndim != len(left)):
        raise ValueError(
            f"Number of dimensions in pattern ({len(left)}) must be equal to the number of"
            f" dimensions in the tensor ({x.ndim})"
        )
    sizes = dict(axes_lengths)
    places: dict[str, list[int]] = {}
    shape: list[int] = []
    at = 0
    for axis in left:
        if isinstance(axis, str):
            places[_REST] = list(range(len(shape), len(shape) + rest))
            shape += x.shape[at : at + rest]
            at += rest
            continue
        _split(axis, x.shape[at], sizes, sources.index(axis[0]) if axis else 0)
        for name in axis:
            places[name] = [len(shape)]
            shape.append(sizes[name])
        at += 1
    order: list[int] = []
    sizes_after: list[int] = []
    units: list[int] = []
    for axis in right:
        members = [p for name in ([axis] if isinstance(axis, str) else axis) for p in places[name]]
        order += members
        if isinstance(axis, str):
            sizes_after += [shape[p] for p in members]
        elif axis:
            sizes_after.append(prod(shape[p] for p in members))
        else:
            units.append(len(sizes_after) + len(units))
    result = x.reshape(shape).permute(order).reshape(sizes_after)
    for place in units:
        result = result.unsqueeze(place)
    return result
