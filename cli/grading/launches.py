"""Owns one launch as the grader sees it: elements in shared memory, and what says where they are.

The tensors of a case lie in watched memory, as `check` lays them; results are full of garbage.
In the first phase inputs hold other values (`decoys`) than in the second.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from aclnn_bindings.interface.dtypes import BY_NUMPY
from aclnn_bindings.interface.signature import Kind, OpSignature, Param
from aclnn_bindings.runtime.words import FLOATS, boolean, enumerator, integer, real

from ..conformance.cases.layouts import (
    REPEATED,
    StorageLayout,
    place,
    sentinel_storage,
    strayed,
    view,
)
from ..conformance.cases.recipe import Slot
from ..conformance.operators.placing import FORMATS, TILES, ResultSlot, in_tiles
from ..judge.precision import Array

_ALIGNMENT: Final = 64
_ARRAYS: Final = {Kind.INT_ARRAY: ("ints", int), Kind.BOOL_ARRAY: ("bools", bool),
                  Kind.FLOAT_ARRAY: ("floats", float)}  # fmt: skip


class NotGradableError(ValueError):
    """An operator that a grading cannot call; the message says what of it."""


class Region:
    """Memory that this process shares with those of operators; none of them can shrink it."""

    def __init__(self, size: int) -> None:
        self.descriptor = os.memfd_create("mindtorch-grade", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, size)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        self.memory, self.size, self.used = mmap.mmap(self.descriptor, size), size, 0

    def take(self, size: int) -> int:
        """A place for so many bytes of the launch at hand."""
        start = self.used
        self.used = (start + size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        if self.used > self.size:
            raise NotGradableError(f"a launch needs more than {self.size >> 20} MiB of tensors")
        return start

    def put(self, start: int, array: Array) -> None:
        data = array.reshape(-1).view(np.uint8)
        self.memory[start : start + data.size] = data.tobytes()

    def get(self, start: int, like: Array) -> Array:
        """A copy of what lies there."""
        return np.frombuffer(self.memory[start : start + like.nbytes], np.uint8).view(like.dtype)

    def close(self) -> None:
        self.memory.close()
        os.close(self.descriptor)


@dataclass(slots=True)
class HostTensor:
    """One tensor of a launch: its memory before, where its elements are in it, and its places in
    the region. `name` is the header's; `index` counts results."""

    name: str
    storage: Array
    decoy: Array
    at: StorageLayout
    shape: tuple[int, ...]
    spec: dict[str, Any]
    index: int = -1
    places: dict[str, int] = field(default_factory=dict)

    @property
    def written(self) -> bool:
        return self.index >= 0

    def elements(self, memory: Array) -> Array:
        """The view's elements in a copy of its memory."""
        return np.array(view(memory, self.shape, self.at))

    def strayed(self, now: Array) -> int:
        """Elements that changed and may not have."""
        return strayed(self.storage, now, self.at, self.shape, self.written)


