"""Owns Geometry: how elements lie in a storage, interned so that plans are found by identity."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from operator import index
from typing import Any, SupportsIndex

from .._compat.class_names import CClass
from .device import device as Device
from .dtype import dtype as Dtype

_LIMIT = 1 << 16
_table: dict[tuple[Any, ...], Geometry] = {}


class Size(tuple, metaclass=CClass):  # type: ignore[type-arg]
    """A shape (torch.Size): a tuple of ints with `numel()`."""

    __slots__ = ()

    def __new__(cls, iterable: Iterable[Any] = ()) -> Size:
        """A shape from ints, or what stands for one; TypeError in torch's words for others."""
        items = tuple(iterable)
        for at, item in enumerate(items):
            if item.__class__ is not int:
                try:
                    items = (*items[:at], index(item), *items[at + 1 :])
                except TypeError:
                    raise TypeError(
                        "torch.Size() takes an iterable of 'int' (item"
                        f" {at} is '{type(item).__name__}')"
                    ) from None
        return tuple.__new__(cls, items)

    def numel(self) -> int:
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __radd__(self, other: Any) -> Size:
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __getitem__(self, at: Any) -> Any:
        item = tuple.__getitem__(self, at)
        return tuple.__new__(Size, item) if at.__class__ is slice else item

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            kind = type(other).__name__
            if hasattr(other, "__radd__") and not hasattr(other, "_geom"):
                return NotImplemented
            raise TypeError(f"can only concatenate tuple (not {kind}) to torch.Size")
        return Size(tuple.__add__(self, other))

    def __mul__(self, other: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, other))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return (Size, (tuple(self),))


class Geometry:
    """Shape, strides and offset (in elements), dtype and device; hashed by identity.

    Make one with `geometry()`. Equal geometries are one object until the table overflows and is
    emptied; then two may coexist, which costs a plan and never correctness.
    """

    __slots__ = (
        "_np_args", "contiguous", "device", "dtype", "extent", "ndim", "np_strides", "numel",
        "offset", "shape", "strides",
    )  # fmt: skip
    shape: Size
    strides: tuple[int, ...]
    offset: int
    dtype: Dtype
    device: Device
    ndim: int
    numel: int
    contiguous: bool
    extent: int  # elements from the storage's start to the last one reached
    np_strides: tuple[int, ...]  # in bytes
    _np_args: tuple[Any, ...]

    @property
    def np_args(self) -> tuple[Any, ...]:
        """What numpy makes an array of: shape, dtype and offset in bytes."""
        try:
            return self._np_args
        except AttributeError:  # dtypes of ml_dtypes are imported at first use
            self._np_args = (self.shape, self.dtype.np, self.offset * self.dtype.itemsize)
            return self._np_args

    def __repr__(self) -> str:
        return (
            f"Geometry(shape={tuple(self.shape)}, strides={self.strides}, offset={self.offset}, "
            f"dtype={self.dtype}, device='{self.device}')"
        )

    def at(
        self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int | None = None
    ) -> Geometry:
        """Another view of the same storage, `offset` elements from its start."""
        offset = self.offset if offset is None else offset
        return geometry(shape, strides, offset, self.dtype, self.device)

    def fresh(
        self,
        shape: tuple[int, ...] | None = None,
        dtype: Dtype | None = None,
        strides: tuple[int, ...] | None = None,
    ) -> Geometry:
        """A new storage on the same device; contiguous unless `strides` is given."""
        shape = self.shape if shape is None else shape
        if strides is None:
            strides = contiguous_strides(shape)
        return geometry(shape, strides, 0, dtype or self.dtype, self.device)

    def on(self, device: Device) -> Geometry:
        """The same layout on another device."""
        return geometry(self.shape, self.strides, self.offset, self.dtype, device)

    @property
    def dense(self) -> bool:
        """Whether every element has its own place and no place is left out."""
        expected = 1
        for size, stride in sorted(zip(self.shape, self.strides, strict=True), key=_by_stride):
            if size == 1:
                continue
            if stride != expected:
                return False
            expected *= size
        return True


