"""Owns small functions that ask about tensors and types, and torch's names for constants."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from .._compat.argument_errors import class_name, parsed, refused_input
from .._compat.argument_parser import refusal, signature
from .._compat.class_names import CClass
from .._compat.missing_args import UNGIVEN
from .._dispatch.bind import can_cast as _can_cast
from .._dispatch.overrides import hand_over, overriding
from .._tensor import dtype as dt
from .._tensor.device import STANDING_IN, DeviceLike, resolve
from .._tensor.geometry import Size
from .._tensor.subclass import DOOR
from .._tensor.tensor import Tensor
from .._tensor.typed_storage import TypedStorage, typed
from .._tensor.types import Number
from .._tensor.untyped_storage import UntypedStorage
from ..ops import rules
from ..ops.spec import aten
from .creation import sizes_of, tensor
from .literals import is_sequence
from .publish import FUNCTIONS, surface


class NamedConstant:
    """One of a few objects of a kind; a copy is the object itself."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format(NamedConstant, metaclass=CClass):  # noqa: N801 - torch's name
    """How a new tensor is to be laid out."""


class layout(NamedConstant, metaclass=CClass):  # noqa: N801 - torch's name
    """How a tensor stores its elements: tensors here are `strided`; the others are only names."""


contiguous_format = memory_format("contiguous_format")
legacy_contiguous_format = contiguous_format
preserve_format = DOOR["preserve_format"] = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
DOOR["memory_format"] = {
    "contiguous": contiguous_format, "preserve": preserve_format, "channels_last": channels_last,
    "channels_last_3d": channels_last_3d,
}.__getitem__  # fmt: skip
strided = DOOR["strided"] = layout("strided")
sparse_coo, sparse_csr, sparse_csc = map(layout, ("sparse_coo", "sparse_csr", "sparse_csc"))
sparse_bsr, sparse_bsc, jagged = map(layout, ("sparse_bsr", "sparse_bsc", "jagged"))
LAYOUTS = {str(kind): kind for kind in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr,
                                        sparse_bsc)}  # fmt: skip
Tensor.layout = strided


@surface(method=False, internal=False)
def is_tensor(obj: Tensor | int, /) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


@surface(method=False, internal=False)
def is_storage(obj: object, /) -> bool:
    """Whether `obj` is a storage."""
    return isinstance(obj, TypedStorage | UntypedStorage)


@surface(method=False, internal=False)
def is_floating_point(input: Tensor = UNGIVEN) -> bool:
    """Whether the dtype is a floating one."""
    try:
        return input.is_floating_point()
    except AttributeError:
        raise refused_input("is_floating_point", input) from None


@surface(method=False, internal=False)
def is_complex(input: Tensor = UNGIVEN) -> bool:
    """Whether the dtype is a complex one."""
    try:
        return input.is_complex()
    except AttributeError:
        raise refused_input("is_complex", input) from None


@surface(internal=False)
def is_conj(input: Tensor) -> bool:
    """Whether torch would conjugate elements when they are read; here conj() writes its result."""
    if not isinstance(input, Tensor):
        raise refused_input("is_conj", input)
    return "_conjugated" in input.__dict__


@surface(method=False, internal=False)
def view_as_real(input: Tensor) -> Tensor:
    """A view `[*] → [*, 2]` of real and imaginary parts; RuntimeError of what `is_conj`."""
    if not isinstance(input, Tensor):
        raise refused_input("view_as_real", input)
    if "_conjugated" in input.__dict__:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate"
            " tensor so you can view it as real, use self.resolve_conj(); however, be warned that"
            " the resulting tensor will NOT alias the original."
        )
    return aten.view_as_real(input)


@surface(internal=False)
def is_neg(input: Tensor) -> bool:
    """Whether torch would negate elements when they are read: the imaginary part of a conjugate."""
    if not isinstance(input, Tensor):
        raise refused_input("is_neg", input)
    return "_negated" in input.__dict__


@surface(method=False, internal=False)
@parsed()
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return bool(input.is_inference())


@surface(internal=False)
def is_nonzero(input: Tensor) -> bool:
    """The truth of a tensor with one element; RuntimeError for others."""
    if not isinstance(input, Tensor):
        raise refused_input("is_nonzero", input)
    return bool(input)


@surface(method=False, internal=False)
@parsed()
def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


@surface(method=False, internal=False)
def _assert(condition: bool, message: str) -> None:
    """Python's assert as a function; AssertionError with `message`."""
    if condition.__class__ is not bool and (kinds := overriding((condition,))):
        hand_over(FUNCTIONS["_assert"], kinds, (condition, message), {})
        return
    assert condition, message


