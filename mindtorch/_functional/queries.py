"""Owns small functions that ask about tensors and types, and torch's names for constants."""

from __future__ import annotations

from operator import index
from typing import Any

from .._dispatch.bind import can_cast as _can_cast
from .._dispatch.overrides import hand_over, overriding
from .._tensor import dtype as dt
from .._tensor.device import DeviceLike
from .._tensor.geometry import Size
from .._tensor.storage import TypedStorage, UntypedStorage, typed
from .._tensor.tensor import Tensor
from .._tensor.types import Number
from ..ops import rules
from .creation import tensor
from .publish import FUNCTIONS, surface


class memory_format:  # noqa: N801 - torch's name
    """How a new tensor is to be laid out."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    __str__ = __repr__


class layout:  # noqa: N801 - torch's name
    """How a tensor stores its elements: tensors here are `strided`; the others are only names."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    __str__ = __repr__


contiguous_format = memory_format("contiguous_format")
legacy_contiguous_format = contiguous_format
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
strided = layout("strided")
sparse_coo, sparse_csr, sparse_csc = map(layout, ("sparse_coo", "sparse_csr", "sparse_csc"))
sparse_bsr, sparse_bsc, jagged = map(layout, ("sparse_bsr", "sparse_bsc", "jagged"))
LAYOUTS = {str(kind): kind for kind in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr,
                                        sparse_bsc)}  # fmt: skip
Tensor.layout = strided  # type: ignore[attr-defined]


@surface(method=False, internal=False)
def is_tensor(obj: Tensor | int) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


@surface(method=False, internal=False)
def is_storage(obj: object) -> bool:
    """Whether `obj` is a storage."""
    return isinstance(obj, TypedStorage | UntypedStorage)


@surface(method=False, internal=False)
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating one."""
    return input.is_floating_point()


@surface(method=False, internal=False)
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    return input.is_complex()


@surface(internal=False)
def is_conj(input: Tensor) -> bool:
    """Whether elements are conjugated when they are read: never, as conj() writes its result."""
    return False


@surface(internal=False)
def is_neg(input: Tensor) -> bool:
    """Whether elements are negated when they are read: never."""
    return False


@surface(method=False, internal=False)
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return bool(input.is_inference())


@surface(internal=False)
def is_nonzero(input: Tensor) -> bool:
    """The truth of a tensor with one element; RuntimeError for others."""
    return bool(input)


@surface(method=False, internal=False)
def numel(input: Tensor) -> int:
    """The number of elements."""
    if not isinstance(input, Tensor):
        raise TypeError(
            f"numel(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
        )
    return input.numel()


@surface(method=False, internal=False)
def _assert(condition: bool, message: str) -> None:
    """Python's assert as a function; AssertionError with `message`."""
    if condition.__class__ is not bool and (kinds := overriding((condition,))):
        hand_over(FUNCTIONS["_assert"], kinds, (condition, message), {})
        return
    assert condition, message


@surface(method=False, internal=False)
def typename(obj: object) -> str:
    """The name of a tensor's type or an object's class."""
    if isinstance(obj, Tensor) and type(obj) is Tensor:
        return str(obj.type())
    cls = obj if isinstance(obj, type) else type(obj)
    module = cls.__module__
    return cls.__qualname__ if module in ("builtins", "__builtin__") else f"{module}.{cls.__name__}"


@surface(method=False, internal=False)
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
def can_cast(from_: dt.dtype, to: dt.dtype) -> bool:
    """Whether a result of one dtype may be written to a tensor of another."""
    return _can_cast(from_, to)


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
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {sizes[dim]} at {dim}!"
                    f" Mismatching argument at index {at} had {tuple(sizes)}; but expected shape"
                    f" should be broadcastable to {merged}"
                )
    return Size(merged)


class _TypedTensorType(type):
    """`isinstance(x, torch.LongTensor)`: asks for the dtype, and the device."""

    dtype: dt.dtype
    where: str

    def __instancecheck__(cls, value: object) -> bool:
        return (
            isinstance(value, Tensor)
            and value.dtype is cls.dtype
            and value.device.type == cls.where
        )

    def __call__(cls, *args: Any, device: DeviceLike | None = None) -> Tensor:
        return _construct(args, cls.dtype, cls.where if device is None else device)


def typed_tensor(dtype: dt.dtype, where: str = "cpu") -> type:
    """`torch.LongTensor`, `torch.npu.LongTensor`: a legacy class of tensors."""
    place = "mindtorch" if where == "cpu" else f"mindtorch.{where}"
    scope = {"dtype": dtype, "where": where, "__module__": place}
    return _TypedTensorType(dtype.legacy + "Tensor", (), scope)


def _construct(args: Any, dtype: dt.dtype, device: DeviceLike | None = None) -> Tensor:
    if not args:
        return tensor([], dtype=dtype, device=device)
    if all(isinstance(a, int) and not isinstance(a, bool) for a in args):
        return FUNCTIONS["empty"](args, dtype=dtype, device=device)
    if isinstance(args[0], Size):
        return FUNCTIONS["empty"](tuple(args[0]), dtype=dtype, device=device)
    return tensor(args[0], dtype=dtype, device=device)


@surface(function=False, internal=False)
def new(self: Tensor, *args: Any, device: DeviceLike | None = None) -> Tensor:
    """The legacy constructor with this tensor's dtype and device: `x.new(2, 3)`, `x.new([…])`."""
    if args and isinstance(args[0], Tensor):
        return args[0].detach()
    return _construct(args, self.dtype, self.device if device is None else device)


def _new_tensor(
    cls: type[Tensor], *args: Any, device: DeviceLike | None = None, **_: object
) -> Tensor:
    """`Tensor(2, 3)` and `Tensor([…])`: the legacy constructor, in the default dtype."""
    if args and isinstance(args[0], Tensor):
        tensor = args[0].detach()
    else:
        tensor = _construct(args, dt.get_default_dtype(), device)
    return tensor if cls is Tensor else Tensor._make_subclass(cls, tensor)


Tensor.__new__ = _new_tensor  # type: ignore[method-assign]
Tensor.__init__ = lambda self, *args, **kwargs: None  # type: ignore[method-assign]

for _d in dt.ALL:
    if not _d.is_complex:
        FUNCTIONS[_d.legacy + "Tensor"] = typed_tensor(_d)
for _d in (*dt.ALL, *dt.STORED):
    FUNCTIONS[_d.legacy + "Storage"] = typed(_d)
