"""Owns the slow half of a call: arguments checked and put into plan form, in torch's words."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._autograd.grad_mode import LOCAL
from .._compat.argument_errors import class_name, explained_here
from .._compat.missing_args import refuse_missing
from .._compat.warn_once import warn
from .._tensor.device import device as Device
from .._tensor.dtype import (
    COMPLEX,
    FLOAT,
    INTEGER,
    bool as BOOL,
    dtype as Dtype,
    get_default_dtype,
    of_python,
    uint8 as UINT8,
)
from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor
from .._tensor.types import Number
from ..ops.rules import NUMBERS, result_type
from ..ops.schema import ArgKind, SchemaArgument
from ..ops.spec import Op, aten

MASKS = (BOOL, UINT8)  # dtypes of indices that are masks


def warn_of_bytes() -> None:
    """Say, as torch does, that masks of bytes go out of use."""
    warn(
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
        UserWarning,
    )


def normalise(op: Op, args: Sequence[Any], first: int = 0) -> tuple[Any, ...]:
    """Arguments as plans want them; TypeError in torch's words for a wrong one.

    Positions in errors are counted from the argument `first`: 1 where self is a method's.
    """
    refuse_missing(op, args)
    if op.api.number_first:
        numbers = op.base_name in NUMBERS_AS_TENSORS
        args = tensor_first(args, getattr(op.infer, "kind", ""), numbers)
    pairs = list(zip(op.schema.args, args, strict=True))
    sides = [v for a, v in pairs if a.kind is ArgKind.UNION]
    if pairs and pairs[0][0].kind is ArgKind.UNION and all(v.__class__ in NUMBERS for v in sides):
        raise _no_row(op, args, first)  # a function of two, of which one has to be a tensor
    if op.base_name == "index_put":
        _refuse_masks(*args[:2])
    try:
        return tuple(_FIX[a.kind](op, a, i, v) for i, (a, v) in enumerate(pairs, -first))
    except _NeitherError:
        raise _no_row(op, args, first) from None


def _refuse_masks(self: Tensor, indices: Sequence[Any]) -> None:
    """IndexError in torch's words for a mask of another shape than the dimensions it is for."""
    at = 0
    for index in indices if isinstance(self, Tensor) else ():
        masks = isinstance(index, Tensor) and index._geom.dtype in MASKS
        for k in range(index._geom.ndim if masks else 0):
            if at + k < self.ndim and index.shape[k] != self.shape[at + k]:
                raise IndexError(
                    f"The shape of the mask {list(index.shape)} at index {k} does not match the"
                    f" shape of the indexed tensor {list(self.shape)} at index {at + k}"
                )
        at += index._geom.ndim if masks else 1


# What torch's parser takes two numbers for (should_allow_numbers_as_tensors,
# torch/csrc/utils/python_arg_parser.cpp).
NUMBERS_AS_TENSORS = frozenset(("add", "sub", "mul", "div", "floor_divide"))


def tensor_first(args: Sequence[Any], kind: str = "", numbers: bool = False) -> Sequence[Any]:
    """The operands with a number in the first place as a 0-d tensor of the result's dtype.

    `kind` is that of the row's rule: "float" computes integers as reals. `numbers`: whether the
    second may be one too.
    """
    if len(args) < 2 or args[0].__class__ not in NUMBERS:
        return args
    if not isinstance(args[1], Tensor) and not (numbers and args[1].__class__ in NUMBERS):
        return args
    others = (v._geom if isinstance(v, Tensor) else v for v in args[:2])
    dtype = None if args[0].__class__ is bool else result_type(others)
    if kind == "float" and dtype is not None and dtype.category < FLOAT:
        dtype = get_default_dtype()
    return (aten.tensor(args[0], dtype=dtype), *args[1:])


class _NeitherError(TypeError):
    """What a `Tensor|Scalar` argument is given is neither."""


# Functions of which torch says the argument; of others with two rows, all arguments.
_ONE_ROW = frozenset(("add", "sub", "mul", "div", "where"))


