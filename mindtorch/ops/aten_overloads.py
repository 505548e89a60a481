"""Owns which overload of torch's operators a row's call is, and its arguments as torch has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.subclass import DOOR
from .._tensor.tensor import Tensor
from .namespaces import OpOverload, declarations, namespace
from .schema import ArgKind, Schema, SchemaArgument, parse
from .spec import OPS, Op

Call = tuple[OpOverload, tuple[Any, ...], dict[str, Any]]
# Operators that torch has under other names, and arguments that it names otherwise.
_NAMES = {"cross_entropy": "cross_entropy_loss", "dropout2d": "feature_dropout",
          "dropout1d": "feature_dropout", "dropout3d": "feature_dropout",
          "binary_cross_entropy.nn": "binary_cross_entropy",
          "__rsub__": "rsub", "__rpow__": "pow"}  # fmt: skip
_ARGUMENTS = {"input": ("self",), "other": ("mat2",), "self": ("input", "x"),
              "tensors": ("operands",), "train": ("training",)}  # fmt: skip
# Composites that are no operators in torch.
_OF_PYTHON = (
    "_segment_reduce affine_grid fold fractional_max_pool2d_with_indices "
    "fractional_max_pool3d_with_indices gaussian_nll_loss grid_sample gumbel_softmax "
    "interpolate linear_cross_entropy local_response_norm logsigmoid lp_pool1d lp_pool2d "
    "lp_pool3d lu max_unpool1d multi_head_attention_forward multilabel_soft_margin_loss "
    "normalize pca_lowrank softmin softsign svd_lowrank tanhshrink "
    "triplet_margin_with_distance_loss unique unravel_index upsample upsample_bilinear "
    "upsample_nearest"
)
# What torch's functions of Python hand on where a build has no cuDNN.
_MORE = {
    "batch_norm": {"cudnn_enabled": False}, "group_norm": {"cudnn_enabled": False},
    "instance_norm": {"cudnn_enabled": False}, "layer_norm": {"cudnn_enable": False},
}  # fmt: skip
# Operators that take a number as a tensor.
_WRAPPING = frozenset(("add", "div", "floor_divide", "mul", "sub", "true_divide", "fill"))
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


@cache
def _table() -> dict[str, list[Schema]]:
    table: dict[str, list[Schema]] = {}
    for line in declarations().values():
        schema = parse(f"{line} -> Tensor")
        table.setdefault(schema.name, []).append(schema)
    return table


def schemas_of(name: str) -> Sequence[Schema]:
    """The overloads of an operator; none of what torch has none of."""
    return _table().get(name) or ([OPS[name].schema] if name in OPS else [])


def operator_name(op: Op) -> str | None:
    """torch's name of a row's operator; None for its functions of Python."""
    name = _NAMES.get(op.name) or _NAMES.get(op.base_name, op.base_name)
    return None if name in _OF_PYTHON.split() or name.startswith("__") else name


def call_of_row(op: Op, end: str, raw: Sequence[Any]) -> Call | None:
    """The operator of a row's call with its arguments; None where torch has no such operator."""
    base = op.base_name
    name = _NAMES.get(op.name) or _NAMES.get(base, base)
    values = dict(zip([a.name for a in op.schema.args], raw, strict=True))
    if op.name == "embedding.nn":
        values = {"indices": values.pop("input"), **values}
    required = {
        a.name for a in op.schema.args
        if a.name in values and not (a.has_default and _same(values[a.name], a.default))
    }  # fmt: skip
    hint = op.name.partition(".")[2]
    if name in ("std", "std_mean", "var", "var_mean") and not required & {"dim", "unbiased"}:
        hint = "correction"
    schemas = [s for s in schemas_of(name) if hint and s.overload == hint] or schemas_of(name)
    for schema in schemas:
        call = _bound(schema, {**values, **_MORE.get(name, {})}, required)
        if call is not None:
            return _overload(name + end, schema), *call
    return None