@surface(method=False, internal=False)
def typename(obj: object, /) -> str:
    """The name of a tensor's type, of a class or function, or of an object's class."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    named: Any = obj if hasattr(obj, "__qualname__") else type(obj)
    module = named.__module__
    return named.__qualname__ if module in ("builtins", None) else f"{module}.{named.__qualname__}"


@surface(method=False, internal=False)
@parsed()
def result_type(tensor1: Tensor | Number, tensor2: Tensor | Number) -> dt.dtype:
    """The dtype that an operation of the two would have."""
    for value in (tensor1, tensor2):
        if not isinstance(value, Tensor) and value.__class__ not in rules.NUMBERS:
            kinds = ", ".join(type(v).__name__ for v in (tensor1, tensor2))
            raise TypeError(
                f"result_type() received an invalid combination of arguments - got ({kinds}), but"
                " expected one of:\n * (Tensor tensor, Tensor other)\n * (Number scalar, Tensor"
                " tensor)\n * (Tensor tensor, Number other)\n * (Number scalar1, Number scalar2)"
            )
    return rules.result_type(t._geom if isinstance(t, Tensor) else t for t in (tensor1, tensor2))


@surface(method=False, internal=False)
@parsed()
def can_cast(from_: dt.dtype, to: dt.dtype) -> bool:
    """Whether a result of one dtype may be written to a tensor of another."""
    return _can_cast(dt.of_python(from_), dt.of_python(to))


@surface(method=False)
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that all broadcast to; RuntimeError, or ValueError for a negative length."""
    merged: list[int] = []
    for at, shape in enumerate(shapes):
        sizes = (shape,) if isinstance(shape, int) else Size(map(index, shape))
        merged[:0] = [1] * (len(sizes) - len(merged))
        for dim in range(-1, -len(sizes) - 1, -1):
            if sizes[dim] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if merged[dim] == 1:
                merged[dim] = sizes[dim]
            elif sizes[dim] not in (1, merged[dim]):
                sizes_tuple = shape if isinstance(shape, Size) else tuple(sizes)
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {sizes[dim]} at {dim}!"
                    f" Mismatching argument at index {at} had {sizes_tuple}; but expected shape"
                    f" should be broadcastable to {merged}"
                )
    return Size(merged)


class _TypedTensorType(type):
    """`isinstance(x, torch.LongTensor)`: asks for the dtype, and the device."""

    dtype: dt.dtype
    where: str
    is_sparse = False

    @property
    def layout(cls) -> layout:
        """torch.strided."""
        return strided

    @property
    def is_cuda(cls) -> bool:
        """Whether tensors of it are on a CUDA device."""
        return cls.where == "cuda"

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or not hasattr(Tensor, name):
            full = f"{cls.__module__.replace('mindtorch', 'torch', 1)}.{cls.__name__}"
            raise AttributeError(f"type object '{full}' has no attribute '{name}'")
        return getattr(Tensor, name)

    def __dir__(cls) -> list[str]:
        return sorted({*super().__dir__(), *dir(Tensor)})

    def __instancecheck__(cls, value: object) -> bool:
        return (
            isinstance(value, Tensor)
            and value.dtype is cls.dtype
            and value.device.type == cls.where
        )

    def __call__(cls, *args: object, **options: object) -> Tensor:
        refuse_cuda(cls.where, cls.__name__)
        return _construct(args, options, cls.dtype, cls.where)


def refuse_cuda(where: str, name: str) -> None:
    """TypeError in torch's words for a class of tensors on CUDA, unless npu stands in for it."""
    if where == "cuda" and where not in STANDING_IN:
        raise TypeError(
            f"type torch.cuda.{name} not available. Torch not compiled with CUDA enabled."
        )


def typed_tensor(dtype: dt.dtype, where: str = "cpu") -> type:
    """`torch.LongTensor`, `torch.npu.LongTensor`: a legacy class of tensors."""
    place = "mindtorch" if where == "cpu" else f"mindtorch.{where}"
    words = f"Tensors of {dtype} on {where}; a legacy class: `torch.tensor(…, dtype=…)`."
    scope = {"dtype": dtype, "where": where, "__module__": place, "__doc__": words}
    return _TypedTensorType(dtype.legacy + "Tensor", (), scope)


