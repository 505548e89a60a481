"""Owns the methods and functions whose arguments torch parses by type: to, split, item, numpy …"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from math import prod
from types import FunctionType
from typing import Any

import numpy as np

from .._autograd.grad_mode import LOCAL, MODES, is_grad_enabled
from .._autograd.layer import refuse_inference, refuse_written
from .._autograd.views import scatter_view
from .._backends.registry import registry
from .._compat.argument_errors import explained, parsed
from .._compat.warn_once import warn_once
from .._dispatch.dispatch_modes import through_mode
from .._dispatch.profiled_names import profiled_function
from .._tensor import dtype as dt, storage as _storage
from .._tensor.device import STANDING_IN, DeviceLike, device as Device, resolve, without_cuda
from .._tensor.dtype import dtype as Dtype
from .._tensor.eight_bits import readable
from .._tensor.geometry import (
    Geometry,
    contiguous,
    contiguous_strides,
    follows,
    format_name,
    format_strides,
)
from .._tensor.recording import unrepeatable
from .._tensor.settings import SETTINGS
from .._tensor.storage import Storage
from .._tensor.tensor import Tensor, forget_array, host_array, wrap
from .._tensor.typed_storage import TypedStorage
from .._tensor.types import Array, Number, Shape
from .._tensor.untyped_storage import UntypedStorage
from ..ops.limits import fits
from ..ops.rules import LAST, c_name, channels_last, data_dependent, refuse_vector, scalar_name
from ..ops.spec import aten
from .creation import fill_unwritten
from .publish import attach, surface

aten.publish("_scatter_view", scatter_view)


@surface(function=False)
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`; itself where nothing changes."""
    if len(args) == 1 and not kwargs:
        geom, only = self._geom, args[0]
        if (only is geom.device or only is geom.dtype) and not MODES.active:
            return self
    named = dict(kwargs)
    dtype, device = dt.of_python(kwargs.pop("dtype", None)), kwargs.pop("device", None)
    copy, layout = kwargs.pop("copy", False), kwargs.pop("memory_format", None)
    kwargs.pop("non_blocking", None)
    other = kwargs.pop("other", None)
    rest = [dt.of_python(value) for value in args]
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    if other is not None:
        dtype, device = other.dtype, other.device
    elif rest and (isinstance(rest[0], str | Device | int) and not isinstance(rest[0], bool)):
        device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], Dtype)):
            dtype = rest.pop(0)
    elif rest and (rest[0] is None or isinstance(rest[0], Dtype)):
        if rest[0] is None and len(rest) > 1 and (rest[1] is None or isinstance(rest[1], Dtype)):
            rest.pop(0)  # `to(None, dtype)`: no device
        dtype = rest.pop(0)
    known = dtype is None or isinstance(dtype, Dtype)
    known = known and (device is None or isinstance(device, str | Device | int))
    if kwargs or not known or len(rest) > 2 or not all(v.__class__ is bool for v in rest):
        raise refusal_of_to(args, named)
    if len(rest) > 1:
        copy = rest[1]
    return _convert(self, dtype, device, copy, layout)


def refusal_of_to(args: Sequence[object], kwargs: Mapping[str, object]) -> TypeError:
    """What torch's parser says of arguments that no signature of `to` takes."""
    keywords = {"tensor" if k == "other" else k: v for k, v in kwargs.items()}
    return explained(".to", args, keywords) or TypeError(
        "to() received an invalid combination of arguments"
    )


def _convert(
    self: Tensor, dtype: Dtype | None, device: DeviceLike | None, copy: bool, layout: Any
) -> Tensor:
    geom = self._geom
    target = geom.device if device is None else _target(geom, device)
    dtype = dtype or geom.dtype
    if geom.dtype.is_complex and not dtype.is_complex and dtype is not dt.bool:
        warn_once("Casting complex values to real discards the imaginary part")
    name = "preserve" if layout is None else format_name(layout)
    same = not copy and dtype is geom.dtype and target is geom.device
    if same and name in ("preserve", _suggested(geom)):
        if MODES.active and LOCAL.profilers:
            profiled_function("to", lambda: None, (), {})
        return self
    return aten._to_copy(self, dtype, target, None if name == "preserve" else name)