def call_of_function(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call | None:
    """The operator of a function's call; None where torch has no such operator."""
    for schema in schemas_of(name):
        places = [a.name for a in schema.args if not a.keyword_only]
        positional: Sequence[Any] = args
        if len(args) > len(places) and places and all(isinstance(a, int) for a in args[-2:]):
            positional = [*args[: len(places) - 1], tuple(args[len(places) - 1 :])]
        if len(positional) > len(places):
            continue
        values = dict(zip(places, positional, strict=False))
        values |= kwargs
        call = _bound(schema, values, {k for k, v in values.items() if v is not None})
        if call is not None:
            return _overload(name, schema), *call
    return None


def _overload(name: str, schema: Schema) -> OpOverload:
    packet = getattr(namespace("aten"), name)
    overload = schema.overload or "default"
    if name[-1] == "_" and overload not in packet.overloads():
        last = overload.rpartition("_")[2]  # of Tensor_Scalar
        overload = last if last in packet.overloads() else "default"
    function: OpOverload = getattr(packet, overload)
    return function


def _bound(
    schema: Schema, values: Mapping[str, Any], required: set[str]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Positional and keyword arguments, without what is as the schema has it; None if unfit."""
    left = set(required)
    places: list[tuple[SchemaArgument, Any]] = []
    for arg in schema.args:
        names = (arg.name, *_ARGUMENTS.get(arg.name, ()))
        name = next((n for n in names if n in values), arg.name)
        left.discard(name)
        value = values.get(name)
        if name not in required and not name.startswith("cudnn"):
            tensor = arg.kind in (ArgKind.TENSOR, ArgKind.OPTIONAL_TENSOR, ArgKind.OPTIONAL_TENSORS)
            if not arg.has_default and (name not in values or (value is None and not tensor)):
                return None
            value = arg.default if arg.has_default else value
        if isinstance(value, str) and arg.type == "int":
            value = _REDUCTIONS.get(value, value)
        if not _fits(schema.name, arg, value):
            return None
        places.append((arg, value))
    if left:
        return None
    return _trimmed(places)


def _trimmed(
    places: list[tuple[SchemaArgument, Any]],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    positional = [(a, v) for a, v in places if not a.keyword_only]
    while positional and positional[-1][0].has_default:
        arg, value = positional[-1]
        if not _same(_plain(arg, value), _plain(arg, arg.default)):
            break
        positional.pop()
    named = {
        a.name: _plain(a, v) for a, v in places
        if a.keyword_only and not (a.has_default and _same(v, a.default))
    }  # fmt: skip
    return tuple(_plain(a, v) for a, v in positional), named


def _same(a: object, b: object) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return a is b
    return a is b or (type(a) is type(b) and a == b)


def _plain(arg: SchemaArgument, value: Any) -> Any:
    """A value as torch's graphs hold it: lists of numbers, as many as the schema says."""
    if arg.kind is ArgKind.INTS and value is not None:
        many = isinstance(value, list | tuple)
        return list(value) if many else [value] * (arg.size or 1)
    if arg.kind in (ArgKind.TENSORS, ArgKind.OPTIONAL_TENSORS) and value is not None:
        return list(value)
    if arg.type == "MemoryFormat" and isinstance(value, str):
        return DOOR["memory_format"](value)
    return Device(value) if arg.type == "Device" and isinstance(value, str) else value


def _fits(name: str, arg: SchemaArgument, value: Any) -> bool:
    if value is None:
        return arg.optional or (arg.has_default and arg.default is None)
    if arg.type == "ScalarType" and value is arg.default:
        return True  # which the schema has as a number
    number = isinstance(value, int | float | complex)
    many = isinstance(value, list | tuple)
    if arg.kind in (ArgKind.TENSOR, ArgKind.OPTIONAL_TENSOR, ArgKind.UNION):
        wraps = arg.kind is ArgKind.UNION or (name in _WRAPPING and arg.name != "self")
        return isinstance(value, Tensor) or (number and wraps)
    if arg.kind in (ArgKind.TENSORS, ArgKind.OPTIONAL_TENSORS):
        return many and all(v is None or isinstance(v, Tensor) for v in value)
    if arg.kind is ArgKind.SCALAR:
        return number
    if arg.kind is ArgKind.INTS:
        return isinstance(value, int) or (many and all(isinstance(v, int) for v in value))
    kinds: dict[str, Any] = {
        "bool": bool, "int": int, "float": (int, float), "str": str, "ScalarType": Dtype,
        "Device": (Device, str),
    }  # fmt: skip
    return isinstance(value, kinds.get(arg.type, object))
