"""Owns TypedStorage: bytes with a dtype, which torch keeps for older programs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from .._compat.warn_once import warn
from . import dtype as dt
from .device import DeviceLike, device as Device
from .dtype import dtype as Dtype, get_default_dtype as default_dtype
from .storage import Storage
from .types import Array, Self
from .untyped_storage import UntypedStorage, listing

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
_FORMS = (
    " received an invalid combination of arguments. Expected one of:\n"
    " * (*, torch.device device, torch.dtype dtype)\n"
    " * (int size, *, torch.device device, torch.dtype dtype)\n"
    " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
    " * (*, UntypedStorage wrap_storage, torch.dtype dtype)"
)
_LEGACY_FORMS = (
    ".__new__ received an invalid combination of arguments. Expected one of:\n"
    " * no arguments\n * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)"
)
# Methods that cast, and to what.
CASTS = {
    "double": dt.float64, "float": dt.float32, "half": dt.float16, "long": dt.int64,
    "int": dt.int32, "short": dt.int16, "char": dt.int8, "byte": dt.uint8, "bool": dt.bool,
    "bfloat16": dt.bfloat16, "complex_double": dt.complex128, "complex_float": dt.complex64,
    "float8_e5m2": dt.float8_e5m2, "float8_e4m3fn": dt.float8_e4m3fn,
    "float8_e5m2fnuz": dt.float8_e5m2fnuz, "float8_e4m3fnuz": dt.float8_e4m3fnuz,
}  # fmt: skip
# dtypes of which torch has a class of storages.
LEGACY = (
    "BFloat16", "Bool", "Byte", "Char", "ComplexDouble", "ComplexFloat", "Double", "Float", "Half",
    "Int", "Long", "QInt32", "QInt8", "QUInt2x4", "QUInt4x2", "QUInt8", "Short",
)  # fmt: skip


@functools.cache
def warn_of_removal() -> None:
    """What torch says, once whatever `set_warn_always` says, of storages with a dtype."""
    warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will"
        " be the only storage class. This should only matter to you if you are using storages"
        " directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead"
        " of tensor.storage()",
    )


def deprecated(function: FunctionT) -> FunctionT:
    """A method that says that its class is deprecated."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **named: Any) -> Any:
        warn_of_removal()
        return function(self, *args, **named)

    return cast("FunctionT", method)


def _is_size(value: object) -> bool:
    return isinstance(value, int | np.integer)