def _suggested(geom: Geometry) -> str:
    """The format that torch suggests for the strides, as at::native::to_impl has it: expanded and
    transposed tensors are in the usual one already."""
    return LAST[geom.ndim] if channels_last(geom) else "contiguous"


def _target(geom: Geometry, device: DeviceLike) -> Device:
    target = device if device.__class__ is Device else Device(device)
    if target.index is None and target.type == geom.device.type:
        return geom.device
    return resolve(target)


_NAME, _DTYPE = "float", dt.float32


def _cast(self: Tensor, *more: object, memory_format: object | None = None) -> Tensor:
    if more:
        raise explained(f".{_NAME}", more, {}) or TypeError
    try:
        return _convert(self, _DTYPE, None, False, memory_format)
    except TypeError as error:
        raise explained(f".{_NAME}", (), {"memory_format": memory_format}) or error from None


def _caster(name: str, dtype: Dtype) -> None:
    """The method of a dtype: no closure, so that modes can see it (AttributeWatch)."""
    names = {**globals(), "_NAME": name, "_DTYPE": dtype}
    cast = FunctionType(_cast.__code__.replace(co_name=name), names, name)
    cast.__kwdefaults__, cast.__module__ = dict(_cast.__kwdefaults__ or {}), __name__
    cast.__doc__ = f"The tensor as {dtype!r}; itself where it is one."
    setattr(Tensor, name, cast)


for _name, _dtype in (
    ("float", dt.float32), ("double", dt.float64), ("half", dt.float16), ("int", dt.int32),
    ("bfloat16", dt.bfloat16), ("long", dt.int64), ("short", dt.int16), ("char", dt.int8),
    ("byte", dt.uint8), ("bool", dt.bool), ("chalf", dt.complex32), ("cfloat", dt.complex64),
    ("cdouble", dt.complex128),
):  # fmt: skip
    _caster(_name, _dtype)


@surface(function=False, internal=False)
def cpu(self: Tensor, *more: object, memory_format: object | None = None) -> Tensor:
    """The tensor on the host."""
    if more:
        raise explained(".cpu", more, {}) or TypeError
    return _convert(self, None, "cpu", False, memory_format)


@surface(function=False, internal=False)
def npu(self: Tensor, device: DeviceLike | None = None, non_blocking: bool = False) -> Tensor:
    """The tensor on an npu, the current one by default."""
    target = Device("npu" if device is None else device)
    return _convert(self, None, target, False, None)


def _refused(kind: str) -> Callable[..., Tensor]:
    def move(self: Tensor, device: Any = None, *_: object, **__: object) -> Tensor:
        return to(self, f"{kind}:{device}" if isinstance(device, int) else device or kind)

    move.__name__, move.__doc__ = kind, f"Refused, as by a torch without {kind.upper()}."
    return surface(function=False, internal=False)(move)


cuda = _refused("cuda")
ipu = _refused("ipu")
mtia = _refused("mtia")
xpu = _refused("xpu")


@surface(function=False, internal=False)
def pin_memory(self: Tensor, device: Device | str | int | None = None) -> Tensor:
    """A copy that says that it is pinned: transfers copy pageable memory, too. RuntimeError where
    no device is, or the tensor is on one."""
    from .creation import npu_is_available

    if not npu_is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if self.device.type != "cpu":
        name = self.device.type + c_name(self.dtype).capitalize() + "Type"
        raise RuntimeError(f"cannot pin '{name}' only dense CPU tensors can be pinned")
    if _storage.is_pinned(self._storage):
        return self
    copied = aten.clone(self)
    _storage.pin(copied._storage)
    return copied


@surface(function=False, internal=False)
def is_pinned(self: Tensor, device: Device | str | int | None = None) -> bool:
    """Whether `pin_memory` made its memory."""
    return _storage.is_pinned(self._storage)


