"""Owns which views of tensors in parts are refused: those whose parts would not be views of parts.

Only a dimension that is cut evenly can lie before others that are joined to it, or be taken apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..._tensor.dtype import dtype as Dtype
from ..device_mesh import DeviceMesh
from .placement_types import Placement, Shard

VIEWS = ("view", "_unsafe_view", "reshape")


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Dimensions before and after a view, in the least pieces that have equally many elements."""
    groups = []
    i = j = 0
    while i < len(old) and j < len(new):
        before, after = [i], [j]
        elements, goal = old[i], new[j]
        while elements != goal:
            if elements < goal:
                i += 1
                before.append(i)
                elements *= old[i]
            else:
                j += 1
                after.append(j)
                goal *= new[j]
        groups.append((before, after))
        i, j = i + 1, j + 1
    return groups


def _short(dtype: Dtype) -> str:
    """A type of elements as i64, or bf16."""
    name = str(dtype).split(".")[-1]
    for word, letter in (("complex", "c"), ("bfloat", "bf"), ("float", "f"), ("uint", "u"),
                         ("int", "i"), ("bool", "b8")):  # fmt: skip
        if name.startswith(word):
            return letter + name.removeprefix(word)
    return name


def refuse_uneven(tensor: Any, size: Sequence[int]) -> None:
    """RuntimeError for a view as `size` of a tensor whose parts do not allow it."""
    mesh: DeviceMesh = tensor.device_mesh
    placements: Sequence[Placement] = tensor.placements
    shape, sizes = list(tensor.shape), list(size)
    if not tensor.numel():
        return
    if -1 in sizes:
        sizes[sizes.index(-1)] = tensor.numel() // max(1, -prod(sizes))
    if prod(sizes) != tensor.numel():
        return
    old = [d for d, length in enumerate(shape) if length != 1]
    new = [d for d, length in enumerate(sizes) if length != 1]
    cut = {p.dim: i for i, p in reversed([*enumerate(placements)]) if type(p) is Shard}
    for before, after in _groups([shape[d] for d in old], [sizes[d] for d in new]):
        sharded = [old[k] for k in before if old[k] in cut]
        for d in sharded:
            if d != old[before[-1]] and shape[d] % mesh.size(cut[d]):
                _refuse("flatten", f"dimension {d} (size {shape[d]})", cut[d], tensor, size)
        length = sizes[new[after[0]]]
        if sharded and len(after) > 1 and length % mesh.size(cut[sharded[0]]):
            what = f"output dimension 0 (size {length})"
            _refuse("unflatten", what, cut[sharded[0]], tensor, size)


def _refuse(does: str, what: str, place: int, tensor: Any, size: Sequence[int]) -> None:
    mesh: DeviceMesh = tensor.device_mesh
    layout = "".join(map(str, tensor.placements))
    raise RuntimeError(
        f"Cannot {does} unevenly sharded tensor: {what} is not evenly divisible by mesh dimension"
        f" {place} (size {mesh.size(place)}). Please redistribute the tensor before this"
        " operation.\n\nSharding propagation failed for aten.view.default(Spec("
        f"{_short(tensor.dtype)}{list(tensor.shape)}({layout})), {list(size)}) on {mesh})"
    )
