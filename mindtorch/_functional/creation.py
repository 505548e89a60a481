"""Owns the factories: tensor, zeros, full, arange … `likes` owns those that follow a tensor."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from operator import index
from typing import Any

import numpy as np

from .._backends.registry import registry
from .._compat.argument_errors import class_name, parsed
from .._compat.missing_args import UNGIVEN
from .._compat.refusals import without_kernel
from .._compat.warn_once import warn, warn_once
from .._dispatch.dispatch_modes import through_mode
from .._tensor import dtype as dt
from .._tensor.device import CPU, DeviceLike, resolve
from .._tensor.dtype import dtype as Dtype
from .._tensor.geometry import Geometry, Size, contiguous, format_name
from .._tensor.settings import SETTINGS
from .._tensor.storage import Storage
from .._tensor.tensor import Tensor, adopt, wrap
from .._tensor.typed_storage import TypedStorage
from .._tensor.types import Array, Number, Shape
from .._tensor.untyped_storage import UntypedStorage
from ..ops.rules import NUMBERS, laid_out, scalar_name
from ..ops.spec import OPS, aten
from .literals import array_of, refuse_strides
from .publish import FUNCTIONS, surface


def finish(result: Tensor, requires_grad: bool) -> Tensor:
    """The tensor, as a leaf that requires grad if asked."""
    if requires_grad.__class__ is not bool and requires_grad is not None:
        raise TypeError("requires_grad must be a bool")
    if requires_grad and result._geom.dtype.category < dt.FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return result.requires_grad_() if requires_grad else result


def npu_is_available() -> bool:
    """Whether there is a device to pin memory for."""
    from .._backends import npu

    return npu.is_available()


def refuse_options(named: Mapping[str, object]) -> None:
    """TypeError for a `layout` that is none, and for `pin_memory` that is no bool; RuntimeError
    where there is no device to pin memory for."""
    layout, pin_memory = named.get("layout"), named.get("pin_memory")
    if layout is not None and type(layout).__name__ != "layout":
        raise TypeError("layout must be a torch.layout")
    if pin_memory.__class__ is not bool and pin_memory is not None:
        raise TypeError("pin_memory must be a bool")
    if pin_memory and not npu_is_available():
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory"
            " allocator is available on this system."
        )


def is_sparse(layout: object) -> bool:
    """Whether a layout is one of coordinates or compressed rows or columns."""
    return layout is not None and "sparse" in str(layout)


def refuse_sparse(layout: object, kernel: str) -> None:
    """NotImplementedError in torch's words: what fills a tensor has no kernel for the layout."""
    if is_sparse(layout):
        backend = "SparseCPU" if str(layout).endswith("coo") else "SparseCsrCPU"
        raise NotImplementedError(without_kernel(kernel, backend))


def _refuse_sparse(layout: object) -> None:
    if is_sparse(layout):
        raise RuntimeError("full(...) is not implemented for sparse layout")


def _sparse_zeros(
    shape: tuple[int, ...], layout: Any, dtype: Dtype | None, device: Any, requires_grad: bool
) -> Tensor:
    # By name: the sparse layouts are built on these functions, and loaded when first asked for.
    build = importlib.import_module("..sparse._build", __package__)
    zeros: Tensor = build.zeros_of_layout(shape, layout, dtype, device, requires_grad)
    return zeros


def sizes_of(
    size: tuple[Any, ...], name: str, named: dict[str, Any] | None = None
) -> tuple[int, ...]:
    """The sizes that `torch.name` is given: one by one, as a sequence, as a number's tensor.

    `named` holds the keywords that its signature does not name: `size`, or a TypeError.
    """
    if size and not named:
        sizes = size[0] if len(size) == 1 and size[0].__class__ in (tuple, Size, list) else size
        for n in sizes:
            if n.__class__ is not int or n >> 48:
                break
        else:
            return tuple(sizes)
    for keyword in named or ():
        if keyword != "size" or size:
            raise TypeError(f"{name}() got an unexpected keyword argument '{keyword}'")
        size = (named["size"],) if named else size
    if not size:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    if len(size) == 1 and size[0].__class__ is not int:
        size = _unpacked(size[0], name)
    try:
        return refuse_past_64_bits(tuple(map(index, size)), name)
    except TypeError as error:
        if "Overflow" in str(error):
            raise
        raise TypeError(_not_sizes(size, name)) from None