def _no_row(op: Op, args: Sequence[Any], first: int) -> TypeError:
    """TypeError in torch's words where a call fits neither the row of tensors nor of numbers."""
    if op.base_name in _ONE_ROW:
        i, arg = next(
            (i, a)
            for i, a in enumerate(op.schema.args)
            if a.kind is ArgKind.UNION
            and not isinstance(args[i], Tensor)
            and number(args[i]) is None
        )
        return _refuse(op, arg, i - first, args[i], "Tensor")
    pairs = zip(op.schema.args, args, strict=True)
    values = [v for a, v in pairs if not (a.has_default and v is a.default)]
    text = op.text[op.text.index("(") : op.text.rindex("->")].strip()[:-1]
    text = text.replace(" self", " input", 1) + ", *" * ("*," not in text) + ", Tensor out = None)"
    rows = "".join(f" * {text.replace('Tensor|Scalar', kind)}\n" for kind in ("Tensor", "Number"))
    return TypeError(
        f"{op.base_name}() received an invalid combination of arguments - got"
        f" ({', '.join(class_name(v) for v in values)}), but expected one of:\n{rows}"
    )


def _refuse(op: Op, arg: SchemaArgument, position: int, value: Any, expected: str) -> TypeError:
    name = "input" if arg.name == "self" else arg.name
    place = "" if arg.keyword_only else f" (position {position + 1})"
    return TypeError(
        f"{op.base_name}(): argument '{name}'{place} must be {expected}, not {class_name(value)}"
    )


def refused(op: Op, arg: SchemaArgument, i: int, value: object) -> TypeError:
    """What torch says of an attribute of another class."""
    return _refuse(op, arg, i, value, arg.type.removeprefix("Sym").lower())