@surface(function=False, internal=False)
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What a module swaps `self` with when it loads `other`: itself with other's values, or with
    `assign` other; a new tensor over that memory."""
    return other.detach() if assign else self.copy_(other).detach()


@surface(function=False, internal=False)
def record_stream(self: Tensor, stream: object) -> None:
    """Nothing to do: memory is reused in stream order."""


@surface(function=False, internal=False)
@parsed(method=True)
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether both have one shape."""
    return self.shape == other.shape


@surface(function=False, internal=False)
@parsed(method=True)
def is_set_to(self: Tensor, other: Tensor) -> bool:
    """Whether both are one geometry over one storage."""
    return self._storage is other._storage and self._geom is other._geom


@surface(function=False, internal=False)
@parsed(method=True)
def apply_(self: Tensor, function: Callable[[Any], Number]) -> Tensor:
    """Replace each element of a cpu tensor by `function` of it."""
    if not callable(function):
        raise TypeError(f"'{function.__class__.__name__}' object is not callable")
    if self.requires_grad:
        raise RuntimeError(
            "Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead."
        )
    return self.map_(self, lambda value, _: function(value))


def _from_array(array: Array) -> Tensor:
    from .creation import from_array

    return from_array(array)


@surface(function=False, internal=False)
@parsed(method=True)
def type(
    self: Tensor, dtype: Dtype | str | None = None, non_blocking: bool = False
) -> Tensor | str:
    """The type's name without `dtype`; else the tensor converted."""
    if dtype is None:
        where = "" if self.is_cpu else f"{self.device.type}."
        return f"torch.{where}{self.dtype.legacy}Tensor"
    device: DeviceLike | None = None
    if not isinstance(dtype, Dtype):
        dtype, device = typed(dtype)
        if device == "cuda" and device not in STANDING_IN:
            raise without_cuda("initialize CUDA")
    return _convert(self, dtype, device, False, None)


def typed(name: Any) -> tuple[Dtype, str | None]:
    """The dtype and device type that `torch.npu.FloatTensor`, the class or its name, stands for."""
    if isinstance(name, str):
        parts = name.split(".")
        for d in (*dt.ALL, *dt.STORED):
            if parts[-1] == f"{d.legacy}Tensor" and parts[0] == "torch":
                return d, parts[1] if len(parts) == 3 else "cpu"
    elif isinstance(getattr(name, "dtype", None), Dtype) and hasattr(name, "where"):
        return name.dtype, name.where
    if not isinstance(name, str | builtins.type):
        raise TypeError("dtype must be a type, str, or dtype object")
    raise ValueError(f"invalid type: '{getattr(name, '__name__', name)}'")


