"""Owns what torch's Python makes of operators for core programs, and of others on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import mindtorch

from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from .composite_rules import full_of, reduced
from .decompositions import ATEN, CORE, OTHER, Rule, decomposes, put

Sizes = Sequence[int]
core: Callable[[str], Callable[[Rule], Rule]] = lambda names: decomposes(names, CORE)  # noqa: E731
other: Callable[[str], Callable[[Rule], Rule]] = lambda names: decomposes(names, OTHER)  # noqa: E731


def _factory(value: int) -> Rule:
    def full(size: Sizes, *, dtype: Dtype | None = None, **options: object) -> object:
        dtype = dtype or mindtorch.get_default_dtype()
        options.pop("layout", None)
        return put(
            ATEN.full.default, list(size), value, dtype=dtype, layout=mindtorch.strided, **options
        )

    return full


CORE.update(ones=_factory(1), zeros=_factory(0))


def _scalar(value: object, like: Tensor) -> Any:
    return put(
        ATEN.scalar_tensor.default, value, dtype=like.dtype, layout=mindtorch.strided,
        device=like.device,
    )  # fmt: skip


@core("silu")
def _silu(x: Tensor) -> Tensor:
    return x * mindtorch.sigmoid(x)


@other("gelu")
def _gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    half = x * 0.5
    if approximate == "none":
        return half * (mindtorch.erf(x * sqrt(0.5)) + 1)
    cube = x * x * x
    inner = (x + cube * 0.044715) * (sqrt(2.0) * 1.12837916709551257390 * 0.5)
    return half * (mindtorch.tanh(inner) + 1)


def _relu6(x: Tensor) -> Tensor:
    low = mindtorch.clamp(x, 0)
    return mindtorch.clamp(low, None, 6)


@core("hardswish")
def _hardswish(x: Tensor) -> Tensor:
    return x * _relu6(x + 3) / 6


@core("hardsigmoid")
def _hardsigmoid(x: Tensor) -> Tensor:
    return _relu6(x + 3) / 6


@core("softplus")
def _softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    if isinstance(beta, int) and beta == 1:
        smooth = mindtorch.log1p(mindtorch.exp(x))
        return mindtorch.where(x > threshold, x, smooth)
    scaled = x * beta
    smooth = mindtorch.log1p(mindtorch.exp(scaled)) / beta
    return mindtorch.where(scaled > threshold, x, smooth)


@core("mish")
def _mish(x: Tensor) -> Tensor:
    return x * mindtorch.tanh(_softplus(x))


@core("glu")
def _glu(x: Tensor, dim: int = -1) -> Tensor:
    at, half = dim % x.dim(), x.shape[dim] // 2
    first = ATEN.slice.Tensor(x, at, 0, half)
    second = ATEN.slice.Tensor(x, at, half, half * 2)
    return first * mindtorch.sigmoid(second)


@core("addcmul")
def _addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    return x + (a * value) * b


@core("addcdiv")
def _addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    return x + (a * value) / b


@other("addmm")
def _addmm(x: Tensor, a: Tensor, b: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    product = ATEN.mm.default(a, b) * alpha
    return product + x * beta


@other("addmv")
def _addmv(x: Tensor, a: Tensor, b: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    product = ATEN.mv.default(a, b) * alpha
    return product + x * beta


@core("std.correction")
def _std(x: Tensor, dim: Sizes | None = None, **options: Any) -> Tensor:
    correction = options.pop("correction", None)
    number = 1.0 if correction is None else float(correction)
    places = () if dim is None else (dim,)
    return mindtorch.sqrt(put(ATEN.var.correction, x, *places, correction=number, **options))


def _spread(name: str) -> Rule:
    def spread(
        x: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False
    ) -> object:
        if dim is None and unbiased is None:
            return put(getattr(ATEN, name).correction, x)
        more = {"keepdim": True} if keepdim else {}
        correction = int(unbiased is not False)
        return put(getattr(ATEN, name).correction, x, dim, correction=correction, **more)

    return spread


for _name in ("std", "std_mean", "var", "var_mean"):
    CORE[f"{_name}.default"] = CORE[f"{_name}.dim"] = _spread(_name)


@core("sum.default")
def _sum(x: Tensor, *, dtype: Dtype | None = None) -> Tensor:
    options = {} if dtype is None else {"dtype": dtype}
    return put(ATEN.sum.dim_IntList, x, [], **options)


@core("mse_loss")
def _mse_loss(x: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    return reduced((x - target) ** 2, reduction)


@core("smooth_l1_loss")
def _smooth_l1(x: Tensor, target: Tensor, reduction: int = 1, beta: float = 1.0) -> Tensor:
    apart = (x - target).abs()
    is_near = apart < beta
    near = (apart**2) * 0.5 / beta
    return reduced(mindtorch.where(is_near, near, apart - 0.5 * beta), reduction)


@core("huber_loss")
def _huber(x: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    apart = (x - target).abs()
    is_near = apart < delta
    near, far = apart * 0.5 * apart, (apart - 0.5 * delta) * delta
    return reduced(mindtorch.where(is_near, near, far), reduction)


@core("binary_cross_entropy_with_logits")
def _with_logits(
    x: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:  # fmt: skip
    if pos_weight is not None:
        return NotImplemented
    rest = (1 - target) * x
    zero = full_of((), 0, x)
    smooth = mindtorch.minimum(zero, x) - mindtorch.log1p(mindtorch.exp(-x.abs()))
    loss = rest - smooth
    return reduced(loss if weight is None else loss * weight, reduction)


@core("nll_loss_forward")
def _nll_loss(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignored: int
) -> object:
    if weight is not None or x.dim() > 2:
        return NotImplemented
    at = x.dim() - 1
    places = mindtorch.where(target != ignored, target, _scalar(0, target))
    picked = put(ATEN.gather.default, x, at, mindtorch.unsqueeze(places, at))
    loss = -put(ATEN.squeeze.dims, picked, [at])
    loss = mindtorch.where(target != ignored, loss, _scalar(0, loss))
    if reduction == 0:
        return loss, full_of((), 0.0, x)
    count = put(ATEN.sum.dim_IntList, target != ignored, [])
    count = put(ATEN._to_copy.default, count, dtype=x.dtype, device=x.device)
    total = put(ATEN.sum.dim_IntList, loss, [])
    return total if reduction == 2 else total / count, count


@core("masked_fill.Scalar")
def _masked_fill(x: Tensor, mask: Tensor, value: float) -> Tensor:
    return mindtorch.where(mask, _scalar(value, x), x)


@core("where.ScalarOther where.ScalarSelf")
def _where(condition: Tensor, x: Any, other: Any) -> Tensor:
    like = x if isinstance(x, Tensor) else other
    a, b = (v if isinstance(v, Tensor) else _scalar(v, like) for v in (x, other))
    return mindtorch.where(condition, a, b)


@core("split.Tensor")
def _split(x: Tensor, size: int, dim: int = 0) -> object:
    length = x.shape[dim]
    sizes = [min(size, length - at) for at in range(0, length, size)]
    return put(ATEN.split_with_sizes.default, x, sizes, *((dim,) if dim else ()))


@core("stack")
def _stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    at = dim % (tensors[0].dim() + 1)
    if at == 0:
        shape = [len(tensors), *tensors[0].shape]
        return ATEN.view.default(ATEN.cat.default(list(tensors)), shape)
    return ATEN.cat.default([mindtorch.unsqueeze(t, at) for t in tensors], at)


def _count(*bounds: int, like: Tensor, dtype: Dtype | None = None) -> Any:
    named = {} if dtype is None else {"dtype": dtype}
    return put(
        ATEN.arange.start_step, *bounds, **named, layout=mindtorch.strided, device=like.device,
        pin_memory=False,
    )  # fmt: skip


@core("roll")
def _roll(x: Tensor, shifts: Sizes, dims: Sizes = ()) -> object:
    if len(shifts) != 1 or len(dims) != 1:
        return NotImplemented
    size = x.shape[dims[0]]
    places = put(ATEN.fmod.Scalar, _count(0, size, like=x) + (size - shifts[0]) % size, size)
    return put(ATEN.index_select.default, x, dims[0], places)


@core("rot90")
def _rot90(x: Tensor, k: int = 1, dims: Sizes = (0, 1)) -> object:
    first, second = (d % x.dim() for d in dims)
    order = list(range(x.dim()))
    order[first], order[second] = second, first
    if k % 4 == 1:
        return ATEN.permute.default(mindtorch.flip(x, [second]), order)
    if k % 4 == 2:
        return mindtorch.flip(x, [first, second])
    if k % 4 == 3:
        return mindtorch.flip(ATEN.permute.default(x, order), [second])
    return ATEN.clone.default(x)


def _triangle(name: str) -> Rule:
    def triangle(x: Tensor, diagonal: int = 0) -> Tensor:
        columns = mindtorch.unsqueeze(_count(0, x.shape[-1], like=x), -2)
        apart = columns - mindtorch.unsqueeze(_count(0, x.shape[-2], like=x), -1)
        inside = apart <= diagonal if name == "tril" else apart >= diagonal
        return mindtorch.where(inside, x, _scalar(0, x))

    return triangle


CORE.update(tril=_triangle("tril"), triu=_triangle("triu"))


@core("t")
def _t(x: Tensor) -> object:
    return ATEN.permute.default(x, [1, 0]) if x.dim() == 2 else x


@core("transpose.int")
def _transpose(x: Tensor, dim0: int, dim1: int) -> object:
    order = list(range(x.dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return ATEN.permute.default(x, order)


@core("squeeze.dim")
def _squeeze(x: Tensor, dim: int) -> object:
    return put(ATEN.squeeze.dims, x, [dim])


@core("clamp_min")
def _clamp_min(x: Tensor, low: Any) -> Tensor:
    return mindtorch.clamp(x, low)


@core("clamp_max")
def _clamp_max(x: Tensor, high: Any) -> Tensor:
    return mindtorch.clamp(x, None, high)


@core("square")
def _square(x: Tensor) -> Tensor:
    return x**2


@core("unbind.int")
def _unbind(x: Tensor, dim: int = 0) -> object:
    parts = [ATEN.slice.Tensor(x, dim, at, at + 1) for at in range(x.shape[dim])]
    return [put(ATEN.squeeze.dims, part, [dim]) for part in parts]


@other("_softmax")
def _softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    top = put(ATEN.amax.default, x, [dim], True)
    powers = mindtorch.exp(x - top)
    return powers / put(ATEN.sum.dim_IntList, powers, [dim], True)


@other("_log_softmax")
def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    low = x - put(ATEN.amax.default, x, [dim], True)
    return low - mindtorch.log(put(ATEN.sum.dim_IntList, mindtorch.exp(low), [dim], True))


@other("native_layer_norm")
def _native_layer_norm(
    x: Tensor, shape: Sizes, weight: Tensor | None, bias: Tensor | None, eps: float
) -> object:
    dims = list(range(x.dim() - len(shape), x.dim()))
    var, mean = put(ATEN.var_mean.correction, x, dims, correction=0, keepdim=True)
    scale = mindtorch.rsqrt(var + eps)
    out = (x - mean) * scale
    out = out if weight is None else out * weight
    return out if bias is None else out + bias, mean, scale


@decomposes("all.default", CORE)
def _all(x: Tensor) -> object:
    return ATEN.logical_not.default(put(ATEN.any.dims, ATEN.logical_not.default(x)))


@decomposes("all.dim", CORE)
def _all_of_dim(x: Tensor, dim: int, keepdim: bool = False) -> object:
    return ATEN.logical_not.default(ATEN.any.dim(ATEN.logical_not.default(x), dim, keepdim))