def refuse_past_64_bits(sizes: tuple[int, ...], name: str) -> tuple[int, ...]:
    """The sizes; TypeError in torch's words for one that no int64 holds."""
    for at, size in enumerate(sizes):
        if not -(1 << 63) <= size < 1 << 63:
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos {at + 1} with error"
                ' "Overflow when unpacking long long"'
            )
    return sizes


def _unpacked(first: Any, name: str) -> tuple[Any, ...]:
    if isinstance(first, tuple | list) and not (first and isinstance(first[0], bool)):
        return tuple(first)
    with suppress(TypeError):
        if not isinstance(first, bool):
            return (index(first),)
    kind = type(first).__name__
    raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {kind}")


def _not_sizes(size: tuple[Any, ...], name: str) -> str:
    """What torch says of the first of the sizes that is no integer."""
    for at, value in enumerate(size):
        try:
            index(value)
        except TypeError:
            return (
                f"{name}(): argument 'size' failed to unpack the object at pos {at + 1} with error "
                f'"type must be tuple of ints,but got {type(value).__name__}"'
            )
    return f"{name}(): argument 'size' must be tuple of ints"


def from_array(array: Array) -> Tensor:
    """A cpu tensor, whatever the default device, that takes a numpy array as its memory."""
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    geom = contiguous(array.shape, dt.from_numpy_dtype(array.dtype), CPU)
    return adopt(geom, array)


def copied(
    data: Tensor, dtype: Dtype | None, device: DeviceLike, requires_grad: bool, name: str
) -> Tensor:
    """A copy, with a warning of the function called `name` that was asked for it."""
    warn(
        "To copy construct from a tensor, it is recommended to use"
        " sourceTensor.detach().clone() or"
        f" sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor).",
        UserWarning,
    )
    return finish(aten.to(data.detach(), device, dtype, copy=True), requires_grad)


