"""Owns the metadata of arguments, hashable and without addresses; refuses to own memory."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final

from ..errors import ArgumentError
from ..interface.dtypes import Number, dtype, encode, natural_dtype

_DOUBLE: Final = struct.Struct("<d")


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides of `shape`, in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return tuple(strides)


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A view over a storage: shape and strides in elements, `offset` in elements from its base.

    `storage_shape` is the storage's shape; (storage_numel,) unless a private format such as
    FRACTAL_NZ needs its own (aclCreateTensor document, CANN 9.1).
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    dtype: str = "FLOAT"
    storage_numel: int = 1
    format: str = "ND"
    storage_shape: tuple[int, ...] = field(default=())
    _hash: int = field(init=False, repr=False, compare=False, default=0)
    _sound: bool = field(init=False, repr=False, compare=False, default=False)

    def __hash__(self) -> int:
        if not self._hash:
            view = (self.shape, self.strides, self.offset, self.dtype, self.storage_numel)
            object.__setattr__(self, "_hash", hash((view, self.format, self.storage_shape)))
        return self._hash

    @classmethod
    def of(cls, shape: Sequence[int], dtype: str = "FLOAT", format: str = "ND") -> TensorSpec:
        """The spec of a contiguous tensor that is its whole storage."""
        dims = tuple(int(n) for n in shape)
        return cls(dims, contiguous_strides(dims), 0, dtype, prod(dims), format)

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole storage."""
        return dtype(self.dtype).bytes_for(self.storage_numel)

    @property
    def contiguous(self) -> bool:
        return self.numel < 2 or self.strides == contiguous_strides(self.shape)

    def check(self, name: str) -> None:
        """ArgumentError unless the view lies inside its storage; CANN does not check that."""
        if self._sound:
            return
        dtype(self.dtype)
        if len(self.shape) != len(self.strides):
            raise ArgumentError(
                f"{name}: shape {self.shape} has {len(self.shape)} dimensions, strides "
                f"{self.strides} {len(self.strides)}; give one stride per dimension"
            )
        if min(self.shape, default=0) < 0 or min(self.strides, default=0) < 0 or self.offset < 0:
            raise ArgumentError(
                f"{name}: shape {self.shape}, strides {self.strides}, offset {self.offset}: "
                "none may be negative"
            )
        last = self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        if not self.storage_shape and self.numel and last >= self.storage_numel:
            raise ArgumentError(
                f"{name}: the view reaches element {last} of a storage of {self.storage_numel}; "
                "give the storage's base, its number of elements and the offset"
            )
        object.__setattr__(self, "_sound", True)


class ScalarSpec:
    """A scalar's value in a dtype; equal when the encoded bytes are, so -0.0 is not 0.0."""

    dtype: str
    data: bytes

    __slots__ = ("_hash", "data", "dtype", "value")

    def __init__(self, value: Number, dtype: str | None = None) -> None:
        self.value: bool | int | float | complex = value
        if dtype is None and type(value) is float:
            self.dtype, self.data = "DOUBLE", _DOUBLE.pack(value)
        else:
            self.dtype = dtype or natural_dtype(value)
            self.data = encode(value, self.dtype)
        self._hash = hash((self.data, self.dtype))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScalarSpec):
            return NotImplemented
        return self.data == other.data and self.dtype == other.dtype

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"ScalarSpec({self.value!r}, {self.dtype!r})"


@dataclass(frozen=True, slots=True)
class RawHandle:
    """The address of a descriptor or handle that the caller made and keeps; nothing checks it."""

    address: int


def tensor_specs(arguments: Sequence[object]) -> Iterator[TensorSpec]:
    """Every tensor among normalised arguments, members of lists too, in order."""
    for argument in arguments:
        if isinstance(argument, TensorSpec):
            yield argument
        elif isinstance(argument, tuple):
            yield from (item for item in argument if isinstance(item, TensorSpec))
