"""Owns what strict loading makes of the names in files: tensors, parameters, containers, bytes."""

from __future__ import annotations

import codecs
from collections import Counter, OrderedDict
from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias

from .._functional.queries import LAYOUTS, layout, sparse_coo
from .._tensor import dtype as dt
from .._tensor.device import META, device as Device
from .._tensor.geometry import Size, geometry
from .._tensor.storage import MetaMemory, Storage
from .._tensor.tensor import Tensor, wrap
from .._tensor.typed_storage import TypedStorage
from .._tensor.untyped_storage import UntypedStorage
from ._guarded import represent

Face: TypeAlias = UntypedStorage | TypedStorage


def _numbers(values: Any, what: str) -> tuple[int, ...]:
    listed = values.__class__ in (tuple, list, Size)
    if not listed or any(n.__class__ is not int or n < 0 for n in values):
        raise RuntimeError(
            f"load: {what} {represent(values)} of a tensor: expected numbers from 0 on"
        )
    return tuple(values)


def rebuild(
    storage: Face, offset: int, size: tuple[int, ...], stride: tuple[int, ...],
    requires_grad: bool = False, hooks: Any = None, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor over a loaded storage (torch._utils._rebuild_tensor_v2)."""
    dtype = storage.dtype if isinstance(storage, TypedStorage) else None
    return rebuild_as(storage, offset, size, stride, requires_grad, hooks, dtype)


def rebuild_as(
    storage: Face, offset: int, size: tuple[int, ...], stride: tuple[int, ...],
    requires_grad: bool, hooks: Any, dtype: Any, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor of a dtype over a loaded storage (torch._utils._rebuild_tensor_v3)."""
    if dtype.__class__ is not dt.dtype or not isinstance(storage, UntypedStorage | TypedStorage):
        raise RuntimeError(f"load: {represent(storage)} of {represent(dtype)} makes no tensor")
    memory = storage._storage
    shape, strides = _numbers(size, "size"), _numbers(stride, "stride")
    if len(shape) != len(strides) or offset.__class__ is not int or offset < 0:
        raise RuntimeError(f"load: size {shape}, stride {strides}, offset {offset} fit no tensor")
    places = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    need = (offset + places + 1) * dtype.itemsize if 0 not in shape else 0
    if need > memory.nbytes:
        raise RuntimeError(
            f"load: a tensor of size {list(shape)}, stride {list(strides)} and offset {offset}"
            f" needs {need} bytes of a storage of {memory.nbytes}; the file is damaged"
        )
    tensor = wrap(geometry(shape, strides, offset, dtype, storage._untyped_storage.device), memory)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    """A tensor without memory (torch._utils._rebuild_meta_tensor_no_storage)."""
    shape, strides = _numbers(size, "size"), _numbers(stride, "stride")
    if dtype.__class__ is not dt.dtype or len(shape) != len(strides):
        raise RuntimeError(
            f"load: {represent(dtype)}, size {shape}, stride {strides} fit no tensor"
        )
    places = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    storage = Storage(MetaMemory(places * dtype.itemsize))
    tensor = wrap(geometry(shape, strides, 0, dtype, META), storage)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_parameter(data: Tensor, requires_grad: bool, hooks: Any) -> Any:
    """A Parameter over a loaded tensor (torch._utils._rebuild_parameter)."""
    from ..nn import Parameter

    if not isinstance(data, Tensor):
        raise RuntimeError(f"load: {represent(data)} is no tensor that a parameter is made of")
    return Parameter(data, requires_grad)


def rebuild_parameter_with_state(data: Tensor, requires_grad: bool, hooks: Any, state: Any) -> Any:
    """A Parameter with attributes (torch._utils._rebuild_parameter_with_state)."""
    return _with_state(rebuild_parameter(data, requires_grad, hooks), state)


def rebuild_from_type(function: Any, kind: Any, args: Any, state: Any) -> Any:
    """A tensor of a subclass, with attributes (torch._tensor._rebuild_from_type_v2)."""
    if args.__class__ is not tuple or not any(function is known for known in REBUILDING):
        raise RuntimeError(f"load: {represent(function)} makes no tensor; the file is damaged")
    tensor = function(*args)
    if function is rebuild_jagged:
        return tensor
    if type(tensor) is not kind:
        if not (isinstance(kind, type) and issubclass(kind, Tensor)):
            raise RuntimeError(
                f"load: {represent(kind)} is no class of tensors; the file is damaged"
            )
        tensor = Tensor._make_subclass(kind, tensor, tensor.requires_grad)
    return _with_state(tensor, state)


def _with_state(tensor: Tensor, state: Any) -> Tensor:
    """The tensor with attributes; RuntimeError for those that would replace what it is."""
    attributes = state[0] if isinstance(state, tuple) and state else state
    if not attributes:
        return tensor
    if not isinstance(attributes, dict) or any(
        name.__class__ is not str or hasattr(type(tensor), name) for name in attributes
    ):
        raise RuntimeError(f"load: {represent(attributes)} are no attributes of a tensor")
    tensor.__dict__.update(attributes)
    return tensor


_LATIN = ("latin1", "latin-1")


def encode(text: Any, encoding: Any) -> bytes:
    """Bytes, as pickles below protocol 3 write them (_codecs.encode)."""
    if text.__class__ is not str or encoding.__class__ is not str or encoding not in _LATIN:
        raise RuntimeError(f"load: cannot make bytes of {represent(text)} by {represent(encoding)}")
    return codecs.encode(text, "latin1")


def byte_array(*args: Any) -> bytearray:
    """A bytearray of bytes that the file holds; never of a size alone."""
    if args and args[0].__class__ in (bytes, list):
        return bytearray(args[0])
    if len(args) == 2 and args[0].__class__ is args[1].__class__ is str and args[1] in _LATIN:
        return bytearray(args[0], "latin1")
    if args:
        raise RuntimeError(f"load: cannot make a bytearray of {represent(args)}")
    return bytearray()


def get_layout(name: str) -> layout:
    """`torch.sparse_coo` and its kin (torch.serialization._get_layout)."""
    if name.__class__ is not str or name not in LAYOUTS:
        raise RuntimeError(f"load: {represent(name)} is no layout")
    return LAYOUTS[name]


def rebuild_sparse(kind: layout, parts: tuple[Any, ...]) -> Tensor:
    """A sparse tensor of its indices and values (torch._utils._rebuild_sparse_tensor)."""
    from ..sparse import sparse_compressed_tensor, sparse_coo_tensor

    if any(isinstance(p, Tensor) and p.numel() * p.itemsize > p._storage.nbytes for p in parts):
        raise RuntimeError("load: a sparse tensor's parts repeat their elements; it is damaged")
    if kind is sparse_coo:
        indices, values, size, *coalesced = parts
        return sparse_coo_tensor(indices, values, size, check_invariants=True,
                                 is_coalesced=bool(coalesced and coalesced[0]))  # fmt: skip
    compressed, plain, values, size = parts
    return sparse_compressed_tensor(
        compressed, plain, values, size, layout=kind, check_invariants=True
    )


def rebuild_nested(buffer: Any, sizes: Any, strides: Any, offsets: Any) -> Any:
    """A nested tensor of one buffer `[n]` and the sizes of its parts `[parts, dims]`
    (torch._utils._rebuild_nested_tensor)."""
    from ..nested._strided import _make

    tensors = all(isinstance(t, Tensor) for t in (buffer, sizes))
    shapes = [Size(_numbers(row, "size")) for row in sizes.tolist()] if tensors else []
    if (
        not tensors
        or [buffer.numel()] != [*buffer.shape]
        or buffer.numel() != sum(map(prod, shapes))
    ):
        raise RuntimeError("load: these parts make no nested tensor; the file is damaged")
    return _make(buffer, shapes)


def rebuild_jagged(parts: Any) -> Any:
    """A jagged tensor of its parts by name (torch.nested's _rebuild_njt)."""
    from ..nested._tensor import _rebuilt

    wants = {"values": Tensor, "offsets": Tensor, "lengths": Tensor | None, "_ragged_idx": int,
             "requires_grad": bool}  # fmt: skip
    if parts.__class__ is not dict or not all(
        isinstance(parts.get(name), kind) for name, kind in wants.items()
    ):
        raise RuntimeError("load: these parts make no jagged tensor; the file is damaged")
    values, offsets, ragged = parts["values"], parts["offsets"], parts["_ragged_idx"]
    if not (offsets.dim() == 1 and offsets.numel() and 0 < ragged <= values.dim()):
        raise RuntimeError("load: these parts make no jagged tensor; the file is damaged")
    return _rebuilt(parts)


class DimRange:
    """What a file says of a tensor's dim for torch's compiler, which is not here."""

    def __setstate__(self, state: object) -> None:
        pass


def rebuild_quantized(
    storage: Face, offset: int, size: tuple[int, ...], stride: tuple[int, ...],
    scales: tuple[Any, ...], requires_grad: bool, hooks: Any,
) -> Tensor:  # fmt: skip
    """A quantised tensor over a loaded storage (torch._utils._rebuild_qtensor)."""
    from .. import _quantized

    kind = storage.dtype if isinstance(storage, TypedStorage) else None
    if (
        kind is None
        or kind not in _quantized._INTEGERS
        or scales.__class__ is not tuple
        or len(scales) < 3
    ):
        raise RuntimeError(f"load: {represent(scales)} are no scales of {represent(kind)}")
    integers = _quantized._INTEGERS[kind][0]
    ints = rebuild_as(storage, offset, size, stride, False, None, integers)
    scheme, scale, zero, *axis = scales
    if (scheme is _quantized.per_tensor_affine) == bool(axis):
        raise RuntimeError(f"load: {represent(scheme)} with axis {represent(axis)}")
    return _quantized.make(ints, scale, zero, axis[0] if axis else None, kind)


REBUILDING: tuple[Callable[..., Tensor], ...] = (
    rebuild, rebuild_as, rebuild_meta, rebuild_parameter, rebuild_parameter_with_state,
    rebuild_sparse, rebuild_quantized, rebuild_jagged,
)  # fmt: skip

_UTILS = {
    "_rebuild_tensor": rebuild,
    "_rebuild_tensor_v2": rebuild,
    "_rebuild_tensor_v3": rebuild_as,
    "_rebuild_meta_tensor_no_storage": rebuild_meta,
    "_rebuild_parameter": rebuild_parameter,
    "_rebuild_nested_tensor": rebuild_nested,
    "_rebuild_sparse_tensor": rebuild_sparse,
    "_rebuild_qtensor": rebuild_quantized,
    "_rebuild_parameter_with_state": rebuild_parameter_with_state,
}

# (module, name) as files write it → what it makes.
NAMES: dict[tuple[str, str], Any] = {
    **{("torch._utils", name): function for name, function in _UTILS.items()},
    ("torch._tensor", "_rebuild_from_type_v2"): rebuild_from_type,
    ("torch.nested._internal.nested_tensor", "_rebuild_njt"): rebuild_jagged,
    ("torch._dynamo.decorators", "_DimRange"): DimRange,
    ("torch.serialization", "_get_layout"): get_layout,
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "Counter"): Counter,
    ("builtins", "set"): set,
    ("__builtin__", "set"): set,
    ("builtins", "complex"): complex,
    ("__builtin__", "complex"): complex,
    ("builtins", "bytearray"): byte_array,
    ("__builtin__", "bytearray"): byte_array,
    ("_codecs", "encode"): encode,
    ("torch", "Size"): Size,
    ("torch", "device"): Device,
    ("torch", "Tensor"): Tensor,
}
STORAGES: dict[str, dt.dtype | None] = {
    **{d.legacy + "Storage": d for d in (*dt.ALL, dt.complex32, *dt.STORED, *dt.QUANTIZED)},
    "UntypedStorage": None,
}


def known(module: str, name: str) -> Any:
    """What strict loading makes of a name; None where it makes nothing of it."""
    value = NAMES.get((module, name))
    if value is not None:
        return value
    if module == "torch" and name in dt._BY_NAME:
        return dt._BY_NAME[name]
    if module == "torch" and name.startswith("per_"):
        from .. import _quantized

        scheme = getattr(_quantized, name, None)
        return scheme if isinstance(scheme, _quantized.qscheme) else None
    if module in ("torch", "torch.storage") and name in STORAGES:
        return name
    if (module, name) == ("torch.nested._internal.nested_tensor", "NestedTensor"):
        from ..nested._tensor import NestedTensor

        return NestedTensor
    if (module, name) == ("torch.nn.parameter", "Parameter"):
        from ..nn import Parameter

        return Parameter
    return None
