"""Owns quantised tensors: integers beside a scale and a zero point, of all or of each channel.

An element is `(integer - zero_point) * scale`. Functions that move elements act on the integers;
those that compute are refused as torch's cpu refuses them, but for a few that keep the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import mindtorch

from ._compat.argument_errors import parsed
from ._compat.class_names import CClass, name_class
from ._compat.layout_refusals import layout_refusal
from ._compat.refusals import without_kernel
from ._compat.warn_once import warn_once
from ._dispatch.overrides import EVERY
from ._functional.printing import _add_suffixes, values_text
from ._functional.queries import NamedConstant
from ._tensor.dtype import dtype as Dtype
from ._tensor.geometry import Size, geometry
from ._tensor.tensor import Tensor
from .ops.namespaces import namespace
from .ops.spec import OPS


class qscheme(NamedConstant, metaclass=CClass):  # noqa: N801 - torch's name
    """How scales are laid out; known by its name."""


per_tensor_affine, per_channel_affine = qscheme("per_tensor_affine"), qscheme("per_channel_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")

# Quantised dtype → that of its integers, the least and the greatest, the name in legacy types.
_INTEGERS = {
    mindtorch.qint8: (mindtorch.int8, -128, 127, "QInt8"),
    mindtorch.quint8: (mindtorch.uint8, 0, 255, "QUInt8"),
    mindtorch.qint32: (mindtorch.int32, -(2**31), 2**31 - 1, "QInt32"),
}
_MOVES = frozenset((
    "chunk", "clone", "contiguous", "cpu", "detach", "expand", "flatten", "flip", "index_select",
    "movedim", "narrow", "permute", "repeat", "reshape", "select", "slice", "split", "squeeze", "t",
    "transpose", "unbind", "unflatten", "unsqueeze", "view",
))  # fmt: skip
# Rows on the integers whose order is that of the values, and rows that torch rounds again.
_ORDERED = frozenset(("max", "min", "amax", "amin", "sort", "topk", "max_pool2d"))
_ROUNDED = frozenset(("relu", "clamp", "mean", "adaptive_avg_pool2d", "avg_pool2d", "hardtanh",
                      "leaky_relu", "sigmoid", "tanh", "hardswish", "elu", "threshold",
                      "interpolate", "avg_pool3d", "adaptive_avg_pool3d", "gelu", "max_pool1d",
                      "pad", "std", "masked_fill"))  # fmt: skip
# What has bounds has a scale of its own.
_LIMITED = {
    "hardsigmoid": {mindtorch.quint8: (1 / 256, 0), mindtorch.qint8: (1 / 256, -128)},
    "sigmoid": {mindtorch.quint8: (1 / 256, 0), mindtorch.qint8: (1 / 256, -128)},
    "tanh": {mindtorch.quint8: (2 / 256, 128), mindtorch.qint8: (2 / 256, 0)},
}
_NO_CAST = "Creation of quantized tensor requires quantized dtype like torch.quint8"
_COMPARED = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


class QuantizedTensor(Tensor):
    """A tensor of integers with scales; made by torch.quantize_per_tensor and its kin."""

    _ints: Tensor
    _scales: Any  # a float, or a tensor [C]: float64, or float32 where zero points are
    _zeros: Any  # an int, or an int64 or float32 tensor [C]
    _axis: int | None
    _kind: Dtype
    _composites = EVERY
    is_quantized = True
    requires_grad = False
    __getattribute__ = object.__getattribute__
    __hash__ = Tensor.__hash__

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        return _call(getattr(func, "__name__", str(func)), func, args, kwargs or {})

    @staticmethod
    def _row_call(op: Any, form: str, raw: Sequence[Any]) -> Any:
        return _call(op.base_name, op.entry("aten"), tuple(raw), {})

    @property
    def dtype(self) -> Dtype:
        return self._kind

    @property
    def shape(self) -> Size:
        return self._ints.shape

    def size(self, dim: int | None = None) -> Any:
        return self._ints.size(dim) if dim is not None else self._ints.shape

    def stride(self, dim: int | None = None) -> Any:
        return self._ints.stride(dim) if dim is not None else self._ints.stride()

    def is_contiguous(self, *more: Any, **options: Any) -> bool:
        return self._ints.is_contiguous(*more, **options)

    def int_repr(self) -> Tensor:
        """The integers."""
        return self._ints.clone()

    def dequantize(self) -> Tensor:
        """The elements as float32."""
        if self._axis is None:
            return (self._ints.float() - float(self._zeros)) * float(self._scales)
        sizes = [1] * self.dim()
        sizes[self._axis] = -1
        scales, zeros = (v.float().reshape(sizes) for v in (self._scales, self._zeros))
        return (self._ints.float() - zeros) * scales

    def qscheme(self) -> qscheme:
        """How the scales are laid out."""
        if self._axis is None:
            return per_tensor_affine
        floats = self._zeros.is_floating_point()
        return per_channel_affine_float_qparams if floats else per_channel_affine

    def q_scale(self) -> object:
        """The scale of all."""
        self._need("qscheme() == kPerTensorAffine", self._axis is None)
        return self._scales

    def q_zero_point(self) -> object:
        """The integer of 0."""
        self._need("qscheme() == kPerTensorAffine", self._axis is None)
        return self._zeros

    def _need(self, what: str, there: bool) -> None:
        if not there:
            raise RuntimeError(
                f"Expected quantizer->{what} to be true, but got false.  (Could this error message"
                " be improved?  If so, please report an enhancement request to PyTorch.)"
            )

    def _per_channel(self, value: Any) -> Any:
        both = "qscheme() == kPerChannelAffine || quantizer->qscheme() =="
        self._need(f"{both} kPerChannelAffineFloatQParams", self._axis is not None)
        return value

    def q_per_channel_scales(self) -> Tensor:
        """The scale of each channel [C], float64."""
        return self._per_channel(self._scales)

    def q_per_channel_zero_points(self) -> Tensor:
        """The integer of 0 in each channel [C]."""
        return self._per_channel(self._zeros)

    def q_per_channel_axis(self) -> int:
        """The dim of channels."""
        return self._per_channel(self._axis)

    def element_size(self) -> int:
        return self._ints.element_size()

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """On another device; torch makes no other dtype of it than float."""
        dtypes = [v for v in (*args, *kwargs.values()) if isinstance(v, Dtype)]
        if not dtypes or dtypes[0] is self._kind:
            rest = [v for v in args if not isinstance(v, Dtype)]
            return self._with(self._ints.to(*rest, **kwargs))
        raise RuntimeError(_NO_CAST)

    def float(self, *more: object, memory_format: object = None) -> Tensor:
        return self.to(mindtorch.float32)

    def type(self, *args: object) -> str:
        return f"torch.quantized.{_INTEGERS[self._kind][3]}Tensor"

    def numpy(self, *more: object, **options: object) -> object:
        raise TypeError(f"Got unsupported ScalarType {_INTEGERS[self._kind][3]}")

    def tolist(self, *more: object) -> object:
        raise RuntimeError("load_scalar: invalid type")

    def item(self) -> object:
        return self.dequantize().item()

    def copy_(self, src: Tensor, non_blocking: bool = False) -> QuantizedTensor:
        """Quantise other values by this tensor's scale, in place."""
        values = src.dequantize() if isinstance(src, QuantizedTensor) else src
        self._ints.copy_(_rounded(values, self._scales, self._zeros, self._kind))
        return self

    def fill_(self, value: Any) -> QuantizedTensor:
        """The nearest integer to a number everywhere, in place."""
        return self.copy_(mindtorch.full(self.shape, float_of(value)))

    def detach(self) -> QuantizedTensor:
        return self._with(self._ints)

    def __getitem__(self, key: Any) -> QuantizedTensor:
        if isinstance(key, tuple) and key and isinstance(key[0], int) and self._axis is not None:
            first = self[key[0]]
            return first[key[1:]] if key[1:] else first
        return self._moved(self._ints[key], key)

    def __iter__(self) -> Iterator[QuantizedTensor]:
        return iter([self[i] for i in range(self.shape[0])])

    def _with(self, ints: Tensor) -> QuantizedTensor:
        return make(ints, self._scales, self._zeros, self._axis, self._kind)

    def _moved(self, ints: Tensor, key: Any) -> QuantizedTensor:
        if self._axis is None or ints.ndim == self.ndim:
            return self._with(ints)
        if isinstance(key, int) and self._axis == 0:
            scale, zero = float_of(self._scales.float()[key]), int(self._zeros[key])
            return make(ints, scale, zero, None, self._kind)
        return make(ints, self._scales, self._zeros, self._axis - 1, self._kind)

    def __deepcopy__(self, memo: dict[int, object]) -> QuantizedTensor:
        return self._with(self._ints.clone())

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return make, (self._ints, self._scales, self._zeros, self._axis, self._kind)

    def __repr__(self, *, tensor_contents: object = None) -> str:
        suffixes = [f"size={tuple(self.shape)}", f"dtype={self._kind}",
                    f"quantization_scheme={self.qscheme()}"]  # fmt: skip
        if self._axis is None:
            suffixes += [f"scale={self._scales}", f"zero_point={self._zeros}"]
        else:
            suffixes += [f"scale={self._scales}", f"zero_point={self._zeros}"]
            suffixes += [f"axis={self._axis}"]
        if self.device.type != "cpu":
            suffixes.insert(1, f"device='{self.device}'")
        return _add_suffixes("tensor(" + values_text(self.dequantize(), 7), suffixes, 7)


