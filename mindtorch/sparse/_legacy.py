"""Owns `torch.sparse.FloatTensor` and its siblings: legacy classes of tensors by coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch

from .._compat.argument_parser import refusal, signature
from .._compat.warn_once import warn_once
from .._functional.queries import layout, sparse_coo
from .._tensor import dtype as dt
from .._tensor.tensor import Tensor
from ._build import sparse_coo_tensor
from ._tensor import SparseTensor

_SIGNATURES = (
    "new(*, Device? device=None)",
    "new(Tensor indices, Tensor values, *, Device? device=None)",
    "new(Tensor indices, Tensor values, SymIntArrayRef size, *, Device? device=None)",
    "new(SymIntArrayRef size, *, Device? device=None)",
)
_NAMES = ("bfloat16", "uint8", "int8", "float64", "float32", "float16", "int32", "int64", "int16")


class _SparseTensorType(type):
    """`isinstance(x, torch.sparse.FloatTensor)` asks for the layout, the dtype and the device."""

    dtype: dt.dtype
    layout: layout = sparse_coo
    is_sparse = True
    is_cuda = False

    def __instancecheck__(cls, value: object) -> bool:
        return (
            isinstance(value, Tensor)
            and value.layout is sparse_coo
            and value.dtype is cls.dtype
            and value.device.type == "cpu"
        )

    def __call__(cls, *args: Any, **options: Any) -> Tensor:
        return _construct(cls.dtype, args, options)


def _construct(dtype: dt.dtype, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    """A tensor of a size, or of indices and values, whose dtype it then has."""
    if args and args[0].__class__ is int:
        args = (args,)  # the sizes one by one
    if message := refusal([signature(row) for row in _SIGNATURES], args, options):
        raise message
    warn_once(
        "torch.sparse.SparseTensor() is deprecated.  Please use"
        " torch.sparse_coo_tensor((0,), dtype=)."
    )
    device = options.get("device")
    parts = [*args, *(options[n] for n in ("indices", "values", "size") if n in options)]
    if len(parts) < 2:
        size: Sequence[int] = parts[0] if parts else (0,)
        return sparse_coo_tensor(size=size, dtype=dtype, device=device, check_invariants=False)
    if parts[0].dtype is not mindtorch.int64:
        raise RuntimeError("indices must be an int64 tensor")
    return sparse_coo_tensor(*parts, device=device)


def _new(self: SparseTensor, *args: Any, **options: Any) -> Tensor:
    """The legacy constructor with this tensor's dtype and device, by coordinates."""
    return _construct(self.dtype, args, {"device": self.device, **options})


setattr(SparseTensor, "new", _new)  # noqa: B010


def legacy_types() -> dict[str, type]:
    """`FloatTensor` and the others, by name."""
    types: dict[str, type] = {}
    for name in _NAMES:
        scope = {"dtype": getattr(mindtorch, name), "__module__": "torch.sparse"}
        legacy = f"{scope['dtype'].legacy}Tensor"
        types[legacy] = _SparseTensorType(legacy, (), scope)
    return types
