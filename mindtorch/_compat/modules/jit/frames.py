"""Owns what a trace asks the frames of Python: where a call is, and what its tensors are called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from mindtorch._compat.torchscript.schemas import function_schemas
from mindtorch._tensor.subclass import OURS
from mindtorch._tensor.tensor import Tensor
from mindtorch.ops.spec import Op

from .sizes import SizeNumber, plain_numbers

_OF_LAYERS = f"{OURS[0]}nn{OURS[0][-1]}modules"


def caller() -> FrameType:
    """The frame of the program, or of a layer's `forward`, that is at work."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_back is not None:
        name = frame.f_code.co_filename
        if not name.startswith(OURS) or name.startswith(_OF_LAYERS):
            return frame
        frame = frame.f_back
    return frame or sys._getframe()


def name_in(frame: FrameType, value: object) -> str:
    """The variable of a frame that is a value; empty for none."""
    return names_in(frame).get(id(value), "")


def names_in(frame: FrameType) -> dict[int, str]:
    """The variables of a frame that are tensors, by their addresses; the first name counts."""
    names: dict[int, str] = {}
    for name, value in frame.f_locals.items():
        if isinstance(value, Tensor | SizeNumber):
            names.setdefault(id(value), "" if name == "self" else name)
    return names


def parameters(op: Op, raw: Sequence[Any]) -> dict[int, str]:
    """The names that a function of torch's Python has for its tensors."""
    schemas = function_schemas(f"torch.nn.functional.{op.base_name}")[1]
    names = [a.name for a in (schemas[0].arguments if schemas else [])]
    local = names or [a.name for a in op.schema.args]
    result: dict[int, str] = {}
    for name, value in zip(local, raw, strict=False):
        if isinstance(value, Tensor):
            result.setdefault(id(value), "input" if name == "self" else name)
    return result


def as_given(op: Op, raw: Sequence[Any]) -> Sequence[Any]:
    """A row's arguments with the sizes that its entry took as plain numbers."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith("<mindtorch entry"):
        if not frame.f_code.co_filename.startswith(OURS):
            return raw
        frame = frame.f_back
    if frame is None:
        return raw
    values = [frame.f_locals.get(a.name) for a in op.schema.args]
    return [
        g if isinstance(g, SizeNumber) and plain_numbers(g) == plain_numbers(r) else r
        for g, r in zip(values, raw, strict=True)
    ]