name_class(QuantizedTensor, "Tensor", Tensor.__module__)  # torch has no class of its own for them


def float_of(value: Any) -> Any:
    """A Python number of a tensor or number."""
    return value.item() if isinstance(value, Tensor) else value


def make(ints: Tensor, scales: Any, zeros: Any, axis: int | None, kind: Dtype) -> QuantizedTensor:
    """A quantised tensor of these parts, unchecked."""
    warn_once(
        "torch.quantize_per_tensor, torch.quantize_per_channel and other quantized tensor creation"
        " functions that produce tensors with dtype torch.quint8, torch.qint8, and torch.qint32"
        " are deprecated and will be removed in a future PyTorch release. Please see"
        " https://github.com/pytorch/pytorch/issues/184982 for more information."
    )
    tensor: QuantizedTensor = object.__new__(QuantizedTensor)
    g = ints._geom
    tensor._geom = geometry(g.shape, g.strides, g.offset, g.dtype, g.device)
    tensor._storage = ints._storage
    tensor._fn, tensor._nr, tensor._base = None, 0, None
    tensor._ints, tensor._scales, tensor._zeros = ints, scales, zeros
    tensor._axis, tensor._kind = axis, kind
    return tensor


def _rounded(input: Tensor, scales: Any, zeros: Any, kind: Dtype) -> Tensor:
    """Values as the nearest integers, those between two to the even one."""
    if kind not in _INTEGERS:
        raise RuntimeError(f"ScalarType {_name(kind)} is not supported in new_qtensor.")
    integers, least, most, _ = _INTEGERS[kind]
    if isinstance(scales, Tensor):
        inverse = 1.0 / scales.to(mindtorch.float32)
    else:
        inverse = float_of(1.0 / mindtorch.tensor(scales, dtype=mindtorch.float32))
    steps = mindtorch.round(input * inverse + zeros)  # as torch's kernels by fbgemm
    return steps.clamp(least, most).to(integers)


