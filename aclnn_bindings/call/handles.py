"""Owns descriptors made one by one (aclTensor, aclScalar, arrays, lists); plans make their own.

For helper functions and for programs that drive the two phases themselves. A list owns its
members: closing it destroys them (aclDestroyTensorList document, CANN 9.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ..errors import ArgumentError, ClosedHandleError
from ..interface.dtypes import Number, canonical
from ..interface.signature import Kind, Param
from ..runtime.native import address_of, ffi, lib
from ..runtime.words import boolean, call, integer, real
from .marshal import float_array
from .specs import ScalarSpec, TensorSpec

if TYPE_CHECKING:
    from ..runtime.runtime import Runtime


class Descriptor:
    """A handle from `create`, released by `destroy` exactly once."""

    create: ClassVar[str] = ""
    destroy: ClassVar[str] = ""

    def __init__(self, runtime: Runtime, arguments: Sequence[int]) -> None:
        runtime.start()
        self._runtime = runtime
        self._session = int(lib.mt_session())
        make = runtime.symbols.require(self.create)
        self._free = runtime.symbols.require(self.destroy)
        self._address = call(make, [(False, bits & (1 << 64) - 1) for bits in arguments])
        if not self._address:
            raise ArgumentError(f"{self.create} returned NULL: out of host memory, or a NULL value")
        runtime.own(self)

    @property
    def closed(self) -> bool:
        return self._address == 0 or lib.mt_session() != self._session

    @property
    def descriptor(self) -> int:
        """The handle's address; ClosedHandleError after close, or when a list took it over."""
        if self.closed:
            raise ClosedHandleError(f"{type(self).__name__}: it was closed or given to a list")
        return self._address

    def release(self) -> int:
        """The handle, which the caller owns from now on."""
        address, self._address = self.descriptor, 0
        return address

    def close(self) -> None:
        address, self._address = self._address, 0
        if address and lib.mt_session() == self._session:
            call(self._free, [(False, address)])

    def __enter__(self) -> Descriptor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_address", 0):
            self.close()


class Tensor(Descriptor):
    """An aclTensor: `spec` over the storage at `address`."""

    create, destroy = "aclCreateTensor", "aclDestroyTensor"

    def __init__(self, runtime: Runtime, spec: TensorSpec, address: int) -> None:
        spec.check("tensor")
        storage = spec.storage_shape or (spec.storage_numel,)
        dims, strides, stored = (
            ffi.new("int64_t[]", list(numbers) or 1)
            for numbers in (spec.shape, spec.strides, storage)
        )
        dtype, form = runtime.dtypes[canonical(spec.dtype)], runtime.formats[spec.format]
        head = [address_of(dims), len(spec.shape), dtype, address_of(strides), spec.offset, form]
        super().__init__(runtime, [*head, address_of(stored), len(storage), address])


class Scalar(Descriptor):
    """An aclScalar, which copies its value."""

    create, destroy = "aclCreateScalar", "aclDestroyScalar"

    def __init__(self, runtime: Runtime, value: Number | ScalarSpec, dtype: str = "") -> None:
        spec = value if isinstance(value, ScalarSpec) else ScalarSpec(value, dtype or None)
        data = ffi.new("char[]", spec.data)
        super().__init__(runtime, [address_of(data), runtime.dtypes[canonical(spec.dtype)]])


class IntArray(Descriptor):
    """An aclIntArray, which copies its values."""

    create, destroy = "aclCreateIntArray", "aclDestroyIntArray"

    def __init__(self, runtime: Runtime, values: Sequence[int]) -> None:
        member = Param("values", "int64_t", Kind.INT64)
        data = ffi.new("uint64_t[]", [integer(member, value) for value in values] or 1)
        super().__init__(runtime, [address_of(data), len(values)])


class BoolArray(Descriptor):
    """An aclBoolArray, which copies its values."""

    create, destroy = "aclCreateBoolArray", "aclDestroyBoolArray"

    def __init__(self, runtime: Runtime, values: Sequence[bool]) -> None:
        member = Param("values", "bool", Kind.BOOL)
        data = ffi.new("char[]", bytes(boolean(member, value) for value in values) or 1)
        super().__init__(runtime, [address_of(data), len(values)])


class FloatArray(Descriptor):
    """An aclFloatArray, which copies its values."""

    create, destroy = "aclCreateFloatArray", "aclDestroyFloatArray"

    def __init__(self, runtime: Runtime, values: Sequence[float]) -> None:
        member = Param("values", "float", Kind.FLOAT)
        data = ffi.new("char[]", float_array([real(member, value) for value in values]) or 1)
        super().__init__(runtime, [address_of(data), len(values)])


class TensorList(Descriptor):
    """An aclTensorList; the tensors belong to it from here on."""

    create, destroy = "aclCreateTensorList", "aclDestroyTensorList"

    def __init__(self, runtime: Runtime, tensors: Sequence[Tensor]) -> None:
        data = ffi.new("uint64_t[]", [tensor.descriptor for tensor in tensors] or 1)
        super().__init__(runtime, [address_of(data), len(tensors)])
        for tensor in tensors:
            tensor.release()


class ScalarList(Descriptor):
    """An aclScalarList; the scalars belong to it from here on."""

    create, destroy = "aclCreateScalarList", "aclDestroyScalarList"

    def __init__(self, runtime: Runtime, scalars: Sequence[Scalar]) -> None:
        data = ffi.new("uint64_t[]", [scalar.descriptor for scalar in scalars] or 1)
        super().__init__(runtime, [address_of(data), len(scalars)])
        for scalar in scalars:
            scalar.release()
