"""Owns the Tensor object: its slots and what they alone can answer; refuses to compute.

Operators and methods are attached by `_functional`, autograd's by `_autograd.surface`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tensor.types import Array
from .device import CPU
from .dtype import FLOAT, uint8
from .geometry import Geometry, Size, contiguous
from .loading import load
from .slots import TensorSlots, bind, fresh, over
from .storage import Storage, address
from .subclass import (
    ASKING_OPERATORS,
    OPERATORS_OF_ROWS,
    asking,
    asking_operator,
    asking_to_set,
    disabled_torch_function_impl,
    showing,
)
from .typed_storage import TypedStorage, warn_of_removal
from .untyped_storage import UntypedStorage

if TYPE_CHECKING:
    from ._methods import Methods  # what rows publish, rendered for type checkers
    from .device import device as Device
    from .dtype import dtype as Dtype
else:
    Methods = TensorSlots

# As many as an array of numpy has; torch's reductions have this limit too.
MOST_DIMS = 64
TOO_MANY_DIMS = f"only tensors with up to {MOST_DIMS} dims are supported"


def _above(cls: type) -> list[type]:
    """A subclass of Tensor with the classes between the two."""
    return list(cls.__mro__[: cls.__mro__.index(Tensor)])


class TensorType(type):
    """Loads rows when an attribute of the class is asked for before any tensor was made."""

    def __init__(cls, name: str, bases: tuple[type, ...], scope: dict[str, Any], **_: object):
        super().__init__(name, bases, scope)
        function = next((c.__dict__["__torch_function__"] for c in cls.__mro__
                         if "__torch_function__" in c.__dict__), None)  # fmt: skip
        if bases != (Methods,) and function is not disabled_torch_function_impl:
            cls._geom = showing(TensorSlots.__dict__["_geom"])
            if "__getattribute__" not in scope and not hasattr(cls, "_row_call"):
                type.__setattr__(cls, "__getattribute__", asking(Tensor))
                if "__setattr__" not in scope:
                    type.__setattr__(cls, "__setattr__", asking_to_set(Tensor))
                for name in ASKING_OPERATORS.difference(*(c.__dict__ for c in _above(cls))):
                    type.__setattr__(cls, name, asking_operator(Tensor, name))

    def __getattr__(cls, name: str) -> Any:
        if (not name.startswith("__") or name in OPERATORS_OF_ROWS) and load():
            return getattr(cls, name)
        raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")


class Tensor(Methods, metaclass=TensorType):
    """An n-dimensional array on a device, with torch's semantics.

    `_geom` says how elements lie in `_storage`; `_array` is the numpy view of a cpu tensor, made
    on first use; `_fn` and `_nr` are the gradient edge, None where no gradient is needed;
    `_base` is the tensor that this one is a view of. `_creation`, `_grad`, `_names` and `_retains`
    are None where they were not set. There is no `__getattr__`: with one, CPython specializes no
    read of a slot, and each costs 40 ns instead of 5.
    """

    __slots__ = ("__dict__", "__weakref__")
    _geom: Geometry
    _storage: Storage
    _array: Any
    _fn: Any
    _nr: int
    _base: Tensor | None
    _grad: Tensor | None
    _creation: str | None
    _retains: bool | None
    _split_by: Any
    layout: Any  # `_functional.queries` puts it here
    _version: int  # and `_autograd.surface` these
    _backward_hooks: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """The legacy constructor; `_queries` puts its own here."""
        load()
        return cls(*args, **kwargs)

    @property
    def shape(self) -> Size:
        return self._geom.shape

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one dimension of it; IndexError when out of range."""
        if dim is None:
            return self._geom.shape
        return self._geom.shape[_wrap(dim, self._geom.ndim, "size")]

    def stride(self, dim: int | None = None) -> Any:
        """The strides in elements, or one of them; IndexError when out of range."""
        if dim is None:
            return self._geom.strides
        return self._geom.strides[_wrap(dim, self._geom.ndim, "stride")]

    def storage_offset(self) -> int:
        """The first element's place in the storage, in elements."""
        return self._geom.offset

    @property
    def dtype(self) -> Dtype:
        return self._geom.dtype

    @property
    def device(self) -> Device:
        return self._geom.device

    @property
    def ndim(self) -> int:
        return self._geom.ndim

    def dim(self) -> int:
        """The number of dimensions."""
        return self._geom.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return self._geom.numel

    nelement = numel

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._geom.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self._geom.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._geom.numel * self._geom.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Whether the dtype is a real floating point type."""
        return self._geom.dtype.category == FLOAT

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self._geom.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the dtype has negative values."""
        return self._geom.dtype.is_signed

    is_sparse = is_quantized = is_mkldnn = is_nested = False
    is_sparse_csr = is_cuda = is_xpu = is_mps = is_xla = is_vulkan = is_ipu = is_maia = False
    is_mtia = False

    @property
    def is_cpu(self) -> bool:
        return self._geom.device.type == "cpu"

    @property
    def is_npu(self) -> bool:
        return self._geom.device.type == "npu"

    @property
    def is_meta(self) -> bool:
        return self._geom.device.type == "meta"

    def get_device(self) -> int:
        """The device index, -1 on cpu."""
        index = self._geom.device.index
        return -1 if index is None else index

    def data_ptr(self) -> int:
        """The address of the first element; 0 when empty or on meta."""
        if self._geom.numel == 0 or self.is_meta:
            return 0
        return address(self._storage) + self._geom.offset * self._geom.dtype.itemsize

    def storage(self) -> TypedStorage:
        """The storage with a dtype, which torch deprecates."""
        warn_of_removal()
        return self._typed_storage()

    def _typed_storage(self) -> TypedStorage:
        return TypedStorage(
            wrap_storage=self.untyped_storage(), dtype=self._geom.dtype, _internal=True
        )

    def untyped_storage(self) -> UntypedStorage:
        """The bytes under the tensor, which its views share."""
        return UntypedStorage.of(self._storage, self._geom.device)

    @property
    def _version_counter(self) -> Storage:
        return self._storage

    @property
    def _view_meta(self) -> dict[str, Any] | None:
        if self._base is None:
            return None
        g = self._geom
        return {"shape": g.shape, "stride": g.strides, "offset": g.offset, "op": self._creation}

    def _is_view(self) -> bool:
        return self._base is not None

    def _bump_version(self) -> None:
        self._storage.value += 1

    def __len__(self) -> int:
        if self._geom.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return int(self._geom.shape[0])

    def __reversed__(self) -> Tensor:
        """The elements in the opposite order along the first dimension."""
        return self.flip(0) if self._geom.ndim else self

    __hash__ = object.__hash__


