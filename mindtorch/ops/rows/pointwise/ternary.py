"""Rows of pointwise functions of three operands: choice, bounds, fused multiply."""

from __future__ import annotations

from ...._compat.unsupported_dtypes import Refusal, kernel
from ...._compat.warn_once import warn
from ...._tensor.dtype import FLOAT, INTEGER, bool as bool_, uint8
from ...choice import choose
from ...complex_parts import is_real
from ...limits import converted, in_dtype
from ...rules import NUMBERS, Pointwise, broadcast, c_name, pointwise, preserved, result_type
from ...samples import FLOATS
from ...spec import SHORT_FLOATS, in_dtypes, scalar
from ...words import *


def _where_samples() -> list[Sample]:
    mask = Arg((3, 4), "bool")
    samples = [Sample((mask, Arg((3, 4), d), Arg((4,), d))) for d in (*FLOATS, "int64", "bool")]
    samples += [Sample((mask, Arg((3, 1)), 2.5)), Sample((mask, 0, Arg((4,), "float64")))]
    return [*samples, Sample((Arg((), "bool"), Arg((2,), "int32"), Arg((2,))))]


class _Where(Pointwise):
    """Pointwise, with a condition; bytes as one are deprecated."""

    def __call__(self, condition: Geometry, *args: Any) -> Geometry:
        if condition.dtype is uint8:
            warn(
                "where received a uint8 condition tensor. This behavior is deprecated and will be"
                " removed in a future version of PyTorch. Use a boolean condition instead.",
            )
        return super().__call__(condition, *args)


op(
    "where(Tensor condition, Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    summary="`self` where `condition` is true, else `other`.",
    infer=_Where(skip=1),
    cpu=lambda condition, self, other: choose(condition.astype(bool, copy=False), self, other),
    compute="raw",
    aclnn=call("aclnnSWhere"),
    refuses=converted(1, 2),
    grad={
        "self": lambda grad, condition: aten.where(condition, grad, 0),
        "other": lambda grad, condition: aten.where(condition, 0, grad),
    },
    unsupported={
        "signed half real complex": Refusal(
            "where expected condition to be a boolean tensor, but got a tensor with dtype {dtype}",
            first=True,
        )
    },
    samples=_where_samples,
    oracle=lambda torch: torch.where,
    tolerance="exact",
    out="Expected out type to be {Want} but got {Got}",
    surface="both",
)
composite(
    "where.indices(Tensor condition) -> Tensor[]",
    lambda condition: aten.nonzero(condition, as_tuple=True),
    samples=calls((Arg((3,), "bool"),), (Arg((2, 3), "int64", 0, 1),)),
    oracle=lambda torch: torch.where,
    tolerance="exact",
    out="Expected out type to be {Want} but got {Got}",
)


def _fillable(args: dict[str, Any]) -> bool:
    """What CANN's operators fill (documents of aclnnInplaceMaskedFillScalar and -Tensor)."""
    dtype = args["self"].dtype
    other = dtype is uint8 or (dtype.itemsize == 2 and dtype.category == INTEGER)
    return not other and (dtype.itemsize < 8 or dtype.category == INTEGER)


def _masked_shape(self: Geometry, mask: Geometry, value: Geometry | Number) -> Geometry:
    """The rule of masked_fill; a value of the cpu may stand beside tensors of another device."""
    if isinstance(value, Geometry) and value.ndim:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    if mask.dtype is not bool_:
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype"
            f" {c_name(mask.dtype)}"
        )
    if mask.device is not self.device:
        raise RuntimeError(
            f"expected self and mask to be on the same device, but got mask on {mask.device} and"
            f" self on {self.device}"
        )
    return self.fresh(broadcast(mask.shape, self.shape))


_masked_shape.__dict__["mixes_devices"] = True