def _name(kind: Dtype) -> str:
    return str(kind.legacy).removesuffix("Tensor") if hasattr(kind, "legacy") else str(kind)


def _refuse_integers(input: Tensor, name: str) -> None:
    if input.is_quantized:
        raise NotImplementedError(without_kernel(name, "QuantizedCPU"))
    if input.dtype is not mindtorch.float32:
        kind = input.dtype.legacy.removesuffix("Tensor")
        raise RuntimeError(f"Quantize only works on Float Tensor, got {kind}")


@parsed()
def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: Dtype) -> Any:
    """`input` as integers of a quantised dtype with one scale; a list with a scale for each."""
    if isinstance(input, list | tuple):
        parts = zip(input, scale, zero_point, strict=True)
        return tuple(quantize_per_tensor(x, s, z, dtype) for x, s, z in parts)
    _refuse_integers(input, "quantize_per_tensor")
    scale, zero_point = float_of(scale), int(float_of(zero_point))
    ints = _rounded(input, scale, zero_point, dtype)
    _, least, most, _ = _INTEGERS[dtype]
    if not least <= zero_point <= most:
        side = "above upper" if zero_point > most else "below lower"
        raise RuntimeError(
            f"quantize_tensor_per_tensor_affine zero_point {zero_point} is {side} bound."
        )
    return make(ints, scale, zero_point, None, dtype)


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: Dtype
) -> QuantizedTensor:
    """`input` as integers with a scale and a zero point for each place along `axis`."""
    _refuse_integers(input, "quantize_per_channel")
    if scales.dim() != 1:
        raise RuntimeError("scale tensor must have dimension 1")
    if zero_points.dim() != 1:
        raise RuntimeError("zero_points tensor must have dimension 1")
    if scales.numel() != zero_points.numel():
        raise RuntimeError("number of elements in scales and zero_points must match")
    if not 0 <= axis < input.dim():
        raise RuntimeError(
            "Channel axis out of range in per channel affine quantization. Got:"
            f" {axis}Expected: [0, {input.dim()})"
        )
    if scales.numel() != input.shape[axis]:
        raise RuntimeError(
            f"length of scales must equal to channel, expected {input.shape[axis]} got,"
            f" {scales.numel()}"
        )
    sizes = [1] * input.dim()
    sizes[axis] = -1
    ints = _rounded(input, scales.reshape(sizes), zero_points.reshape(sizes), dtype)
    return _of_channels(ints, scales, zero_points, axis, dtype)


