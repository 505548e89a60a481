"""Owns the operators that traces have for rows and indices, where they differ from the call."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import mindtorch
from mindtorch._compat.torchscript.schemas import MISSING
from mindtorch._compat.torchscript.traced_graph import declaration_of
from mindtorch._tensor.tensor import Tensor
from mindtorch.ops.aten_overloads import Call
from mindtorch.ops.namespaces import namespace
from mindtorch.ops.spec import Op, aten

from . import state

_CONVOLUTIONS = {
    f"conv{'_transpose' * t}{n}d": (n, bool(t)) for n in (1, 2, 3) for t in (False, True)
}  # fmt: skip
# What layers ask torch's settings, by operator.
_BY_CUDNN = {
    "batch_norm": "cudnn_enabled", "group_norm": "cudnn_enabled",
    "instance_norm": "cudnn_enabled", "layer_norm": "cudnn_enable",
}  # fmt: skip


def spelled(op: Op, call: Call | None) -> Call:
    """A row's call as traces have it; NotImplementedError where torch has no such operator."""
    name = op.base_name
    if call is None:
        raise NotImplementedError(f"{op.name} is no operator")
    if name in _CONVOLUTIONS:
        return _convolution(name, call)
    if name in _BY_CUDNN:
        return call[0], call[1], {**call[2], _BY_CUDNN[name]: True}
    return call


def _convolution(name: str, call: Call) -> Call:
    """The one operator that all convolutions are in a trace."""
    target, args, kwargs = call
    dims, transposed = _CONVOLUTIONS[name]
    plain = declaration_of(name, target._overloadname)
    if plain is None:
        raise NotImplementedError(name)
    values = {a.name: a.default for a in plain.arguments if a.default is not MISSING}
    values |= dict(zip([a.name for a in plain.arguments], args, strict=False)) | kwargs
    if isinstance(values["padding"], str):
        raise NotImplementedError("padding by a word")
    for key in ("stride", "padding", "dilation", "output_padding"):
        value = values.get(key, 0)
        values[key] = value if isinstance(value, list | tuple) and len(value) > 1 else [
            value[0] if isinstance(value, list | tuple) else value] * dims  # fmt: skip
    values.update(
        transposed=transposed, benchmark=False, deterministic=False, cudnn_enabled=True,
        allow_tf32=True,
    )  # fmt: skip
    return namespace("aten")._convolution.default, (), values


def is_place(item: object) -> bool:
    """Whether an index is one that `indexed` takes apart."""
    plain = isinstance(item, int | slice | Tensor | None) or item is Ellipsis
    return plain and not isinstance(item, bool)


def indexed(tensor: Tensor, items: Sequence[Any], *value: Any) -> Tensor | None:
    """The part of a tensor at some places, or a write to it, step by step as traces have it."""
    whole, dim, places = tensor, 0, list[Any]()
    count = sum(1 for i in items if i is not None and i is not Ellipsis)
    for item in items:
        if item is None:
            tensor, dim = mindtorch.unsqueeze(tensor, dim), dim + 1
        elif item is Ellipsis:
            dim += whole.dim() - count
        elif isinstance(item, slice):
            start = 0 if item.start is None else item.start
            stop = sys.maxsize if item.stop is None else item.stop
            step = 1 if item.step is None else item.step
            tensor, dim = aten.slice(tensor, dim, start, stop, step), dim + 1
        elif isinstance(item, Tensor):
            places += [None] * (dim - len(places)) + [item]
            dim += item.dim() if item.dtype == mindtorch.bool else 1
        else:
            tensor = mindtorch.select(tensor, dim, item)
    if not value:
        if tensor is whole and not places:
            return mindtorch.ops.aten.alias(tensor)
        return tensor if not places else mindtorch.ops.aten.index(tensor, places)
    new = value[0]
    if places:
        new = new if isinstance(new, Tensor) else mindtorch.tensor(new, dtype=tensor.dtype)
        tensor.index_put_(places, new)
    elif not isinstance(new, Tensor) or (new.dim() == 0 and tensor.dim()):
        mode = state.CURRENT.mode
        mode.filled(tensor, new)
    else:
        tensor.copy_(new if new.shape == tensor.shape else new.expand(tensor.shape))
    return None
