"""Owns tensors of an ACLNN case on the device: watched memory around views of any layout."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from aclnn_bindings.call.arrays import DeviceTensor, from_host
from aclnn_bindings.call.specs import TensorSpec
from mindtorch._tensor.types import Array

from ..cases.layouts import Place, place, sentinel_storage, strayed, view
from ..cases.recipe import Slot

# The format that CANN's PyTorch adapter gives tensors of a rank.
FORMATS: Final = {3: "NCL", 4: "NCHW", 5: "NCDHW"}


@dataclass(frozen=True, slots=True)
class Written:
    """A parameter that receives result `index`; `slot` is what it holds before, if that counts.

    `dtype` is ACL's name where it is not the reference's.
    """

    index: int
    slot: Slot | None = None
    dtype: str = ""


@dataclass(slots=True)
class Laid:
    """A tensor of a case: a view of sentinel-filled memory, and what the memory held before."""

    tensor: DeviceTensor
    base: DeviceTensor
    before: Any
    at: Place
    shape: tuple[int, ...]
    dtype: Any
    may_change: bool

    def read(self) -> Array:
        """The view's elements now."""
        return np.array(view(self.base.numpy(), self.shape, self.at))

    def trespass(self) -> int:
        """Elements that changed and may not have: all of an input, padding of an output."""
        return strayed(self.before, self.base.numpy(), self.at, self.shape, self.may_change)

    def close(self) -> None:
        self.base.close()


def lay(cann: Any, array: Array, layout: str, may_change: bool = False, format: str = "") -> Laid:
    """A tensor with these elements on the current device; `format` "" goes by rank."""
    shape = tuple(array.shape)
    at = place(layout, shape)
    storage = sentinel_storage(at.numel, array.dtype)
    if prod(shape):
        view(storage, shape, at)[...] = array
    base = from_host(cann.runtime, storage)
    form = format or FORMATS.get(len(shape), "ND")
    own = base.spec
    seen = TensorSpec(shape, at.strides, at.offset, own.dtype, own.storage_numel, form)
    return Laid(DeviceTensor(base.buffer, seen), base, storage, at, shape, array.dtype, may_change)


def blank(cann: Any, like: Array, layout: str, value: int, format: str = "") -> Laid:
    """An output of `like`'s shape and dtype, full of garbage `value` (a byte)."""
    raw = np.full(like.size * like.itemsize, value & 1 if like.dtype == np.bool_ else value,
                  np.uint8)  # fmt: skip
    return lay(cann, raw.view(like.dtype).reshape(like.shape), layout, True, format)