@surface(method=False)
@parsed(first=refuse_options)
def tensor(
    data: Any,
    *,
    dtype: Dtype | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor that copies `data` (numbers, nested sequences, arrays, tensors)."""
    if dtype is not None and dtype.__class__ is not Dtype:
        dtype = dt.refuse_no_dtype(dtype, "tensor", "dtype", 0)
    if isinstance(data, Tensor):
        return copied(data, dtype, device or data.device, requires_grad, "torch.tensor")
    if isinstance(data, TypedStorage):
        elements = _of_storage(data, dtype)
        copy = aten.to(elements, device or elements.device, dtype, copy=True)
        return finish(copy, requires_grad)
    if hasattr(data, "__dlpack__") and not isinstance(data, np.ndarray | np.generic):
        result = FUNCTIONS["from_dlpack"](data).clone()
        return finish(aten.to(result, resolve(device), dtype), requires_grad)
    array = array_of(data, dtype)
    target = resolve(device)
    if target.type == "meta":
        geom = contiguous(array.shape, dt.from_numpy_dtype(array.dtype), target)
        return finish(registry.backend(target).allocate(geom), requires_grad)
    if array.flags.c_contiguous:
        result = adopt(contiguous(array.shape, dt.from_numpy_dtype(array.dtype), CPU), array)
    else:  # numpy's copy keeps the order of dims in memory, and so does torch's
        result = from_numpy(array)
    result = result if target is CPU else aten.to(result, target)
    return finish(through_mode("lift_fresh", result), requires_grad)


@surface(method=False)
@parsed()
def as_tensor(data: Any, *, dtype: Dtype | None = None, device: DeviceLike | None = None) -> Tensor:
    """`data` as a tensor, without a copy where it already is one or is a fitting array."""
    if isinstance(data, Tensor):
        return aten.to(data, device or data.device, dtype)
    if isinstance(data, np.ndarray):
        return aten.to(from_numpy(data), resolve(device), dtype)
    return tensor(data, dtype=dtype, device=device)


@surface(method=False)
@parsed()
def asarray(
    obj: Any,
    *,
    dtype: Dtype | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """`obj` as a tensor, sharing memory where it can; `copy=True` never, False or ValueError.

    `requires_grad=None` keeps what a tensor `obj` has, False detaches it.
    """
    if isinstance(obj, UntypedStorage | TypedStorage):
        result = _of_storage(obj, dtype)
    elif isinstance(obj, Tensor):
        result = obj
    elif isinstance(obj, np.ndarray) and all(s >= 0 for s in obj.strides):
        result = from_numpy(obj)
    elif hasattr(obj, "__dlpack__"):
        result = from_numpy(np.from_dlpack(obj))
    elif type(obj).__name__ == "PyCapsule":
        result = FUNCTIONS["from_dlpack"](obj)
    elif isinstance(obj, np.generic):
        if copy is False:
            raise RuntimeError(
                "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. "
            )
        result = from_numpy(np.array(obj))
    elif _is_buffer(obj):
        result = frombuffer(obj, dtype=dtype or dt.get_default_dtype())
    elif copy is False:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    else:
        return finish(tensor(obj, dtype=dtype, device=device), bool(requires_grad))
    changed = aten.to(
        result, result.device if device is None else resolve(device), dtype or result.dtype
    )
    if copy is False and changed is not result:
        if changed.device is not result.device:
            raise ValueError(
                f"can't alias tensor from device '{result.device}' to '{changed.device}'."
            )
        raise ValueError(
            f"can't alias tensor with dtype '{scalar_name(result.dtype)}' into dtype"
            f" '{scalar_name(changed.dtype)}'."
        )
    if copy and changed is result:
        changed = aten.clone(result)
    had = isinstance(obj, Tensor) and obj.requires_grad
    if had and requires_grad is None:
        warn(
            "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of"
            " False. Pass requires_grad=False explicitly to get the old behavior and silence this"
            " warning.",
            UserWarning,
        )
        return changed
    if had == bool(requires_grad):
        return changed
    bare = changed.detach() if had or changed is obj else changed
    return finish(bare, True) if requires_grad else bare


def _is_buffer(obj: Any) -> bool:
    if isinstance(obj, list | tuple | int | float | complex | str):
        return False
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def _of_storage(storage: UntypedStorage | TypedStorage, dtype: Dtype | None) -> Tensor:
    """Its elements; RuntimeError where it has another dtype than asked for or the default one."""
    kind = dtype or dt.get_default_dtype()
    if isinstance(storage, TypedStorage) and storage.dtype is not kind:
        raise RuntimeError(
            f"Expected a Storage of type {scalar_name(kind)} or an UntypedStorage, but got"
            f" {scalar_name(storage.dtype)}"
        )
    untyped = storage._untyped_storage
    count = untyped.nbytes() // kind.itemsize
    return wrap(contiguous((count,), kind, untyped.device), untyped._storage)


@surface(method=False)
@parsed()
def frombuffer(
    buffer: Any, *, dtype: Dtype, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A 1-d tensor over the memory of an object with the buffer protocol."""
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if view.readonly:
        warn_once(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors."
            " This means you can write to the underlying (supposedly non-writable) buffer using"
            " the tensor. You may want to copy the buffer to protect its data or make it writable"
            " before converting it to a tensor. This type of warning will be suppressed for the"
            " rest of this program."
        )
    if view.nbytes == 0 or count == 0:
        raise ValueError(f"both buffer length ({view.nbytes}) and count ({count}) must not be 0")
    if not 0 <= offset < view.nbytes:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length"
            f" ({view.nbytes} bytes) minus 1"
        )
    dtype = dt.refuse_no_dtype(dtype, "frombuffer", "dtype", 0)
    size = dtype.itemsize
    if count < 0:
        if (view.nbytes - offset) % size:
            raise ValueError(
                f"buffer length ({view.nbytes - offset} bytes) after offset ({offset} bytes) must"
                f" be a multiple of element size ({size})"
            )
        count = (view.nbytes - offset) // size
    if offset + count * size > view.nbytes:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must"
            f" not be greater than actual buffer length ({view.nbytes} bytes)"
        )
    array = np.frombuffer(buffer, np.uint8, count * size, offset)
    result = wrap(contiguous((count,), dtype, CPU), Storage(array))
    return finish(result, requires_grad)