def _of_channels(
    ints: Tensor, scales: Tensor, zeros: Tensor, axis: int, kind: Dtype
) -> QuantizedTensor:
    """Zero points that are floats stay so, and keep scales in float32."""
    if zeros.is_floating_point():
        return make(ints, scales.float(), zeros.float(), axis, kind)
    return make(ints, scales.double(), zeros.long(), axis, kind)


def quantize_per_tensor_dynamic(input: Tensor, dtype: Dtype, reduce_range: bool) -> QuantizedTensor:
    """By the least and the greatest value; `reduce_range` leaves one bit out."""
    _, least, most, _ = _INTEGERS[dtype]
    if reduce_range:
        least, most = least // 2, most // 2
    scale, zero = choose_qparams(input.min().item(), input.max().item(), least, most)
    return quantize_per_tensor(input, scale, zero, dtype)


_SMALL = float(np.float32(6.1e-5))  # the least scale, below which torch widens a range


def choose_qparams(
    low: float, high: float, least: int, most: int, symmetric: bool = False
) -> tuple[float, int]:
    """Scale and zero point by which `least` to `most` hold the range from `low` to `high` and 0."""
    both = low < 0 < high and symmetric
    if both:
        half = (most - least) // 2
        step = max(abs(low / (half + 1)), abs(high / half))
        low, high = float(np.float32(-step * (half + 1))), float(np.float32(step * half))
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (most - least)
    if np.float32(scale) == 0 or 1 / scale > np.finfo(np.float32).max:
        scale = 0.1
    if scale < _SMALL:
        if low == 0.0:
            high = _SMALL * (most - least)
        elif high == 0.0:
            low = -_SMALL * (most - least)
        else:
            low, high = low * (_SMALL / scale), high * (_SMALL / scale)
        scale = _SMALL
    by_low = abs(least) - abs(low / scale) < abs(most) - abs(high / scale)
    zero = least - low / scale if by_low else most - high / scale
    zero = (least + most) / 2 if both else zero
    return scale, round(max(least, min(most, zero)))