op(
    "masked_fill(Tensor self, Tensor mask, Tensor|Scalar value) -> Tensor",
    summary="`value` where `mask` is true, else `self`.",
    infer=_masked_shape,
    cpu=lambda self, mask, value, *, out: choose(
        mask, np.asarray(value).astype(self.dtype), self
    ),
    compute="raw",
    aclnn=(
        call("aclnnInplaceMaskedFillScalar", "self", "mask", in_dtype("value"), inplace=True,
             when=lambda a: _fillable(a) and scalar("value")(a)),
        call("aclnnInplaceMaskedFillTensor", "self", "mask", "value", inplace=True,
             when=lambda a: _fillable(a) and not scalar("value")(a)),
    ),
    lower=lambda self, mask, value: aten.where(
        mask, aten.scalar_tensor(value, dtype=self.dtype, device=self.device)
        if value.__class__ in NUMBERS else aten.to(value, self.dtype), self
    ),
    refuses=converted(2, items=True),
    grad={
        "self": lambda grad, mask: aten.masked_fill(grad, mask, 0),
        "value": lambda grad, mask: aten.sum(aten.where(mask, grad, 0)),
    },
    samples=lambda: [
        *(Sample((Arg((3, 4), d), Arg((3, 4), "bool"), 2)) for d in (*FLOATS, "int64", "bool")),
        Sample((Arg((2, 3, 4)), Arg((3, 1), "bool"), -1.5)),
        Sample((Arg((3, 4)), Arg((4,), "bool"), Arg(()))),
    ],
    tolerance="exact",
    inplace=True,
    overlaps="tensor[mask] = scalar",
)  # fmt: skip


def _clamp(self: Array, min: Number | None, max: Number | None, *, out: Geometry) -> Array:
    x = self
    if min is not None:
        x = np.maximum(x, _cast(min, self))
    if max is not None:
        x = np.minimum(x, _cast(max, self))
    return x


def _cast(bound: Number, like: Array) -> Array:
    return np.asarray(bound).astype(like.dtype)


def _inside(self: Any, low: Any, high: Any) -> Any:
    mask = None
    for bound, test in ((low, aten.ge), (high, aten.le)):
        if bound is not None:
            inside = test(self, bound)
            mask = inside if mask is None else aten.logical_and(mask, inside)
    return mask


def _bound(name: str) -> Callable[..., Any]:
    """A bound as torch takes it: a negative one of uint8 wraps."""
    return lambda a: a[name] % 256 if a["out"].dtype is uint8 else a[name]


def _clamp_rule(self: Geometry, min: Number | None = None, max: Number | None = None) -> Geometry:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if complex in (min.__class__, max.__class__):
        raise NotImplementedError("clamp is not supported for complex types")
    return preserved(self, result_type([v for v in (self, min, max) if v is not None]))


_NO_COMPLEX = {"complex": Refusal("clamp is not supported for complex types", NotImplementedError)}

op(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    summary="Elements limited to [`min`, `max`].",
    infer=_clamp_rule,
    cpu=lambda self, min, max, *, out: (
        _clamp(self.astype(_compute(out), copy=False), min, max, out=out)
    ),
    aclnn=(
        call("aclnnClampMin", "self", _bound("min"), "out", when=lambda a: a["max"] is None),
        call("aclnnClampMax", "self", _bound("max"), "out", when=lambda a: a["min"] is None),
        call("aclnnClamp", "self", _bound("min"), _bound("max"), "out"),
    ),
    refuses=converted(1, 2),
    grad={
        "self": lambda grad, self, min, max: aten.where(_inside(self, min, max), grad, 0)
    },
    unsupported=_NO_COMPLEX,
    samples=lambda: [
        *(Sample((Arg((3, 4), d), -1, 1)) for d in (*FLOATS, "int64")),
        Sample((Arg((3, 4)), -0.5)), Sample((Arg((3, 4)),), {"max": 0.5}),
    ],
    tolerance="exact", rule="extremum", out="found",
    surface="both",
    inplace=True,
)  # fmt: skip


def _compute(out: Geometry) -> Geometry:
    from ...rules import opmath

    return opmath(out.dtype).np