@surface(method=False)
@parsed()
def from_file(
    filename: Any,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: Dtype | None = None,
    layout: object | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool | None = False,
    requires_grad: bool = False,
) -> Tensor:
    """A 1-d tensor of `size` elements over a file's bytes; writes reach it where `shared`."""
    if device is not None and resolve(device).type != "cpu":
        raise NotImplementedError(f"torch.from_file: a file is mapped on cpu, not on {device}")
    kind = dt.get_default_dtype() if dtype is None else dtype
    count = size or 0
    if count == 0:
        return finish(wrap(contiguous((0,), kind, CPU), Storage(np.empty(0, np.uint8))), False)
    mapped = UntypedStorage.from_file(filename, bool(shared), count * kind.itemsize)
    return finish(wrap(contiguous((count,), kind, CPU), mapped._storage), requires_grad)


@surface(method=False)
@parsed()
def from_numpy(array: Array) -> Tensor:
    """A cpu tensor that shares memory with a numpy array; TypeError for other input."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {class_name(array)})")
    refuse_strides(array)
    if not array.flags.writeable:
        warn_once(
            "The given NumPy array is not writable, and PyTorch does not support non-writable"
            " tensors. This means writing to this tensor will result in undefined behavior. You may"
            " want to copy the array to protect its data or make it writable before converting it"
            " to a tensor. This type of warning will be suppressed for the rest of this program."
        )
    array = array.view(np.ndarray)  # of masked arrays and matrices their elements
    dtype = dt.from_numpy_dtype(array.dtype)
    step = dtype.itemsize
    if any(s % step for s in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy"
            " array to reallocate the memory."
        )
    geom = contiguous(array.shape, dtype, CPU).at(
        array.shape, tuple(s // step for s in array.strides), 0
    )
    if not geom.contiguous:
        owner = np.lib.stride_tricks.as_strided(array, (geom.extent,), (step,))
        result = adopt(geom, array)
        result._storage.memory = owner
        return result
    return adopt(geom, array)


@surface(method=False)
@parsed(first=refuse_options)
def zeros(
    *size: int | Shape,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **names: Any,
) -> Tensor:
    """Zeros of a shape."""
    sizes = sizes_of(size, "zeros", names)
    if sizes and min(sizes) < 0:
        raise RuntimeError("zeros: Dimension size must be non-negative.")
    if is_sparse(layout):
        return _sparse_zeros(sizes, layout, dtype, device, requires_grad)
    return _filled(_zeros, sizes, dtype, device, requires_grad, out, 0)


@surface(method=False)
@parsed(first=refuse_options)
def ones(
    *size: int | Shape,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **names: Any,
) -> Tensor:
    """Ones of a shape."""
    sizes = sizes_of(size, "ones", names)
    _refuse_sparse(layout)
    return _filled(_ones, sizes, dtype, device, requires_grad, out, 1)


def kind_of(name: str, dtype: Any, out: Tensor | None) -> Dtype | None:
    """The dtype that a factory computes in: `out` decides; RuntimeError where both are given."""
    if dtype is not None:
        dtype = dt.resolve(dtype, name)
    if out is None or out.dtype is dtype:
        return dtype
    if dtype is not None:
        raise RuntimeError(
            f"dtype {scalar_name(dtype)} does not match dtype of out parameter"
            f" ({scalar_name(out.dtype)})"
        )
    return out.dtype


def write_out(out: Tensor, result: Tensor, keeps: bool = False) -> Tensor:
    """`out` with the elements of `result`, in its shape; with `keeps` where as many fit its own."""
    if keeps and out.numel() == result.numel():
        return out.copy_(aten.reshape(result, out.shape))
    return out.resize_(result.shape).copy_(result)


def _filled(
    make: Callable[..., Any],
    size: tuple[int, ...],
    dtype: Dtype | None,
    device: DeviceLike | None,
    requires_grad: bool,
    out: Tensor | None,
    value: int,
) -> Tensor:
    if out is not None:
        kind_of("ones" if value else "zeros", dtype, out)
        return out.resize_(size).fill_(value)
    # The default dtype and device are looked up here: plans must not depend on them.
    result = make(size, dtype=dtype or dt.get_default_dtype(), device=resolve(device))
    return finish(result, requires_grad)


def _zeros(size: tuple[int, ...], **kwargs: Any) -> Tensor:
    return row_entry("zeros")(size, **kwargs)


def _ones(size: tuple[int, ...], **kwargs: Any) -> Tensor:
    return row_entry("ones")(size, **kwargs)


_rows: dict[str, Any] = {}


def row_entry(name: str) -> Callable[..., Any]:
    """The row's entry, where `aten.name` is the hand-written factory."""
    factory = _rows.get(name)
    if factory is None:
        factory = _rows[name] = OPS[name].entry("aten")
    return factory