def _empty_affine_quantized(
    size: Sequence[int], *, scale: float = 1.0, zero_point: int = 0, dtype: Dtype, **_: object
) -> QuantizedTensor:
    """Integers of any values with a scale."""
    integers = mindtorch.empty(tuple(size), dtype=_INTEGERS[dtype][0])
    return make(integers, scale, zero_point, None, dtype)


def _empty_per_channel_affine_quantized(
    size: Sequence[int], *, scales: Tensor, zero_points: Tensor, axis: int, dtype: Dtype,
    **_: object,
) -> QuantizedTensor:  # fmt: skip
    """Integers of any values with a scale for each place along `axis`."""
    integers = mindtorch.empty(tuple(size), dtype=_INTEGERS[dtype][0])
    return _of_channels(integers, scales, zero_points, axis, dtype)


def _kind_of(integers: Tensor) -> Dtype:
    """The quantised dtype of integers; RuntimeError where there is none."""
    for kind, (whole, *_) in _INTEGERS.items():
        if whole is integers.dtype:
            return kind
    raise RuntimeError(_NO_CAST)


def _make_per_tensor_quantized_tensor(
    input: Tensor, scale: float, zero_point: int
) -> QuantizedTensor:
    """Integers with a scale."""
    return make(input, scale, zero_point, None, _kind_of(input))


def _make_per_channel_quantized_tensor(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int
) -> QuantizedTensor:
    """Integers with a scale for each place along `axis`."""
    return _of_channels(input, scale, zero_point, axis, _kind_of(input))


def _of_method(name: str) -> Callable[..., Any]:
    """A function of what quantised tensors answer and other tensors refuse."""

    def function(input: Tensor) -> Any:
        return getattr(input, name)()

    function.__doc__ = getattr(QuantizedTensor, name).__doc__
    return parsed(name)(function)


@parsed("dequantize")
def dequantize(input: Any) -> Any:
    """The elements as float32, of a tensor or of each of a list, which gives a tuple."""
    many = isinstance(input, list | tuple)
    return tuple(v.dequantize() for v in input) if many else input.dequantize()


int_repr = _of_method("int_repr")
q_scale, q_zero_point = _of_method("q_scale"), _of_method("q_zero_point")
q_per_channel_scales = _of_method("q_per_channel_scales")
q_per_channel_zero_points = _of_method("q_per_channel_zero_points")
q_per_channel_axis = _of_method("q_per_channel_axis")