def typed_tensor_named(name: str, where: str) -> type | None:
    """The legacy class of this name, such as LongTensor; None where there is none."""
    dtype = next((d for d in dt.ALL if d.legacy + "Tensor" == name), None)
    return None if dtype is None else typed_tensor(dtype, where)


def _construct(
    args: Any,
    options: dict[str, Any],
    dtype: dt.dtype,
    where: DeviceLike,
    rows: Sequence[str] = (),
) -> Tensor:
    """A legacy constructor's tensor: of a size, of numbers, or over a storage or another tensor."""
    sizes = len(args) > 1 and args[0].__class__ is int
    if sizes:
        args = (args,)  # the sizes one by one
    forms = [signature(f"new{row}") for row in rows or _NEW]
    message = refusal(forms, args, options)
    # A lone sequence that is no Size has elements, of any numbers, not sizes.
    lone = len(args) == 1 and not sizes and isinstance(args[0], list | tuple)
    if message and not (lone and refusal(forms[-1:], args, options) is None):
        raise message
    device = options.get("device")
    if device is not None and resolve(device).type != resolve(where).type:
        raise RuntimeError(
            f"legacy constructor expects device type: {resolve(where).type} but device type:"
            f" {resolve(device).type} was passed"
        )
    place = where if device is None else device
    first = args[0] if args else options.get("data", options.get("other", ()))
    if not args and "size" in options:
        first = Size(options["size"])
    if isinstance(first, Tensor):
        return _alias(first, dtype, where)
    if isinstance(first, TypedStorage | UntypedStorage):
        return FUNCTIONS["empty"](0, dtype=dtype, device=place).set_(first)
    if isinstance(first, np.integer) or (
        hasattr(first, "__index__") and not isinstance(first, bool | np.ndarray)
    ):
        return FUNCTIONS["empty"](sizes_of((first,), "new"), dtype=dtype, device=place)
    if isinstance(first, Size) and not first:
        return FUNCTIONS["empty"](first, dtype=dtype, device=place)
    if isinstance(first, Size) or sizes:
        return FUNCTIONS["empty"](sizes_of(tuple(first), "new"), dtype=dtype, device=place)
    if not is_sequence(first):
        raise TypeError(f"new(): data must be a sequence (got {class_name(first)})")
    return tensor(first, dtype=dtype, device=place)


_NEW = (
    "(*, Device? device=None)",
    "(Storage storage)",
    "(Tensor other)",
    "(SymIntArrayRef size, *, Device? device=None)",
    "(PyObject* data, *, Device? device=None)",
)


def _alias(other: Tensor, dtype: dt.dtype, where: DeviceLike) -> Tensor:
    """Another tensor's elements; TypeError where it is of another dtype or kind of device."""
    if other.dtype is not dtype or other.device.type != resolve(where).type:
        kinds = ((dtype, resolve(where).type), (other.dtype, other.device.type))
        expected, got = (
            f"TensorOptions(dtype={rules.c_name(d)}, device={t}, layout=Strided,"
            " requires_grad=false (default), pinned_memory=false (default),"
            " memory_format=(nullopt))"
            for d, t in kinds
        )
        raise TypeError(f"expected {expected} (got {got})")
    return other.detach()


@surface(function=False, internal=False)
def new(self: Tensor, *args: object, **options: object) -> Tensor:
    """The legacy constructor with this tensor's dtype and device: `x.new(2, 3)`, `x.new([…])`."""
    return _construct(args, options, self.dtype, self.device)


def _new_tensor(cls: type[Tensor], *args: Any, **options: Any) -> Tensor:
    """`Tensor(2, 3)` and `Tensor([…])`: the legacy constructor, in the default dtype."""
    if args and isinstance(args[0], Tensor) and len(args) == 1:
        tensor = args[0].detach()
    elif cls is Tensor:
        tensor = _construct(args, options, dt.get_default_dtype(), "cpu")
    else:  # a class of a program's own, whose __init__ may take more
        plain = {"device": options["device"]} if "device" in options else {}
        tensor = _construct(args, plain, dt.get_default_dtype(), "cpu")
    return tensor if cls is Tensor else Tensor._make_subclass(cls, tensor)


Tensor.__new__ = _new_tensor  # type: ignore[method-assign]
Tensor.__init__ = lambda self, *args, **kwargs: None  # type: ignore[method-assign]

for _d in dt.ALL:
    if not _d.is_complex:
        FUNCTIONS[_d.legacy + "Tensor"] = typed_tensor(_d)
for _d in (*dt.ALL, *dt.STORED):
    FUNCTIONS[_d.legacy + "Storage"] = typed(_d)