def _kind(value: object) -> str:
    return type(value).__name__


def _wrap(dim: int, ndim: int, name: str) -> int:
    if not hasattr(dim, "__index__"):
        raise TypeError(f"{name}(): argument 'dim' (position 1) must be int, not {_kind(dim)}")
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}],"
            f" but got {dim})"
        )
    return dim


def host_array(geom: Geometry, storage: Storage) -> Array:
    """The numpy view of a cpu tensor; RuntimeError on another device, or past its memory."""
    memory = storage.memory
    if geom.device is CPU and geom.numel and memory.nbytes:
        shape, dtype, offset = geom.np_args
        try:
            return np.ndarray(shape, dtype, memory, offset, geom.np_strides)
        except (ValueError, BufferError):
            pass  # no plain run of bytes, no buffer of its dtype, or too small
    return _host_bytes(geom, storage)


def _host_bytes(geom: Geometry, storage: Storage) -> Array:
    if geom.device is not CPU and geom.device.type != "cpu":
        raise RuntimeError(
            f"a tensor on {geom.device} has no host array: copy it with .cpu() first"
        )
    if geom.ndim > MOST_DIMS:
        raise RuntimeError(TOO_MANY_DIMS)
    shape, dtype, offset = geom.np_args
    if geom.numel == 0:
        return np.empty(shape, dtype)
    memory = storage.bytes
    if not memory.size:  # which numpy takes for memory of any size
        raise RuntimeError(f"a tensor of {geom.numel} elements has no memory: it was resized to 0")
    try:
        return np.ndarray(shape, dtype, memory, offset, geom.np_strides)
    except ValueError as error:  # its storage was made smaller, or more bytes than 63 bits count
        raise RuntimeError(
            f"a tensor of {geom.numel} elements has no host array: {error}"
        ) from error


def forget_array(tensor: Tensor) -> None:
    """Drop the numpy view: geometry or memory changed."""
    with suppress(AttributeError):
        del tensor._array


bind(Tensor, Storage, host_array)
wrap = over  # a plain tensor over a storage; its numpy view is made when needed


def adopt(geom: Geometry, array: Array) -> Tensor:
    """A cpu tensor that takes `array` as its memory: its dtype and strides are `geom`'s."""
    return fresh(geom, array, array)


def storage_bytes(storage: UntypedStorage) -> Tensor:
    """A storage as a tensor of its bytes, which shares them."""
    geom = contiguous((storage.nbytes(),), uint8, storage.device)
    result: Tensor = wrap(geom, storage._storage)
    return result


UntypedStorage.as_tensor = storage_bytes