def _call(name: str, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    flat = [a for v in args for a in (v if isinstance(v, tuple | list) else (v,))]
    first = next(a for a in flat if isinstance(a, QuantizedTensor))
    if name in _COMPARED or name == "equal":
        return run(*(_each(args, QuantizedTensor.dequantize)), **kwargs)
    if name == "dropout" and (args[1:2] == (0,) or False in (*args[2:3], kwargs.get("training"))):
        return first
    if name in ("cat", "stack"):
        return _as(first, run(*_each(args, QuantizedTensor.dequantize), **kwargs))
    if name in ("empty_like", "ones_like"):
        like = first._with(mindtorch.empty_like(first._ints))
        return like.fill_(1) if name == "ones_like" else like
    if name in _LIMITED and first._axis is None and first._kind in _LIMITED[name]:
        scale, zero = _LIMITED[name][first._kind]
        ints = _rounded(run(first.dequantize()), scale, zero, first._kind)
        return make(ints, scale, zero, None, first._kind)
    if name in _ROUNDED and first._axis is None:
        result = _as(first, run(*_each(args, QuantizedTensor.dequantize), **kwargs))
        if name == "gelu":
            result._scales = float(np.float32(result._scales))
        return result
    if name not in _MOVES | _ORDERED or (name in _ORDERED and first._axis is not None):
        raise _refusal(name, args)
    return _again(first, run(*_each(args, lambda q: q._ints), **kwargs))


# Functions of one tensor whose kernel is not that of their `out=` form.
_OWN_KERNEL = frozenset(("gelu", "isnan", "log_softmax", "prod", "softmax", "var"))


def _refusal(name: str, args: Sequence[Any]) -> Exception:
    """What torch says of a function: it looks for the kernel of one of its overloads."""
    if error := layout_refusal("Quantized", "CPU", name, args):
        return error
    one, other, bias = (*args, None, None)[:3]
    if name == "_to_copy":
        return RuntimeError(_NO_CAST)
    if name == "allclose":
        return RuntimeError("isclose is not supported for quantized inputs.")
    if name == "linear" and isinstance(bias, Tensor) and one.dtype is not other.dtype:
        words = " and ".join(v.dtype.legacy.removesuffix("Tensor") for v in (one, other))
        return RuntimeError(f"mat1 and mat2 must have the same dtype, but got {words}")
    if name.startswith("conv") and isinstance(bias, Tensor) and isinstance(one, QuantizedTensor):
        kind = str(one.dtype).rpartition(".")[2]
        return RuntimeError(f"Input type (c10::{kind}) and bias type (float) should be the same")
    name = {
        "linear": "mm.out",
        "dropout": "bernoulli_.float",
        "batch_norm": "native_batch_norm",
    }.get(name, name)
    overloads: Sequence[str] = ()
    if name in OPS:
        overloads = getattr(namespace("aten"), name).overloads()
    others = [v for v in args[:2] if not isinstance(v, QuantizedTensor)]
    if len(args) > 1 and {"Tensor", "Tensor_Tensor"} & {*overloads}:
        if others and isinstance(others[0], Tensor):
            kinds = [v.dtype for v in args[:2]]
            named = " ".join(k.legacy.removesuffix("Tensor") for k in kinds)
            return RuntimeError(
                "promoteTypes with quantized numbers is not handled yet; figure out what the"
                f" correct rules should be, offending types: {named}"
            )
        if others and "Tensor" in overloads:
            return RuntimeError(
                "empty_strided not supported on quantized tensors yet see"
                " https://github.com/pytorch/pytorch/issues/74540"
            )
        forms: tuple[str, ...] = ("out", "Tensor_out", "Tensor_Tensor_out")
    else:
        several = any(isinstance(v, Tensor | list | tuple) for v in args[1:])
        forms = () if name in _OWN_KERNEL or several else ("IntList_out", "all_out", "out")
    form = next((f".{f}" for f in forms if f in overloads), "")
    return NotImplementedError(without_kernel(name + form, "QuantizedCPU"))


def _as(first: QuantizedTensor, values: Tensor) -> QuantizedTensor:
    return first._with(_rounded(values, first._scales, first._zeros, first._kind))


def _each(args: Sequence[Any], change: Callable[[QuantizedTensor], Tensor]) -> list[Any]:
    return [
        change(a) if isinstance(a, QuantizedTensor)
        else type(a)(_each(a, change)) if isinstance(a, list | tuple) and not hasattr(a, "numel")
        else a for a in args
    ]  # fmt: skip


def _again(first: QuantizedTensor, result: Any) -> Any:
    if isinstance(result, Tensor):
        return first._with(result) if result.dtype is first._ints.dtype else result
    parts = [_again(first, r) for r in result]
    return type(result)(parts)