def _bound_row(
    name: str,
    bound: str,
    cpu: object,
    aclnn: str,
    inside: Callable[..., Any],
    bent: Callable[..., Any],
    kernel: str,
) -> None:
    """A bound from one side: a tensor, or a number."""
    op(
        f"{name}.Tensor(Tensor self, Tensor {bound}) -> Tensor",
        infer=pointwise(),
        cpu=cpu,
        aclnn=call(aclnn, "self", bound, "out"),
        grad={"self": inside, bound: bent},
        unsupported={"complex": f"{kernel}_cpu"},
        samples=lambda: [Sample((Arg((3, 4), d), Arg((4,), d))) for d in ("float32", "int64")],
        oracle=lambda torch: getattr(torch, name),
        tolerance="exact",
        rule="extremum",
        out="found",
        inplace=True,
    )
    composite(
        f"{name}(Tensor self, Scalar {bound}) -> Tensor",
        lambda self, value: aten.clamp(self, **{bound: value}),
        unsupported=_NO_COMPLEX,
        samples=calls((Arg((3, 4)), 0.5), (Arg((3,), "int64"), 1)),
        tolerance="exact",
        rule="extremum",
        out="found",
        inplace=True,
    )


_bound_row(
    "clamp_min", "min", np.maximum, "aclnnClampMinTensor",
    lambda grad, self, min: aten.where(self >= min, grad, 0),
    lambda grad, self, min: aten.where(self >= min, 0, grad),
    "maximum",
)  # fmt: skip
_bound_row(
    "clamp_max", "max", np.minimum, "aclnnClampMaxTensor",
    lambda grad, self, max: aten.where(self <= max, grad, 0),
    lambda grad, self, max: aten.where(self <= max, 0, grad),
    "minimum",
)  # fmt: skip


def _clamped(self: Tensor, min: Tensor | None = None, max: Tensor | Number | None = None) -> Tensor:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    bounds = [("clamp_min", min), ("clamp_max", max)]
    common = result_type(
        v._geom if isinstance(v, Tensor) else v for v in (self, min, max) if v is not None
    )
    for name, bound in bounds:
        if bound is not None:
            bound = aten.to(bound, common) if isinstance(bound, Tensor) else bound
            self = getattr(aten, name)(aten.to(self, common), bound)
    return self


composite(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    _clamped,
    unsupported=_NO_COMPLEX,
    samples=calls(
        (Arg((3, 4)), Arg((4,), high=-1)),
        (Arg((3, 4)), None, Arg((3, 4), low=1)),
        (Arg((3, 4)), Arg((4,), high=-1), Arg((4,), low=1)),
    ),
    oracle=lambda torch: torch.clamp,
    tolerance="exact",
    rule="extremum",
    out="found",
    inplace=True,
)


def _scaled(value: Number, like: Array) -> Array:
    return np.asarray(value).astype(like.dtype)


class _Division(Pointwise):
    """Refuses integers, as torch does since it changed what they meant."""

    def __call__(self, *args: Any) -> Geometry:
        if all(g.dtype.category < FLOAT for g in self.operands(args)[1:]):
            raise RuntimeError(
                "Integer division with addcdiv is no longer supported, and in a future  release"
                " addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv"
                " behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2))"
                ".to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for"
                " float inputs. The future addcdiv behavior is just the latter implementation:"
                " (input + value * tensor1 / tensor2), for all dtypes."
            )
        return super().__call__(*args)


def _narrow(refuses: Callable[..., Any]) -> Callable[..., Any]:
    """A look at numbers of results that hold few, whole numbers and halves, and at complex ones."""

    def look(args: tuple[Any, ...], outs: tuple[Any, ...]) -> Any:
        dtype = getattr(outs[0], "dtype", None) if outs else None
        wide = dtype is None or (dtype.category >= FLOAT and dtype.itemsize > 2)
        return None if wide and args[3].__class__ is not complex else refuses(args, outs)

    return look


def _fused_samples() -> list[Sample]:
    samples = [
        Sample((Arg((3, 4), d), Arg((3, 4), d), Arg((4,), d, 0.5, 2)), {"value": 0.5})
        for d in ("float32", "float64", "float16")
    ]
    return [*samples, Sample((Arg((3, 1)), Arg((4,)), Arg((3, 4), "float32", 0.5, 2)))]