def _tensor(op: Op, arg: SchemaArgument, i: int, value: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if op.base_name == "copy" and value.__class__ in NUMBERS:  # torch takes a number here
        number: Tensor = aten.tensor(value)
        return number
    raise _refuse(op, arg, i, value, "Tensor")


def _optional_tensor(op: Op, arg: SchemaArgument, i: int, value: Tensor | None) -> Tensor | None:
    return None if value is None else _tensor(op, arg, i, value)


def _tensors(op: Op, arg: SchemaArgument, i: int, value: Any) -> tuple[Tensor, ...]:
    if isinstance(value, Tensor) or not isinstance(value, Sequence):
        raise _refuse(op, arg, i, value, "tuple of Tensors")
    for n, item in enumerate(value):
        if not isinstance(item, Tensor):
            raise TypeError(
                f"expected Tensor as element {n} in argument {i}, but got {class_name(item)}"
            )
    return tuple(value)


def _optional_tensors(op: Op, arg: SchemaArgument, i: int, value: Any) -> Any:
    indices: list[Any] = []
    for item in value:
        index = _optional_tensor(op, arg, i, item)
        if index is not None and index._geom.dtype in MASKS:
            if index._geom.dtype is UINT8:
                warn_of_bytes()
            # A mask stands for the places of what it keeps, an index for each of its dimensions.
            indices += aten.unbind(aten.nonzero(index), 1)
        else:
            indices.append(index)
    return tuple(indices)


def number(value: Any) -> Any:
    """A Python number from a number, numpy scalar or 0-d tensor; None for anything else."""
    if value.__class__ in NUMBERS:
        return value
    if isinstance(value, np.number | np.bool_):
        return value.item()
    if isinstance(value, Tensor) and not value._geom.ndim:
        return value.item()
    if isinstance(value, int):
        return value.__index__()  # a traced size is itself
    if isinstance(value, float):
        return value.__float__()  # as is one that a trace does not know
    if isinstance(value, complex):
        return complex(value)
    return None


def _in_64_bits(value: Any) -> Any:
    if value.__class__ is int and not -(1 << 63) <= value < 1 << 64:
        raise OverflowError("int too big to convert")
    return value


def _union(op: Op, arg: SchemaArgument, i: int, value: Any) -> Any:
    if isinstance(value, Tensor) or (value is None and arg.optional):
        return value
    scalar = number(value)
    if scalar is None:
        raise _NeitherError
    return _in_64_bits(scalar)


def _scalar(op: Op, arg: SchemaArgument, i: int, value: Number | None) -> Number | None:
    if value is None and arg.optional:
        return None
    # A number that wants a gradient would lose it.
    lost = isinstance(value, Tensor) and value.requires_grad and LOCAL.grad
    scalar = None if lost else number(value)
    if scalar is None:
        raise _refuse(op, arg, i, value, "Number")
    return _in_64_bits(scalar)


def _ints(op: Op, arg: SchemaArgument, i: int, value: Any) -> tuple[int, ...] | None:
    if value is None and arg.optional:
        return None
    if value is None and arg.has_default and arg.default == ():
        return ()  # torch writes this default as None
    expected = "tuple of ints"
    if isinstance(value, tuple | list):
        if value and isinstance(value[0], bool | np.bool_):
            raise _refuse(op, arg, i, value, expected)
        return tuple(_index(op, arg, i, v, expected) for v in value)
    lone = arg.size is None and one_by_one(op, i)
    if isinstance(value, bool | np.bool_) or not (arg.size or lone):
        raise _refuse(op, arg, i, value, expected)
    return (_index(op, arg, i, value, expected),) * (arg.size or 1)


# Classes of sizes that need no look: all else may equal an int and be none, as 1.0 and True do.
PLAIN = frozenset((int, tuple, type(None)))


def listed(op: Op, at: int, first: int, value: Any) -> Any:
    """A list of sizes as a tuple; TypeError in torch's words for bools and reals."""
    if isinstance(value, list):
        wrong = bool(value) and value[0].__class__ is bool
        value = tuple(value)
        wrong = wrong or any(v.__class__ is float for v in value)
    else:
        wrong = value.__class__ in (bool, float)
    if wrong:
        error = explained_here()
        raise error or _refuse(op, op.schema.args[at], at - first, value, "tuple of ints")
    return value


def one_by_one(op: Op, i: int) -> bool:
    """Whether argument `i` is that of a method whose ints come one by one: `x.permute(0, 1)`."""
    positional = [a for a in op.schema.args if not a.keyword_only]
    return i == 0 and len(positional) == 2 and positional[0].kind is ArgKind.TENSOR


def _index(op: Op, arg: SchemaArgument, i: int, value: Any, expected: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise _refuse(op, arg, i, value, expected) from None


def sizes_of(op: Op, at: int, first: int, value: Any) -> Any:
    """What a composite's body is given for `int[]`: an int, or a list of ints and Nones."""
    if value is None:
        return value
    arg = op.schema.args[at]
    if isinstance(value, tuple | list):
        if value and isinstance(value[0], bool | np.bool_):
            raise _refuse(op, arg, at - first, value, "tuple of ints")
        listed = (
            v if v is None else _index(op, arg, at - first, v, "tuple of ints") for v in value
        )
        return type(value)(listed)
    if isinstance(value, bool | np.bool_):
        raise _refuse(op, arg, at - first, value, "tuple of ints")
    whole = _index(op, arg, at - first, value, "tuple of ints")
    return (whole,) if arg.size is None and one_by_one(op, at - first) else whole


def _attr(op: Op, arg: SchemaArgument, i: int, value: Any) -> Any:
    if value is None:
        if arg.optional or (arg.has_default and arg.default is None):
            return None
        raise _refuse(op, arg, i, value, arg.type)
    fix = _ATTR.get(arg.type)
    return value if fix is None else fix(op, arg, i, value)


def _int_attr(op: Op, arg: SchemaArgument, i: int, value: int) -> int:
    if value.__class__ is bool:
        raise _refuse(op, arg, i, value, "int")
    if isinstance(value, Tensor) and value.ndim and (error := explained_here()):
        raise error  # a SymInt takes one element of any shape
    return _index(op, arg, i, value, "int")


def _float_attr(op: Op, arg: SchemaArgument, i: int, value: float) -> float:
    scalar = number(value)
    if scalar is None or isinstance(scalar, complex):
        raise _refuse(op, arg, i, value, "float")
    return float(scalar)


def _number_attr(op: Op, arg: SchemaArgument, i: int, value: Number) -> Number:
    scalar = number(value)
    if scalar is None:
        raise _refuse(op, arg, i, value, "Number")
    return scalar


def _bool_attr(op: Op, arg: SchemaArgument, i: int, value: bool) -> bool:
    if isinstance(value, bool | int | np.bool_):
        return bool(value)
    raise _refuse(op, arg, i, value, "bool")


def _dtype_attr(op: Op, arg: SchemaArgument, i: int, value: Dtype) -> Dtype:
    if isinstance(value, Dtype):
        return value
    if isinstance(known := of_python(value), Dtype):
        return known
    raise _refuse(op, arg, i, value, "torch.dtype")


def _device_attr(op: Op, arg: SchemaArgument, i: int, value: Device) -> Device:
    return value if isinstance(value, Device) else Device(value)


_ATTR: dict[str, Callable[..., Any]] = {
    "int": _int_attr,
    "SymInt": _int_attr,
    "float": _float_attr,
    "Number": _number_attr,
    "bool": _bool_attr,
    "ScalarType": _dtype_attr,
    "Device": _device_attr,
    "float[]": lambda op, arg, i, value: tuple(float(v) for v in value),
    "bool[]": lambda op, arg, i, value: tuple(bool(v) for v in value),
}

_FIX: dict[ArgKind, Callable[..., Any]] = {
    ArgKind.TENSOR: _tensor,
    ArgKind.OPTIONAL_TENSOR: _optional_tensor,
    ArgKind.TENSORS: _tensors,
    ArgKind.OPTIONAL_TENSORS: _optional_tensors,
    ArgKind.UNION: _union,
    ArgKind.SCALAR: _scalar,
    ArgKind.INTS: _ints,
    ArgKind.ATTR: _attr,
}


# What every composite's body needs as its schema says.
_FIRM = frozenset(
    (ArgKind.TENSOR, ArgKind.OPTIONAL_TENSOR, ArgKind.TENSORS, ArgKind.INTS, ArgKind.SCALAR)
)


def refuse_kinds(op: Op, values: Sequence[Any], first: int) -> None:
    """TypeError in torch's words where a body failed because of an argument of another kind."""
    for i, (arg, value) in enumerate(zip(op.schema.args, values, strict=True), -first):
        if arg.kind in _FIRM:
            try:
                _FIX[arg.kind](op, arg, i, value)
            except TypeError as error:
                raise error from None


def overlaps_itself(target: Geometry) -> bool:
    """Whether elements share memory."""
    shared = any(s == 0 and n > 1 for n, s in zip(target.shape, target.strides, strict=True))
    return shared and target.numel > 0


def warn_of_overlap(op: Op, target: Geometry) -> bool:
    """Whether a target is an expanded tensor that torch deprecates writing to; a warning of it."""
    deprecated = isinstance(op.writes.overlaps, str) and overlaps_itself(target)
    if deprecated:
        warn(
            f"Use of {op.base_name}_ on expanded tensors is deprecated. Please clone() the tensor"
            " before performing this operation. This also applies to advanced indexing e.g."
            f" {op.writes.overlaps}",
        )
    return deprecated


def refuse_overlap(target: Geometry) -> None:
    """RuntimeError in torch's words for a target whose elements share memory."""
    if overlaps_itself(target):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a"
            " single memory location. Please clone() the tensor before performing the operation."
        )


def partly_overlap(a: Geometry, b: Geometry) -> bool:
    """Whether tensors of one storage share some memory but are not the same elements.

    Said only of tensors without gaps, as torch does (ATen/MemoryOverlap.cpp, get_overlap_status).
    """
    if a is b or not (a.numel and b.numel and a.dense and b.dense):
        return False
    first, second = (g.offset * g.dtype.itemsize for g in (a, b))
    ends = [at + g.numel * g.dtype.itemsize for at, g in ((first, a), (second, b))]
    if (first, ends[0]) == (second, ends[1]):
        return a.strides != b.strides
    return first < ends[1] and second < ends[0]


SHARED = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a"
    " single memory location. Please clone() the tensor before performing the operation."
)