class TypedStorage:
    """Bytes read as one dtype: `TypedStorage(size or numbers, dtype=…)`, or `tensor.storage()`.

    `data` is the flat numpy array on cpu, None on meta.
    """

    __module__ = "mindtorch.storage"
    is_sparse: bool = False
    dtype: Dtype
    _untyped_storage: UntypedStorage

    def __new__(
        cls, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None,
        _internal: bool = False,
    ) -> Self:  # fmt: skip
        """A legacy class gives a TypedStorage of its dtype."""
        kind = cls.__dict__.get("dtype")
        if kind is None:
            return super().__new__(cls)
        forms = f"{cls}{_LEGACY_FORMS}\n"
        for name, value in (("device", device), ("dtype", dtype)):
            if value is not None:
                raise RuntimeError(f"{forms}Keyword argument '{name}' cannot be specified")
        if wrap_storage is None:
            if len(args) > 1:
                raise RuntimeError(f"{forms}Too many positional arguments")
            if args and not _is_size(args[0]) and not isinstance(args[0], Sequence):
                raise TypeError(f"{forms}Argument type not recognized: {type(args[0])}")
        elif args:
            raise RuntimeError(
                f"{forms}No positional arguments should be given when using 'wrap_storage'"
            )
        elif not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(
                f"{forms}Argument 'wrap_storage' must be UntypedStorage, but got"
                f" {type(wrap_storage)}"
            )
        elif wrap_storage.device.type != "cpu":
            raise RuntimeError(
                f"{forms}Device of 'wrap_storage' must be cpu, but got {wrap_storage.device.type}"
            )
        if not _internal:
            warn_of_removal()
        result: Any = TypedStorage(*args, wrap_storage=wrap_storage, dtype=kind, _internal=True)
        return result

    def __init__(
        self, *args: Any, device: DeviceLike | None = None, dtype: Dtype | None = None,
        wrap_storage: UntypedStorage | None = None, _internal: bool = False,
    ):  # fmt: skip
        if not _internal:
            warn_of_removal()
        refusal = _refusal(args, device, dtype, wrap_storage)
        if refusal is not None:
            raise refusal
        self.dtype = default_dtype() if dtype is None else dtype
        if wrap_storage is None:
            first = args[0] if args else 0
            if _is_size(first):
                wrap_storage = UntypedStorage(int(first) * self.dtype.itemsize, device=device)
            elif isinstance(first, str):
                raise TypeError("new(): invalid data type 'str'")
            else:
                host = UntypedStorage.of(Storage(np.array(first, self.dtype.np)), Device("cpu"))
                target = Device("cpu") if device is None else Device(device)
                if target.type == "meta":
                    wrap_storage = UntypedStorage(len(host), device=target)
                else:
                    wrap_storage = host.to(device=target)
        self._untyped_storage = wrap_storage

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'torch.storage.TypedStorage' object has no attribute '{name}'")

    @property
    def _storage(self) -> Storage:
        return self._untyped_storage._storage

    @property
    def _dtype(self) -> Dtype:
        return self.dtype

    @property
    def device(self) -> Device:
        """Where the bytes are."""
        warn_of_removal()
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether the bytes are on a CUDA device."""
        return self.device.type == "cuda"

    @property
    def is_hpu(self) -> bool:
        """Whether the bytes are on an HPU."""
        return self.device.type == "hpu"

    @property
    def filename(self) -> str | None:
        """The file that writes reach; None for memory of this process."""
        return self._untyped_storage.filename

    @property
    def data(self) -> Any:
        """The flat numpy array; None on meta."""
        place = self._untyped_storage.device
        if place.type == "meta":
            return None
        if place.type != "cpu":
            raise RuntimeError(
                f"storage().data is host memory; this is on {place}: call .cpu() first"
            )
        return self._array()

    def _array(self) -> Array:
        array: Array = self._storage.bytes.view(self.dtype.np)
        return array

    def elements(self) -> Any:
        """The elements as a tensor `[size]` over the same memory."""
        return self._untyped_storage.as_tensor().view(self.dtype)

    def _over(self, untyped: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype, _internal=True)

    def _size(self) -> int:
        return self._storage.nbytes // self.dtype.itemsize

    def _nbytes(self) -> int:
        return self._storage.nbytes

    def _data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    size = deprecated(_size)
    __len__ = size
    nbytes = deprecated(_nbytes)
    data_ptr = deprecated(_data_ptr)

    @deprecated
    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @deprecated
    def untyped(self) -> UntypedStorage:
        """The bytes alone."""
        return self._untyped_storage

    def resizable(self) -> bool:
        """Whether `resize_` can change its memory."""
        return self._untyped_storage.resizable()

    @deprecated
    def get_device(self) -> int | None:
        """The device's index; None on cpu."""
        return self._untyped_storage.get_device()

    @deprecated
    def tolist(self) -> list[Any]:
        return list(self._readable().tolist())

    @deprecated
    def __iter__(self) -> Iterator[Any]:
        return iter(self._readable().tolist())

    def __sizeof__(self) -> int:
        """Those of the object and of its memory."""
        return object.__sizeof__(self) + self._nbytes()

    def _readable(self) -> Any:
        """The elements; NotImplementedError where there are none to read."""
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        return self.elements()

    def _refuse_index(self, index: object) -> None:
        if not isinstance(index, int | slice):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")

    @deprecated
    def __getitem__(self, idx: Any) -> Any:
        """One element; RuntimeError for a slice, which only untyped storages have."""
        if isinstance(idx, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        self._refuse_index(idx)
        elements = self._readable()
        if not -self._size() <= idx < self._size():
            raise IndexError(f"index {idx} out of range for storage of size {self._size()}")
        return elements[idx].item()

    @deprecated
    def __setitem__(self, idx: Any, value: Any) -> None:
        self._refuse_index(idx)
        self.elements()[idx] = value

    @deprecated
    def fill_(self, value: Any) -> TypedStorage:
        """Make every element `value`."""
        self.elements().fill_(value)
        return self

    @deprecated
    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the other's bytes; RuntimeError where they are not as many."""
        other = source._untyped_storage if isinstance(source, TypedStorage) else source
        self._untyped_storage.copy_(other, non_blocking)
        return self

    @deprecated
    def clone(self) -> TypedStorage:
        """A copy on the same device."""
        return self._over(self._untyped_storage.clone())

    @deprecated
    def cpu(self) -> TypedStorage:
        """A copy on the cpu, or the same bytes where they are there."""
        return self._over(self._untyped_storage.cpu())

    @deprecated
    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """A copy on a CUDA device."""
        return self._over(self._untyped_storage.cuda(device, non_blocking))

    @deprecated
    def hpu(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """A copy on an HPU; AssertionError without one."""
        return self._over(self._untyped_storage.hpu(device, non_blocking))

    @deprecated
    def npu(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """A copy on an NPU."""
        return self._over(self._untyped_storage.npu(device, non_blocking))

    @deprecated
    def to(self, *, device: DeviceLike, non_blocking: bool = False) -> TypedStorage:
        """A copy on a device, or the same bytes where they are there."""
        untyped = self._untyped_storage.to(device=Device(device), non_blocking=non_blocking)
        return self._over(untyped)

    @deprecated
    def pin_memory(self, device: DeviceLike | None = None) -> TypedStorage:
        """A copy in memory that a device reads directly."""
        return self._over(self._untyped_storage.pin_memory(device))

    @deprecated
    def is_pinned(self, device: DeviceLike | None = None) -> bool:
        """Whether `pin_memory` result its memory."""
        return self._untyped_storage.is_pinned(device)

    @deprecated
    def resize_(self, size: int) -> None:
        """Change the number of elements, keeping what fits."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def _legacy_name(self) -> str | None:
        name = self.dtype.legacy if self._untyped_storage.device.type == "cpu" else None
        return f"{name}Storage" if name in LEGACY else None

    @deprecated
    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the legacy class; with a class or its name, the bytes in one."""
        if dtype is not None:
            return self._untyped_storage.type(dtype, non_blocking)
        name = self._legacy_name()
        return "torch.storage.TypedStorage" if name is None else f"torch.{name}"

    def pickle_storage_type(self) -> str:
        """The legacy class that a file names."""
        if self.dtype.legacy not in LEGACY:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return f"{self.dtype.legacy}Storage"

    @classmethod
    def _from_buffer(
        cls, *args: Any, dtype: Any = None, device: Any = None, **named: Any
    ) -> TypedStorage:
        kind = cls.__dict__.get("dtype")
        if kind is not None and (dtype is not None or device is not None):
            name = "dtype" if dtype is not None else "device"
            raise RuntimeError(
                "from_buffer: 'dtype' can only be specified in UntypedStorage.from_buffer and"
                " TypedStorage.from_buffer"
                if name == "dtype"
                else "from_buffer: 'device' can only be specified in UntypedStorage.from_buffer"
                " and TypedStorage.from_buffer"
            )
        kind = kind or dtype or default_dtype()
        untyped = UntypedStorage.from_buffer(*args, dtype=kind, **named)
        if device is not None:
            untyped = untyped.to(device=Device(device))
        return TypedStorage(wrap_storage=untyped, dtype=kind, _internal=True)

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """A copy of a buffer's numbers: `IntStorage.from_buffer(buffer, "little")`."""
        return cls._from_buffer(*args, **kwargs)

    @classmethod
    def from_file(cls, filename: Any, shared: bool, size: int) -> TypedStorage:
        """A file of `size` elements mapped into memory, by a legacy class."""
        kind = cls.__dict__.get("dtype")
        if kind is None:
            raise RuntimeError("from_file can only be called on derived classes")
        untyped = UntypedStorage.from_file(filename, shared, size * kind.itemsize)
        return TypedStorage(wrap_storage=untyped, dtype=kind, _internal=True)

    def __copy__(self) -> TypedStorage:
        return self._over(self._untyped_storage.clone())

    def __repr__(self) -> str:
        warn_of_removal()
        place = self._untyped_storage.device
        values = self._array() if place.type == "cpu" else None
        return listing(values, f"TypedStorage(dtype={self.dtype!r}, device={place})", self._size())


def _refusal(args: Any, device: Any, dtype: Any, wrap_storage: Any) -> Exception | None:
    """What is wrong with the arguments of TypedStorage, if anything is."""
    forms = f"TypedStorage.__init__{_FORMS}\n"
    if wrap_storage is None:
        if len(args) > 1:
            return RuntimeError(f"{forms}Too many positional arguments")
        if args and not _is_size(args[0]) and not isinstance(args[0], Sequence):
            return TypeError(f"{forms}Argument type not recognized: {type(args[0])}")
        return None
    if args:
        return RuntimeError(
            f"{forms}No positional arguments should be given when using 'wrap_storage'"
        )
    if dtype is None:
        return RuntimeError(f"{forms}Argument 'dtype' must be specified")
    if not isinstance(dtype, Dtype):
        return TypeError(f"{forms}Argument 'dtype' must be torch.dtype, not {type(dtype)}")
    if device is not None:
        return RuntimeError(
            f"{forms}Argument 'device' should not be specified when 'wrap_storage' is given"
        )
    if not isinstance(wrap_storage, UntypedStorage):
        return TypeError(
            f"{forms}Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}"
        )
    return None


class _LegacyMeta(type):
    """`isinstance(storage, torch.FloatStorage)`: asks for the dtype, and for the cpu."""

    dtype: Dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            type(instance) is TypedStorage
            and instance.dtype is cls.dtype
            and instance._untyped_storage.device.type == "cpu"
        )


def typed(dtype: Dtype) -> type[TypedStorage]:
    """`torch.FloatStorage` and its kin."""
    words = f"A typed storage of {dtype}; older than `UntypedStorage`."
    scope = {"dtype": dtype, "_dtype": dtype, "__module__": "mindtorch", "__doc__": words}
    return cast("type[TypedStorage]", _LegacyMeta(f"{dtype.legacy}Storage", (TypedStorage,), scope))


def _cast(name: str, dtype: Dtype) -> None:
    def cast(self: Any) -> TypedStorage:
        typed = isinstance(self, TypedStorage)
        elements = self.elements() if typed else self.as_tensor()
        result = elements.to(dtype, copy=True).untyped_storage()
        return TypedStorage(wrap_storage=result, dtype=dtype, _internal=True)

    cast.__name__ = name
    cast.__doc__ = f"The elements as {dtype}, in new memory."
    for kind, method in ((UntypedStorage, cast), (TypedStorage, deprecated(cast))):
        method.__qualname__ = f"{kind.__name__}.{name}"
        setattr(kind, name, method)


for _name, _dtype in CASTS.items():
    _cast(_name, _dtype)
