"""Owns results whose size the device decides: the room that they get, and the shape that the
operator reports of them (aclGetViewShape) after phase 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final

import numpy as np

from aclnn_bindings import launch_dynamic

from ...judge.precision import Array
from ..cases.recipe import Slot

Shape = tuple[int, ...]
# By operator and result: the largest shape that the inputs allow, as the operators' documents ask
# for it (CANN 9.1).
_ROOMS: Final[Mapping[str, Mapping[str, Callable[[Mapping[str, Any]], Shape]]]] = {
    "aclnnNonzero": {"out": lambda x: (prod(x["self"]), len(x["self"]))},
    "aclnnNonzeroV2": {"out": lambda x: (len(x["self"]), prod(x["self"]))},
    "aclnnMaskedSelect": {"out": lambda x: (prod(np.broadcast_shapes(x["self"], x["mask"])),)},
    "aclnnUnique": {"valueOut": lambda x: (prod(x["self"]),)},
    **dict.fromkeys(("aclnnUnique2", "aclnnUniqueConsecutive"), dict.fromkeys(
        ("valueOut", "countsOut"), lambda x: (prod(x["self"]),))),
    "aclnnUniqueDim": {
        "valueOut": lambda x: x["self"],
        "countsOut": lambda x: (x["self"][x["dim"]],),
    },
}  # fmt: skip
# `dim` of aclnnUniqueConsecutive that means: of all elements (torch_npu's word).
_FLAT: Final = 1000


def room_of(operator: str, values: Mapping[str, Any], result: str) -> Shape | None:
    """The shape that a result's tensor gets in a call with `values`; None where the result's size
    follows from the arguments."""
    rule = _ROOMS.get(operator, {}).get(result)
    if result == "countsOut" and values.get("returnCounts") is False:
        return None  # nobody asks for them: they get an empty tensor, as op-plugin passes it
    if rule is None or (operator == "aclnnUniqueConsecutive" and values["dim"] != _FLAT):
        return None
    return rule({k: v.array.shape if isinstance(v, Slot) else v for k, v in values.items()})


def with_room(like: Array, shape: Shape) -> Array:
    """Any array of this shape and of `like`'s dtype; an operator is given no empty tensor."""
    return np.zeros(tuple(max(n, 1) for n in shape), like.dtype)


def launch(cann: Any, call: Any, arguments: Mapping[str, Any]) -> dict[str, Shape]:
    """Launch and wait: the shape that the operator reports of each tensor, by parameter."""
    values = [arguments[param.name] for param in call.params]
    tensors = {p.name: v for p, v in zip(call.params, values, strict=True) if hasattr(v, "spec")}
    specs = [v.spec if hasattr(v, "spec") else v for v in values]
    addresses = [tensor.address for tensor in tensors.values()]
    stream = cann.runtime.current_stream()
    shapes = launch_dynamic(cann.runtime, call, specs, addresses, stream)
    return dict(zip(tensors, shapes, strict=True))


def complaint(result: str, reported: Shape, expected: Shape) -> str:
    """What is wrong with a reported shape, "" for nothing."""
    if reported == expected:
        return ""
    return (f"{result}: the operator reports the shape {list(reported)} where the reference has "
            f"{list(expected)}")  # fmt: skip


def packed(room: Array, shape: Shape) -> Array:
    """The result's elements, which lie densely at the start of its room."""
    return room.reshape(-1)[: prod(shape)].reshape(shape)