def refuse_shared(outputs: Sequence[Tensor], read: Sequence[Any]) -> None:
    """RuntimeError in torch's words where what is written shares memory with what is read."""
    for value in read:
        for tensor in value if isinstance(value, tuple | list) else (value,):
            if isinstance(tensor, Tensor):
                a = tensor._geom
                for target in outputs:
                    if tensor is target:
                        raise RuntimeError(SHARED)
                    if not a.numel:
                        continue
                    b = target._geom
                    if tensor._storage is target._storage and (a is b or partly_overlap(a, b)):
                        raise RuntimeError(SHARED)


def watch_overlap(plan: Any, outputs: tuple[Geometry, ...], op: Op) -> None:
    """Have a plan refuse inputs that share part of the memory that it writes.

    Where the op wants them apart, the whole of it as well, save for the target's own place.

    Geometries that could overlap only by chance of their offsets cost nothing: the plan is
    changed where they would overlap in one storage, and then looks whether they are in one.
    """
    watched = [
        (k, i)
        for k, target in enumerate(outputs)
        for i, geom in enumerate(plan.args)
        if geom.__class__ is Geometry
        and (partly_overlap(target, geom) or (op.writes.apart and i > 0 and geom is target))
        and not (op.writes.overlaps and not geom.ndim)
    ]
    if not watched:
        return
    run = plan.run

    def guarded(dests: tuple[Tensor, ...], *args: Any) -> Any:
        if any(dests[k]._storage is args[i]._storage for k, i in watched):
            raise RuntimeError(SHARED)
        return run(dests, *args)

    plan.run = guarded


def can_cast(source: Dtype, target: Dtype) -> bool:
    """torch.can_cast: never complex to real, float to integer, or anything to bool."""
    if source.category == COMPLEX and target.category != COMPLEX:
        return False
    if source.category == FLOAT and target.category <= INTEGER:
        return False
    return not (source.category > 0 and target.category == 0)