def _by_stride(pair: tuple[int, int]) -> tuple[int, int]:
    return (pair[1], pair[0])


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements, as torch gives them (a size of 0 counts as 1)."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size if size > 1 else 1
    return tuple(reversed(strides))


_CHANNELS_LAST = {"channels_last": 4, "channels_last_3d": 5}  # and the rank each is for


def format_strides(shape: tuple[int, ...], memory_format: str) -> tuple[int, ...]:
    """Strides of a dense tensor [N, C, ...] by the name of its memory format.

    RuntimeError in torch's words for a rank that `channels_last` is not for.
    """
    rank = _CHANNELS_LAST.get(memory_format)
    if rank is None:
        return contiguous_strides(shape)
    if len(shape) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format} format")
    last = contiguous_strides((shape[0], *shape[2:], shape[1]))
    return (last[0], last[-1], *last[1:-1])


def follows(geom: Geometry, memory_format: str) -> bool:
    """Whether elements lie in a memory format's order without gaps; False for another rank."""
    if _CHANNELS_LAST.get(memory_format, geom.ndim) != geom.ndim:
        return False
    strides = format_strides(geom.shape, memory_format)
    return all(n == 1 or s == w for n, s, w in zip(geom.shape, geom.strides, strides, strict=True))


def format_name(memory_format: object) -> str:
    """`contiguous`, `preserve`, `channels_last` …, from torch.contiguous_format and the like."""
    if not isinstance(memory_format, str) and not hasattr(memory_format, "name"):
        kind = type(memory_format).__name__
        raise TypeError(f"argument 'memory_format' must be torch.memory_format, not {kind}")
    return str(memory_format).removeprefix("torch.").removesuffix("_format")


def geometry(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    dtype: Dtype,
    device: Device,
) -> Geometry:
    """The one Geometry with these values."""
    key = (shape, strides, offset, dtype, device)
    interned = _table.get(key)
    if interned is None:
        interned = _new(Size(shape), tuple(strides), offset, dtype, device)
        if len(_table) >= _LIMIT:
            _table.clear()
        interned = _table.setdefault(
            (interned.shape, interned.strides, offset, dtype, device), interned
        )
    return interned


_MOST = (1 << 63) - 1  # elements and bytes are counted in int64, as torch counts them


_SURELY = 1 << 48  # fewer elements than this are counted in int64, of any dtype


def _refuse_size(shape: Size, strides: tuple[int, ...], itemsize: int) -> None:
    """RuntimeError in torch's words for sizes that no memory has."""
    for n in shape:
        if n > _MOST:
            raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
        if n < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: {list(shape)}"
            )
    full = prod(n for n in shape if n)
    reach = sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True) if n)
    if strides == contiguous_strides(shape) and full * itemsize > _MOST:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    if full > _MOST:
        raise RuntimeError("numel: integer multiplication overflow")
    if (reach + 1) * itemsize > _MOST or min(strides, default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and"
            f" strides={list(strides)}"
        )


def _new(
    shape: Size, strides: tuple[int, ...], offset: int, dtype: Dtype, device: Device
) -> Geometry:
    rows = contiguous_strides(shape)
    numel = prod(shape)
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if strides != rows or numel > _SURELY or min(shape, default=0) <= 0:
        _refuse_size(shape, strides, dtype.itemsize)
    geom = object.__new__(Geometry)
    geom.shape = shape
    geom.strides = strides
    geom.offset = offset
    geom.dtype = dtype
    geom.device = device
    geom.ndim = len(shape)
    geom.numel = numel
    itemsize = dtype.itemsize
    geom.np_strides = tuple([s * itemsize for s in strides])
    reach = sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)]) if numel else -1
    geom.extent = offset + 1 + reach
    geom.contiguous = (
        strides == rows
        or numel == 0
        or all(n == 1 or s == r for n, s, r in zip(shape, strides, rows, strict=True))
    )
    return geom


def contiguous(shape: tuple[int, ...], dtype: Dtype, device: Device) -> Geometry:
    """A row-major Geometry at offset 0."""
    key = (shape, dtype, device)
    interned = _table.get(key)
    if interned is None:
        interned = geometry(shape, contiguous_strides(shape), 0, dtype, device)
        interned = _table.setdefault((interned.shape, dtype, device), interned)
    return interned