@surface(function=False, internal=False)
@parsed(method=True)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with the dtype and device of `other`."""
    return _convert(self, other.dtype, other.device, False, None)


@surface(method=False)
def conj_of(self: Tensor) -> Tensor:
    """The conjugate of a complex tensor or number; a real one itself."""
    if not isinstance(self, Tensor):
        return self.conjugate() if self.__class__ is complex else self
    return aten.conj(self) if self._geom.dtype.category == dt.COMPLEX else self


def _before_reading(self: Tensor) -> None:
    """End recordings, and let a mode that defers writes to a tensor do them now."""
    unrepeatable()
    if MODES.active and LOCAL.functions:
        settle = getattr(LOCAL.functions[-1], "settle", None)
        if settle is not None:
            settle(self)


def _host(self: Tensor) -> Array:
    _before_reading(self)
    array = self._array if self._geom.device.type == "cpu" else self.detach().cpu()._array
    return readable(array) if self._geom.dtype is dt.complex32 else array


# What `item()` gives of a float tensor without data, where somebody traces; None: it refuses.
NUMBER_OF_META: ContextVar[Callable[[], float] | None] = ContextVar("number_of_meta", default=None)


@surface(function=False, internal=False)
def item(self: Tensor, *more: object) -> Number:
    """The only element as a Python number; RuntimeError for more than one."""
    if more:
        raise TypeError(f"TensorBase.item() takes no arguments ({len(more)} given)")
    if self._geom.numel != 1:
        raise RuntimeError(
            f"a Tensor with {self._geom.numel} elements cannot be converted to Scalar"
        )
    if MODES.active:
        if LOCAL.dispatches:
            number: Number = through_mode("_local_scalar_dense", self)
            return number
        if LOCAL.profilers:
            return profiled_function("item", item, (self,), {})
    if self._geom.device.type == "meta":
        unknown = NUMBER_OF_META.get()
        if unknown is not None and self.is_floating_point():
            return unknown()
        raise data_dependent(RuntimeError("Tensor.item() cannot be called on meta tensors"))
    value = _host(self).reshape(())
    return float(value) if self._geom.dtype is dt.bfloat16 else value.item()


@surface(function=False, internal=False)
def tolist(self: Tensor, *more: object) -> Any:
    """Nested lists of Python numbers."""
    if more:
        raise TypeError(f"TensorBase.tolist() takes no arguments ({len(more)} given)")
    if self._geom.device.type == "meta":
        raise data_dependent(NotImplementedError("Cannot copy out of meta tensor; no data!"))
    array = _host(self)
    return (array.astype(np.float32) if self._geom.dtype is dt.bfloat16 else array).tolist()


# What torch has not written yet where these say so.
_BITS = (("_conjugated", "conjugate", "conj"), ("_negated", "negative", "neg"))


@surface(function=False, internal=False)
def numpy(self: Tensor, *more: object, force: bool = False) -> Array:
    """A numpy array that shares memory with a cpu tensor; TypeError or RuntimeError as torch."""
    if more or force.__class__ is not bool:
        raise explained(".numpy", more, {"force": force}) or TypeError
    if force:
        return self.detach().cpu().resolve_conj().resolve_neg().numpy()
    if self._geom.device.type != "cpu":
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy"
            " the tensor to host memory first."
        )
    if self.requires_grad and is_grad_enabled():
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    for mark, bit, name in _BITS:
        if mark in self.__dict__:
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {bit} bit set. Use"
                f" tensor.resolve_{name}().numpy() instead."
            )
    dtype = self._geom.dtype
    if dtype in (dt.bfloat16, dt.complex32) or (dtype in dt.STORED and dtype not in dt.UNSIGNED):
        raise TypeError(f"Got unsupported ScalarType {dtype.legacy}")
    _before_reading(self)
    return host_array(self._geom, self._storage)


def _to_array(self: Tensor, dtype: Dtype | None = None) -> Array:
    array = self.numpy()
    return array if dtype is None else array.astype(dtype, copy=False)


def _from_ufunc(self: Tensor, array: Array) -> Tensor:
    """What a numpy function made of tensors, as a tensor; bool as uint8, as torch has it.

    Without the parameters that numpy 2 passes, as torch's: numpy warns that it will pass them.
    """
    if array.dtype == bool:
        array = array.astype(np.uint8)
    result: Tensor = aten.from_numpy(array)
    return result


_C_TYPES = {"int": "int64_t", "float": "double"}


def _number(kind: Any, name: str) -> Callable[..., Any]:
    def convert(self: Tensor) -> Number:
        if self._geom.numel != 1 and name == "bool":
            count = "no values" if self._geom.numel == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {count} is ambiguous")
        if self._geom.numel != 1 and name == "index":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        if self._geom.numel != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if name in ("float", "complex") and self.requires_grad and is_grad_enabled():
            warn_once(
                "Converting a tensor with requires_grad=True to a scalar may lead to unexpected"
                " behavior.\nConsider using tensor.detach() first."
            )
        value = self.item()
        if name == "index" and value.__class__ not in (int, bool):
            raise TypeError("only integer tensors of a single element can be converted to an index")
        if value.__class__ is complex and name in ("int", "float"):
            fits(value, dt.int64 if name == "int" else dt.float64, _C_TYPES[name])
            value = value.real
        return kind(value)

    return convert


Tensor.__bool__ = _number(bool, "bool")  # type: ignore[method-assign]
Tensor.__int__ = _number(int, "int")  # type: ignore[method-assign]
Tensor.__float__ = _number(float, "float")  # type: ignore[method-assign]
Tensor.__complex__ = _number(complex, "complex")  # type: ignore[method-assign]
Tensor.__index__ = _number(int, "index")  # type: ignore[method-assign]
Tensor.__array__ = _to_array  # type: ignore[attr-defined]
Tensor.__array_wrap__ = _from_ufunc  # type: ignore[attr-defined]
Tensor.__array_priority__ = 1000  # type: ignore[attr-defined]


@surface(function=False, internal=False)
def is_contiguous(self: Tensor, *more: object, memory_format: object | None = None) -> bool:
    """Whether elements lie in the order of a memory format (row-major) without gaps."""
    if more:
        raise explained(".is_contiguous", more, {}) or TypeError
    name = "contiguous" if memory_format is None else format_name(memory_format)
    plain = name in ("contiguous", "preserve")
    return self._geom.contiguous if plain else follows(self._geom, name)


@surface(function=False, internal=False)
@parsed(method=True)
def resize_(self: Tensor, *size: Any, memory_format: object | None = None) -> Tensor:
    """Another shape in place, dense; the storage grows where it must.

    RuntimeError for a tensor that requires grad; the same shape changes nothing.
    """
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if not size:
        raise TypeError("resize_: no size")
    shape = tuple(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    name = "contiguous" if memory_format is None else format_name(memory_format)
    if name == "preserve":
        raise RuntimeError("Unsupported memory formatPreserve")
    if shape == self.shape and name == "contiguous":
        return self
    refuse_inference(self)
    _refuse_resize(shape)
    geom = self._geom.at(shape, format_strides(shape, name))
    size_of_one = geom.dtype.itemsize
    need, before = geom.extent * size_of_one, self._storage.nbytes
    if need > before:
        if geom.device.type in ("cpu", "meta"):
            _storage.resize(self._storage, need)
        else:
            _grow(self._storage, geom, need)
    _set_geometry(self, geom)
    self._storage.value += 1
    if need > before and SETTINGS["deterministic"] and SETTINGS["fill"]:
        first = before // size_of_one
        fill_unwritten(self.as_strided((need // size_of_one - first,), (1,), first))
    return self


def _refuse_resize(shape: tuple[int, ...]) -> None:
    """RuntimeError in torch's words for numbers of elements or strides past int64."""
    if any(n < 0 for n in shape) or prod(shape) >= 1 << 63:
        raise RuntimeError("numel: integer multiplication overflow")
    if prod(max(n, 1) for n in shape[1:]) >= 1 << 63:
        raise RuntimeError("Stride calculation overflowed")