class LaunchMessage:
    """What a server is told of one launch, and the tensors to read from it."""

    def __init__(
        self, signature: OpSignature, enums: Mapping[str, Mapping[str, int]],
        values: Mapping[str, Any], natives: Sequence[Array], decoys: Mapping[int, Array],
        operator: Any, layout: str, garbage: int,
    ) -> None:  # fmt: skip
        self.operator, self.natives, self.decoys = operator, natives, decoys
        self.layout, self.garbage = layout, garbage
        self.tensors: list[HostTensor] = []
        if signature.extra:
            raise NotGradableError(f"{signature.name}: its second phase takes more than four "
                                   "parameters")  # fmt: skip
        self.parameters = [self._form(p, values[p.name], enums) for p in signature.params]

    def _form(self, param: Param, value: Any, enums: Mapping[str, Mapping[str, int]]) -> list[Any]:
        kind = param.kind
        if value is None:
            return ["word", False, 0]
        if kind is Kind.TENSOR:
            return ["tensor", self._tensor(param.name, value)]
        if kind is Kind.TENSOR_LIST:
            return ["tensors", [self._tensor(param.name, v) for v in value]]
        if kind is Kind.SCALAR:
            return ["scalar", _number(value)]
        if kind is Kind.SCALAR_LIST:
            return ["scalars", [_number(v) for v in value]]
        if kind in _ARRAYS:
            name, number = _ARRAYS[kind]
            return [name, [number(v) for v in value]]
        if kind is Kind.STRING:
            return ["text", str(value)]
        return ["word", kind in FLOATS, _word(param, value, enums)]

    def _tensor(self, name: str, value: Any) -> int:
        form = self.operator.format(name)
        if isinstance(value, ResultSlot):
            inner = value.slot
            like = inner.array if inner is not None else _garbage(self.natives[value.index],
                                                                  self.garbage)  # fmt: skip
            layout = "contiguous" if self.layout in REPEATED else self.layout
            tensor = _lay(name, like, like, layout, form, value.index)
        elif isinstance(value, Slot):
            array = in_tiles(value.array) if form == TILES else value.array
            decoy = self.decoys.get(id(value), value.array)
            decoy = in_tiles(decoy) if form == TILES else decoy
            tensor = _lay(name, array, decoy, value.arg.layout, form, -1)
        else:
            raise NotGradableError(f"{name}: {type(value).__name__} is no tensor")
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def place(self, region: Region, nonce: str) -> dict[str, Any]:
        """Give every tensor its places and write what it holds in the first phase."""
        region.used = 0
        for tensor in self.tensors:
            size = tensor.storage.nbytes
            before = region.take(size)
            region.put(before, tensor.decoy)
            same = tensor.decoy is tensor.storage
            now = before if same else region.take(size)
            tensor.places = {"before": before, "now": now, "after": region.take(size)}
        return {
            "step": "prepare", "nonce": nonce, "parameters": self.parameters,
            "tensors": [{**t.places, "bytes": t.storage.nbytes, "written": t.written,
                         "spec": t.spec} for t in self.tensors],
        }  # fmt: skip

    def reveal(self, region: Region) -> None:
        """Write the values that the second phase works on."""
        for tensor in self.tensors:
            if tensor.places["now"] != tensor.places["before"]:
                region.put(tensor.places["now"], tensor.storage)


def _lay(name: str, array: Array, decoy: Array, layout: str, form: str, index: int) -> HostTensor:
    row = BY_NUMPY.get(array.dtype.name)
    if row is None or array.dtype.itemsize * array.size != array.nbytes:
        raise NotGradableError(f"{name}: tensors of {array.dtype.name} are not graded")
    shape = tuple(array.shape)
    at = place("contiguous" if form == TILES else layout, shape)
    storages: list[Array] = []
    for elements in (array, decoy):
        if storages and elements is array:
            storages.append(storages[0])
            continue
        storage = sentinel_storage(at.numel, array.dtype, len(name) + index)
        if array.size:
            view(storage, shape, at)[...] = elements
        storages.append(storage)
    spec = {"shape": shape, "strides": at.strides, "offset": at.offset, "dtype": row.name,
            "storage_numel": at.numel, "format": form or FORMATS.get(len(shape), "ND"),
            "storage_shape": ()}  # fmt: skip
    return HostTensor(name, storages[0], storages[1], at, shape, spec, index)


def _garbage(like: Array, value: int) -> Array:
    """A result's memory before: bytes that no judge takes for numbers."""
    byte = value & 1 if like.dtype == np.bool_ else value
    raw = np.full(like.size * like.itemsize, byte, np.uint8)
    return raw.view(like.dtype).reshape(like.shape)


def _number(value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, complex):
        raise NotGradableError("complex scalars are not graded")
    return plain


def _word(param: Param, value: Any, enums: Mapping[str, Mapping[str, int]]) -> int:
    if param.kind in FLOATS:
        return real(param, value)
    if param.kind is Kind.BOOL:
        return boolean(param, value)
    if param.kind is Kind.ENUM:
        return enumerator(param, value, enums)
    try:
        return integer(param, value)
    except KeyError:
        raise NotGradableError(f"{param.name}: {param.type} is not graded") from None