op(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    summary="`self + value * tensor1 * tensor2`.",
    infer=pointwise(),
    cpu=lambda self, a, b, value: self + _scaled(value, self) * a * b,
    aclnn=call("aclnnAddcmul", when=is_real),
    lower=lambda self, a, b, value=1: self + a * b * value,
    grad={
        "self": lambda grad: grad,
        "tensor1": lambda grad, tensor2, value: grad * aten.conj_of(tensor2 * value),
        "tensor2": lambda grad, tensor1, value: grad * aten.conj_of(tensor1 * value),
    },
    unsupported={"bool": "addcmul_cpu_out"},
    refuses=_narrow(converted(3)),
    samples=_fused_samples,
    inplace=True,
    rule="fused",
)
op(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    summary="`self + value * tensor1 / tensor2`.",
    infer=_Division(),
    cpu=lambda self, a, b, value: self + _scaled(value, self) * a / b,
    aclnn=call("aclnnAddcdiv", when=is_real),
    lower=lambda self, a, b, value=1: self + a / b * value,
    grad={
        "self": lambda grad: grad,
        "tensor1": lambda grad, tensor2, value: (
            grad * aten.conj_of(aten.reciprocal(tensor2) * value)
        ),
        "tensor2": lambda grad, tensor1, tensor2, value: (
            grad * aten.conj_of(tensor1 * -value / (tensor2 * tensor2))
        ),
    },
    refuses=_narrow(converted(3)),
    samples=_fused_samples,
    inplace=True,
    rule="fused",
)


def _conjugate(weight: Any) -> Any:
    return aten.conj_of(weight) if isinstance(weight, Tensor) else weight.conjugate()


class _Between(Pointwise):
    """Pointwise of one dtype; a 0-d weight may be of another."""

    def __call__(self, *args: Any) -> Geometry:
        for name, value in zip(("end", "weight"), args[1:], strict=True):
            other = isinstance(value, Geometry) and (value.ndim or name == "end")
            if other and value.dtype is not args[0].dtype:
                raise RuntimeError(
                    f"expected dtype {c_name(args[0].dtype)} for `{name}` but got dtype"
                    f" {c_name(value.dtype)}"
                )
        return super().__call__(*args)


def _by_a_tensor(args: Sequence[Any]) -> bool:
    """Whether a call of lerp gets as far as the kernel that takes a number."""
    return isinstance(args[2], Geometry) or args[0].dtype is not args[1].dtype


def _by_a_number(args: Sequence[Any]) -> bool:
    return not isinstance(args[2], Geometry) or not args[2].ndim or len({a.dtype for a in args}) > 1


_halves_and_float = in_dtypes("out", *SHORT_FLOATS)


op(
    "lerp(Tensor self, Tensor end, Tensor|Scalar weight) -> Tensor",
    summary="`self + weight * (end - self)`.",
    infer=_Between(),
    cpu=lambda self, end, weight: choose(
        np.abs(weight) < 0.5, self + weight * (end - self), end - (end - self) * (1 - weight)
    ),
    aclnn=(
        call("aclnnLerps", when=scalar("weight").and_where(_halves_and_float)),
        call("aclnnLerp", when=_halves_and_float),
    ),
    lower=lambda self, end, weight: self + (end - self) * weight,
    grad={
        "self": lambda grad, weight: grad * _conjugate(1 - weight),
        "end": lambda grad, weight: grad * _conjugate(weight),
        "weight": lambda grad, self, end: grad * aten.conj_of(end - self),
    },
    unsupported={
        "bool whole": kernel("lerp_kernel_scalar", first=True, unless=_by_a_tensor),
        "whole bool": kernel("lerp_kernel_tensor", first=True, unless=_by_a_number),
    },
    samples=lambda: [
        *(Sample((Arg((3, 4), d), Arg((4,), d), 0.3)) for d in ("float32", "float64")),
        Sample((Arg((3, 4)), Arg((3, 4)), Arg((4,), "float32", 0, 1))),
    ],
    inplace=True,
    rule="fused",
)
