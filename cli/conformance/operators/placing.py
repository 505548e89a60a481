"""Owns tensors of an ACLNN case on the device: watched memory around views of any layout."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from aclnn_bindings.call.arrays import DeviceTensor, acl_name, from_host
from aclnn_bindings.call.specs import TensorSpec
from aclnn_bindings.runtime.memory import Buffer

from ...judge.precision import Array, name_of
from ..cases.layouts import StorageLayout, number_of, place, sentinel_storage, strayed, view
from ..cases.recipe import Slot

# The format that CANN's PyTorch adapter gives tensors of a rank.
FORMATS: Final = {3: "NCL", 4: "NCHW", 5: "NCDHW"}
# The inner format of matrices: tiles of 16 rows, each of 32 bytes, column of tiles by column.
TILES: Final = "FRACTAL_NZ"
_TILE_ROWS, _TILE_BYTES = 16, 32


@dataclass(frozen=True, slots=True)
class ResultSlot:
    """A parameter that receives result `index`; `slot` is what it holds before, if that counts.

    `dtype` is ACL's name where it is not the reference's.
    """

    index: int
    slot: Slot | None = None
    dtype: str = ""


@dataclass(slots=True)
class GuardedTensor:
    """A tensor of a case: a view of sentinel-filled memory, and what the memory held before."""

    tensor: DeviceTensor
    before: Any
    at: StorageLayout
    shape: tuple[int, ...]
    dtype: Any
    may_change: bool
    seen: Any = None

    def read(self) -> Array:
        """The view's elements now."""
        self.seen = self._memory()
        return np.array(view(self.seen, self.shape, self.at))

    def trespass(self) -> int:
        """Elements that changed and may not have: all of an input, padding of an output, as it was
        when it was last read."""
        now = self._memory() if self.seen is None else self.seen
        return strayed(self.before, now, self.at, self.shape, self.may_change)

    def _memory(self) -> Array:
        now = np.empty_like(self.before)
        if now.nbytes:
            self.tensor.buffer.read(now.view(np.uint8))
        return now

    def close(self) -> None:
        self.tensor.close()


# Elements of four bits by numpy's name: two lie in a byte, the first in its low half.
_HALVES: Final = {"int4": "INT4", "float4_e2m1fn": "FLOAT4_E2M1"}
_MARGIN: Final = 64  # bytes behind them that nobody may write


@dataclass(slots=True)
class PackedInt4:
    """A contiguous tensor of four-bit elements, and the bytes that the memory held before."""

    tensor: DeviceTensor
    base: DeviceTensor
    before: Array
    shape: tuple[int, ...]
    dtype: Any
    may_change: bool

    def read(self) -> Array:
        """The elements now, one to a byte."""
        codes = self.base.numpy()[:-_MARGIN]
        each = np.stack([codes & 15, codes >> 4], -1).reshape(-1)[: prod(self.shape)]
        return np.array(each.view(self.dtype).reshape(self.shape))

    def trespass(self) -> int:
        """Bytes that changed and may not have: all of an input, those behind an output."""
        first = len(self.before) - _MARGIN if self.may_change else 0
        return int((self.base.numpy()[first:] != self.before[first:]).sum())

    def close(self) -> None:
        self.base.close()


def _lay_halves(cann: Any, array: Array, may_change: bool, format: str) -> PackedInt4:
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & 15
    even = np.pad(codes, (0, codes.size % 2))
    storage = np.append(even[::2] | even[1::2] << 4, sentinel_storage(_MARGIN, np.dtype(np.uint8)))
    base = from_host(cann.runtime, storage)
    name = _HALVES[name_of(array)]
    seen = TensorSpec.of(array.shape, name, format or FORMATS.get(array.ndim, "ND"))
    tensor = DeviceTensor(base.buffer, seen)
    return PackedInt4(tensor, base, storage, tuple(array.shape), array.dtype, may_change)


def in_tiles(array: Array) -> Array:
    """[..., k, n] as [..., columns of tiles, rows of tiles, 16, columns of a tile]; 0 beyond."""
    wide = _TILE_BYTES // array.itemsize
    *batch, rows, columns = array.shape
    pads = [(0, 0)] * len(batch) + [(0, -rows % _TILE_ROWS), (0, -columns % wide)]
    padded = np.pad(array, pads)
    cut = padded.reshape(*batch, padded.shape[-2] // _TILE_ROWS, _TILE_ROWS, -1, wide)
    return np.ascontiguousarray(np.moveaxis(cut, -2, -4))


def lay(
    cann: Any, array: Array, layout: str, may_change: bool = False, format: str = ""
) -> GuardedTensor | PackedInt4:
    """A tensor with these elements on the current device; `format` "" goes by rank. Four-bit
    elements are contiguous in any layout."""
    if name_of(array) in _HALVES:
        return _lay_halves(cann, array, may_change, format)
    shape = tuple(array.shape)
    at = place(layout, shape)
    storage = sentinel_storage(at.numel, array.dtype, number_of(array))
    if prod(shape):
        view(storage, shape, at)[...] = array
    form = format or FORMATS.get(len(shape), "ND")
    spec = TensorSpec(shape, at.strides, at.offset, acl_name(array.dtype), at.numel, form)
    buffer = Buffer(cann.runtime.current_stream(), storage.nbytes)
    buffer.write(storage.view(np.uint8))
    return GuardedTensor(DeviceTensor(buffer, spec), storage, at, shape, array.dtype, may_change)


def blank(
    cann: Any, like: Array, layout: str, value: int, format: str = ""
) -> GuardedTensor | PackedInt4:
    """An output of `like`'s shape and dtype, full of garbage `value` (a byte)."""
    raw = np.full(like.size * like.itemsize, value & 1 if like.dtype == np.bool_ else value,
                  np.uint8)  # fmt: skip
    return lay(cann, raw.view(like.dtype).reshape(like.shape), layout, True, format)