@surface(internal=False)
@parsed(method=True)
def resize_as_(
    self: Tensor, the_template: Tensor, *, memory_format: object | None = None
) -> Tensor:
    """The shape of another tensor, in place; with `preserve_format` its memory format too."""
    if memory_format is not None and format_name(memory_format) == "preserve":
        formats = ("contiguous", "channels_last", "channels_last_3d")
        memory_format = next((f for f in formats if follows(the_template._geom, f)), None)
    return resize_(self, the_template.shape, memory_format=memory_format)


def _grow(storage: Storage, geom: Geometry, need: int) -> None:
    """Put `need` bytes of device memory in place of a storage's; what it held comes first."""
    backend, size = registry.backend(geom.device), geom.dtype.itemsize
    current = geom.fresh((storage.nbytes // size,))
    larger = backend.allocate(geom.fresh((need // size,)))
    if current.numel:
        backend.copy(wrap(current, larger._storage), wrap(current, storage))
    storage.replace(larger._storage.memory)


def _set_geometry(self: Tensor, geom: Geometry) -> None:
    self._geom = geom
    forget_array(self)


@surface(function=False, internal=False)
@parsed(method=True)
def set_(
    self: Tensor,
    source: Tensor | UntypedStorage | TypedStorage | None = None,
    storage_offset: int = 0,
    size: Shape | None = None,
    stride: Shape | None = None,
) -> Tensor:
    """Become another tensor's storage and geometry, or a view of a storage; empty without one."""
    refuse_written(self)
    if isinstance(source, Tensor) and hasattr(source, "_as_gradient"):
        raise NotImplementedError("Could not run 'aten::set_' with a sparse tensor as its source")
    other = source.dtype if isinstance(source, Tensor | TypedStorage) else self.dtype
    if other is not self.dtype:
        if isinstance(source, TypedStorage):
            raise RuntimeError(
                f"Expected a Storage of type {c_name(self.dtype)} or an UntypedStorage, but got"
                f" type {scalar_name(other)} for argument 1 'storage'"
            )
        raise RuntimeError(
            f"Could not set tensor of type {c_name(other)} to a tensor of type {c_name(self.dtype)}"
        )
    if isinstance(source, Tensor) and size is None:
        geom = source._geom
    else:
        storage: Any = UntypedStorage(0) if source is None else source
        if isinstance(storage, Tensor):
            storage = storage.untyped_storage()
        typed = isinstance(storage, TypedStorage)
        dtype: Dtype = storage.dtype if typed else self.dtype
        storage = storage._untyped_storage
        if size is None:
            size = (storage.nbytes() // dtype.itemsize,)
        shape = tuple(size)
        strides = contiguous_strides(shape) if stride is None else tuple(stride)
        geom = contiguous(shape, dtype, storage.device).at(shape, strides, storage_offset)
        if geom.extent * dtype.itemsize > storage.nbytes():
            raise RuntimeError(
                f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset"
                f" {storage_offset}, and itemsize {dtype.itemsize} requiring a storage size of"
                f" {geom.extent * dtype.itemsize} are out of bounds for storage of size"
                f" {storage.nbytes()}"
            )
        source = storage
    self._storage = source._storage
    _set_geometry(self, geom)
    return self


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if not self._geom.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(aten.unbind(self, 0))


Tensor.__iter__ = _iterate  # type: ignore[method-assign, assignment]


def _warn_of_number(self: Tensor, name: str) -> None:
    """A warning of what is deprecated on tensors without dimensions."""
    if not self.ndim:
        what = "Consider using x.conj()."
        if name not in ("H", "mH"):
            what = "This function is the identity in these cases."
        warn_once(f"Tensor.{name} is deprecated on 0-D tensors. {what}")


def _matrix_t(name: str) -> Any:
    def transposed(self: Tensor) -> Tensor:
        refuse_vector(self.ndim, f"tensor.{name}")
        _warn_of_number(self, name)
        swapped = aten.transpose(self, -2, -1) if self.ndim else self
        return aten.conj_of(swapped) if name == "mH" else swapped

    return property(transposed)


def _hermitian(self: Tensor) -> Tensor:
    if self.ndim not in (0, 2):
        batches = " For batches of matrices, consider using tensor.mH" if self.ndim > 2 else ""
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor."
            + batches
        )
    _warn_of_number(self, "H")
    return aten.conj_of(aten.transpose(self, 0, 1) if self.ndim else self)


attach("mT", _matrix_t("mT"))
attach("mH", _matrix_t("mH"))


def _reversed_dims(self: Tensor) -> Tensor:
    if self.ndim not in (0, 2):
        warn_once(_NOT_A_MATRIX)
    return aten.permute(self, tuple(range(self.ndim - 1, -1, -1)))


_NOT_A_MATRIX = (
    "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and"
    " it will throw an error in a future release. Consider `x.mT` to transpose batches of matrices"
    " or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
)
attach("T", property(_reversed_dims))


def _part(name: str) -> property:
    def write(self: Tensor, value: Tensor | Number) -> None:
        part = getattr(aten, name)(self)
        if not isinstance(value, Tensor | int | float | complex):
            kind = builtins.type(value).__name__
            raise TypeError(f"can't assign a {kind} to a torch.{part.dtype.legacy}Tensor")
        part.copy_(value)

    return property(lambda self: getattr(aten, name)(self), write)


attach("real", _part("real"))
attach("imag", _part("imag"))
attach("H", property(_hermitian))