@surface(method=False)
@parsed(first=refuse_options)
def full(
    size: tuple[int, ...],
    fill_value: Number = UNGIVEN,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A shape filled with one number; its class gives the dtype."""
    if fill_value is UNGIVEN:
        raise TypeError('full() missing 1 required positional arguments: "fill_value"')
    if isinstance(fill_value, Tensor):
        if fill_value.ndim:
            raise TypeError("full(): argument 'fill_value' (position 2) must be Number, not Tensor")
        dtype = dtype or fill_value.dtype
        fill_value = fill_value.item()
    if isinstance(size, int):
        raise TypeError("full(): argument 'size' (position 1) must be tuple of ints, not int")
    size = sizes_of((size,), "full")
    _refuse_sparse(layout)
    if out is not None:
        kind_of("full", dtype, out)
        return out.resize_(size).fill_(fill_value)
    if dtype is None and fill_value.__class__ is float:
        dtype = dt.get_default_dtype()
    result = row_entry("full")(size, fill_value, dtype=dtype, device=resolve(device))
    return finish(result, requires_grad)


@surface(method=False)
@parsed(first=refuse_options)
def empty(
    *size: int | Shape,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
    **names: Any,
) -> Tensor:
    """An uninitialised tensor of a shape."""
    shape = sizes_of(size, "empty", names)
    for n in shape:
        if n < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: {list(shape)}"
            )
    if is_sparse(layout):
        return _sparse_zeros(shape, layout, dtype, device, requires_grad)
    if out is not None:
        kind_of("empty", dtype, out)
        out.resize_(shape)
        if SETTINGS["deterministic"] and SETTINGS["fill"]:
            fill_unwritten(out)
        return out
    geom = contiguous(shape, dt.resolve(dtype, "empty"), resolve(device))
    if memory_format is not None:
        if format_name(memory_format) == "preserve":
            raise RuntimeError("unsupported memory format Preserve")
        geom = laid_out(geom, memory_format)
    return finish(uninitialised(geom), requires_grad)


def uninitialised(geom: Geometry) -> Tensor:
    """Memory as it is; as NaN, the greatest integer or True where algorithms are deterministic."""
    tensor = registry.backend(geom.device).allocate(geom)
    if SETTINGS["deterministic"] and SETTINGS["fill"]:
        fill_unwritten(tensor)
    return tensor


def fill_unwritten(tensor: Tensor) -> None:
    """NaN, the greatest integer or True."""
    kind = tensor.dtype
    whole = not (kind.is_floating_point or kind.is_complex or kind is dt.bool)
    tensor.fill_(dt.iinfo(kind).max if whole else float("nan"))


@surface(method=False)
@parsed(first=refuse_options)
def empty_strided(
    size: tuple[int, ...],
    stride: tuple[int, ...],
    *,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """An uninitialised tensor with given strides, in elements."""
    sizes, strides = sizes_of((size,), "empty_strided"), tuple(map(index, stride))
    if len(sizes) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(sizes)}) must match dimensionality of strides"
            f" ({len(strides)})"
        )
    if min(strides, default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(sizes)} and"
            f" strides={list(strides)}"
        )
    geom = contiguous((), dt.resolve(dtype, "empty_strided"), resolve(device))
    return finish(uninitialised(geom.at(sizes, strides)), requires_grad)


@surface(method=False)
@parsed(first=refuse_options)
def arange(
    start: Number | None = None,
    end: Number | None = None,
    step: Number = 1,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """start, start + step, … below end; int64 for ints, else the default dtype."""
    refuse_sparse(layout, "arange.start_out")
    if start is None and end is None:
        raise TypeError(
            "arange() received an invalid combination of arguments: neither start nor end is given"
        )
    if end is None:
        start, end = 0, start
    elif start is None:
        start = 0
    numbers = (v.item() if isinstance(v, Tensor | np.generic) else v for v in (start, end, step))
    start, end, step = numbers
    dtype = kind_of("arange", dtype, out)
    if dtype is None and not all(isinstance(v, int) for v in (start, end, step)):
        dtype = dt.get_default_dtype()
    if out is not None and dtype is not None and dtype.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{scalar_name(dtype)}'")
    kind = dtype if out is None else out.dtype
    whole = kind is not None and kind.category < dt.FLOAT
    if whole and step and abs(step) < 1:  # cut to an integer
        raise ValueError("step must be nonzero")
    result = row_entry("arange")(start, end, step, dtype=dtype, device=resolve(device))
    if out is not None:
        if out.numel() not in (0, result.numel()):
            warn(
                f"The number of elements in the out tensor of shape {list(out.shape)} is"
                f" {out.numel()} which does not match the computed number of elements"
                f" {result.numel()}. Note that this may occur as a result of rounding error. The"
                f" out tensor will be resized to a tensor of shape ({result.numel()},).",
            )
        return write_out(out, result, keeps=True)
    return finish(result, requires_grad)


def _number(value: Any) -> Any:
    """What a 0-d tensor holds; where there are no values the size alone shows."""
    if not isinstance(value, Tensor) or value._geom.ndim:
        return value
    if value.__class__ is Tensor and value._geom.device is CPU:
        return value._array.item()
    return 0.0 if value.device.type == "meta" else value.item()


def _factory(name: str) -> None:
    """`torch.name` of a row that makes a tensor from numbers, with what torch's factories take."""

    ends = name.endswith("space")
    order = [a.name for a in OPS[name].schema.args if not a.keyword_only]

    def make(
        *args: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
        pin_memory: bool = False, requires_grad: bool = False, **names: Any,
    ) -> Tensor:  # fmt: skip
        refuse_sparse(layout, {"eye": "eye.m_out"}.get(name, f"{name}.out"))
        if ends and not (NUMBERS.issuperset(map(type, args)) and not names):
            values = tuple(map(_number, args))
            if any(isinstance(value, Tensor) for value in values):
                _refuse_ends(name, args)
            args = values
            names = {k: _number(v) for k, v in names.items()}
        if not names.keys() <= set(order[len(args) : len(args) + len(names)]):
            raise TypeError(f"{name}(): no signature leaves out what comes before {[*names]}")
        kind = kind_of(name, dtype, out)
        result = row_entry(name)(*args, dtype=kind, device=resolve(device), **names)
        if out is not None:
            return write_out(out, result, keeps=ends)
        return finish(result, requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = OPS[name].text
    surface(method=False, internal=False)(parsed(first=refuse_options)(make))


def _refuse_ends(name: str, args: tuple[Any, ...]) -> None:
    """RuntimeError in torch's words for ends that are tensors with dimensions."""
    if any(isinstance(v, Tensor) and v._geom.ndim for v in args[:2]):
        ends = zip(("start", "end"), args, strict=False)
        ranks = [(end, v.ndim) for end, v in ends if isinstance(v, Tensor)]
        dimensions = " and ".join(f"{end} with {rank} dimension(s)" for end, rank in ranks)
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got {dimensions}."
        )


for _name in (
    "bartlett_window", "blackman_window", "eye", "hamming_window", "hann_window", "kaiser_window",
    "linspace", "logspace", "tril_indices", "triu_indices",
):  # fmt: skip
    _factory(_name)


@surface(method=False)
@parsed()
def scalar_tensor(
    s: Any,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A number as a 0-d tensor of the default dtype."""
    return full((), s, out=out, dtype=dtype or dt.get_default_dtype(), device=device,
                requires_grad=requires_grad)  # fmt: skip


@surface(method=False)
@parsed()
def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: Dtype | None = None, layout: Any = None,
    device: DeviceLike | None = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """An uninitialised tensor whose memory runs through dimensions in the order given."""
    size, order = tuple(size), tuple(physical_layout)
    if len(order) != len(size):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e."
            f" len(size) = {len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for d in order:
        if not 0 <= d < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got"
                f" {d} at index {order.index(d)}).  NB: negative dims not currently supported; file"
                " an issue if you want it."
            )
        if order.count(d) > 1:
            raise RuntimeError("Duplicate dim not allowed")
    strides, step = [0] * len(size), 1
    for d in reversed(order):
        strides[d] = step
        step *= size[d]
    return empty_strided(size, tuple(strides), dtype=dtype, device=device,
                         requires_grad=requires_grad)  # fmt: skip
