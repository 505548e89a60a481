"""Owns device arrays for people who call operators by name; refuses arithmetic of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Final

from ..errors import ArgumentError
from ..interface.dtypes import BY_NUMPY, dtype
from ..runtime.memory import Buffer
from ..runtime.native import View
from ..runtime.session import Place
from .specs import TensorSpec, contiguous_strides

if TYPE_CHECKING:
    from ..runtime.runtime import Runtime
    from ..runtime.stream import Stream


# DLDeviceType of DLPack (dlpack.h): kDLCPU, kDLExtDev.
_HOST_DEVICE: Final = (1, 0)
_EXTENSION_DEVICE: Final = 12
# A numpy type string, such as `<f4`. Words such as "complex" are left to ACL's names and numpy's.
_TYPE_STRING: Final = re.compile(r"[<>=|]?[biufc]\d+")


class DeviceTensor(View):
    """A view of a buffer on a device; what `cann.ops` takes for tensor arguments."""

    buffer: Buffer
    spec: TensorSpec

    def __init__(self, buffer: Buffer, spec: TensorSpec) -> None:
        spec.check("tensor")
        if spec.nbytes > buffer.nbytes:
            raise ArgumentError(
                f"tensor of {spec.nbytes} bytes over a buffer of {buffer.nbytes}: too small"
            )
        self.buffer, self.spec = buffer, spec

    @property
    def address(self) -> int:
        """The storage's base; the view's offset stands in `spec`."""
        return self.buffer.address

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def ndim(self) -> int:
        return len(self.spec.shape)

    @property
    def size(self) -> int:
        """The number of elements, as numpy counts them."""
        return self.spec.numel

    @property
    def dtype(self) -> Any:
        """The numpy dtype; ArgumentError where numpy has none. `spec.dtype` is ACL's name."""
        row = dtype(self.spec.dtype)
        return _numpy_dtype(row.numpy, row.name)

    @property
    def device(self) -> Place:
        """The Device that holds the storage."""
        return self.buffer.device

    def __len__(self) -> int:
        if not self.spec.shape:
            raise TypeError("len() of a tensor without dimensions")
        return self.spec.shape[0]

    def __bool__(self) -> bool:
        raise TypeError(f"the truth of {self!r}: its values are on the device; ask .numpy()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """What `numpy.asarray` takes: a copy on the host (numpy's protocol, 2.0)."""
        if copy is False:
            raise ValueError("numpy array without a copy: the values are on the device")
        return self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        """(kDLExtDev, device index), as torch_npu tells its tensors' place."""
        return _EXTENSION_DEVICE, self.device.index

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A copy on the host where `dl_device` asks for one, as `numpy.from_dlpack(x,
        device="cpu")` does; BufferError for device memory, which is not shared this way."""
        if dl_device is None or tuple(dl_device) != _HOST_DEVICE:
            raise BufferError(
                f"DLPack of {self!r} on its device: only a copy on the host is given; ask for "
                f'dl_device={_HOST_DEVICE}, such as numpy.from_dlpack(x, device="cpu"), or take '
                "what .numpy() gives"
            )
        if copy is False:
            raise BufferError("DLPack on the host without a copy: the values are on the device")
        return self.numpy().__dlpack__()

    def view(
        self,
        shape: int | Sequence[int],
        strides: Sequence[int] | None = None,
        offset: int = 0,
        format: str = "ND",
    ) -> DeviceTensor:
        """Another view of the same storage, contiguous without `strides`; strides and offset in
        elements. ArgumentError where it leaves the storage."""
        local, dims = self.spec, shape_of(shape)
        steps = contiguous_strides(dims) if strides is None else tuple(strides)
        spec = TensorSpec(dims, steps, offset, local.dtype, local.storage_numel, format)
        return DeviceTensor(self.buffer, spec)

    def numpy(self) -> Any:
        """A copy on the host as a numpy array of the view's shape; waits for the stream."""
        import numpy as np

        row = dtype(self.spec.dtype)
        flat = np.empty(self.spec.storage_numel, _numpy_dtype(row.numpy, row.name))
        if flat.nbytes:
            self.buffer.read(flat.view(np.uint8))
        if self.spec.storage_numel == self.spec.numel and self.spec.contiguous:
            return flat.reshape(self.spec.shape)
        strides = [s * flat.itemsize for s in self.spec.strides]
        # as_strided knows numpy's own dtypes only; raw elements of the same width are.
        raw = flat[self.spec.offset :].view(f"V{flat.itemsize}")
        copy = np.lib.stride_tricks.as_strided(raw, self.spec.shape, strides).copy()
        return copy.view(flat.dtype)

    def close(self) -> None:
        """Give the buffer back; views of it become unusable."""
        self.buffer.close()

    def __enter__(self) -> DeviceTensor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self.buffer.closed else ""
        return f"DeviceTensor({self.spec.dtype}{list(self.shape)} on {self.buffer.device}{closed})"


def shape_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    """The dimensions of a shape given as numpy takes it; ArgumentError for what is none."""
    try:
        dims = tuple(map(index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        raise ArgumentError(f"shape {shape!r}: expected a whole number or a sequence") from None
    if min(dims, default=0) < 0:
        raise ArgumentError(f"shape {shape!r}: no dimension may be negative")
    return dims


def acl_name(kind: Any) -> str:
    """ACL's name of an element type given by that name (`FLOAT16`, with or without `ACL_`), by
    numpy's (`float16`, `f2`), or as anything that `numpy.dtype` takes, but None, which numpy
    takes for float64; ArgumentError for another."""
    if isinstance(kind, str) and not _TYPE_STRING.fullmatch(kind):
        row = BY_NUMPY.get(kind)
        return row.name if row else dtype(kind).name
    import numpy as np

    try:
        if kind is None:
            raise TypeError("no dtype")
        name = np.dtype(kind).name
    except TypeError:
        raise ArgumentError(f"dtype {kind!r}: expected a name of ACL or a numpy dtype") from None
    if name not in BY_NUMPY:
        raise ArgumentError(f"dtype {kind!r}: ACL has no such element type")
    return BY_NUMPY[name].name


def _numpy_dtype(name: str, acl: str) -> Any:
    import numpy as np

    if not name:
        raise ArgumentError(f"numpy array of {acl}: numpy has no such element type")
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def from_host(runtime: Runtime, array: Any, stream: Stream | None = None) -> DeviceTensor:
    """A contiguous copy of a numpy array (or what `numpy.asarray` takes) on the device."""
    import numpy as np

    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentError("tensor of a masked array: devices know no mask; give array.filled()")
    try:
        host = np.asarray(array)
        host = np.ascontiguousarray(host).reshape(host.shape)
    except (TypeError, ValueError, BufferError) as error:
        raise ArgumentError(
            f"tensor of {type(array).__name__}: no array for numpy: {error}"
        ) from error
    if not host.dtype.isnative:
        host = host.astype(host.dtype.newbyteorder("="))
    row = BY_NUMPY.get(host.dtype.name)
    if row is None:
        raise ArgumentError(f"tensor of numpy {host.dtype}: ACL has no such element type")
    filled = empty(runtime, host.shape, row.name, stream)
    if host.nbytes:
        filled.buffer.write(host.reshape(-1).view(np.uint8))
    return filled


def empty(
    runtime: Runtime, shape: int | Sequence[int], kind: Any, stream: Stream | None = None
) -> DeviceTensor:
    """A contiguous tensor with unspecified contents; `kind` as for `acl_name`."""
    spec = TensorSpec.of(shape_of(shape), acl_name(kind))
    if spec.nbytes >= 1 << 63:
        raise ArgumentError(f"shape {shape!r} of {spec.dtype}: {spec.nbytes} bytes are too many")
    return DeviceTensor(Buffer(stream or runtime.current_stream(), spec.nbytes), spec)
