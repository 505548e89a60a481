"""Owns what torch's C++ composites are made of, as core programs have them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod, sqrt
from typing import Any

import mindtorch

from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from .aten import TracedInt
from .casts import cast_of
from .decompositions import ATEN, COMPOSITE, CoreRecorder, Rule, decomposes, put
from .fake import outside

Sizes = Sequence[int]


@decomposes("linear", COMPOSITE)
def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    columns = ATEN.permute.default(weight, [1, 0])
    rows = x if x.dim() == 2 else ATEN.view.default(x, [prod(x.shape[:-1]), x.shape[-1]])
    product: Tensor = (
        ATEN.mm.default(rows, columns) if bias is None else ATEN.addmm.default(bias, rows, columns)
    )
    if x.dim() == 2:
        return product
    return ATEN.view.default(product, [*x.shape[:-1], weight.shape[0]])


@decomposes("matmul", COMPOSITE)
def _matmul(x: Tensor, other: Tensor) -> object:
    names = {(2, 2): "mm", (2, 1): "mv", (1, 1): "dot", (3, 3): "bmm"}
    name = names.get((x.dim(), other.dim()))
    if name is not None:
        return getattr(ATEN, name).default(x, other)
    if x.dim() > 2 and other.dim() == 2:
        rows = ATEN.view.default(x, [prod(x.shape[:-1]), x.shape[-1]])
        product = ATEN.mm.default(rows, other)
        return ATEN.view.default(product, [*x.shape[:-1], other.shape[1]])
    return NotImplemented


def _conv(count: int) -> Rule:
    def conv(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = (),
        padding: Sizes = (), dilation: Sizes = (), groups: int = 1,
    ) -> object:  # fmt: skip
        ones, zeros = [1] * count, [0] * count
        sizes = list(stride) or ones, list(padding) or zeros, list(dilation) or ones
        return put(ATEN.convolution.default, x, weight, bias, *sizes, False, zeros, groups)

    return conv


COMPOSITE.update(conv1d=_conv(1), conv2d=_conv(2), conv3d=_conv(3))


def _softmax(name: str) -> Rule:
    return lambda x, dim, dtype=None: put(getattr(ATEN, name).default, x, dim, False)


COMPOSITE.update(softmax=_softmax("_softmax"), log_softmax=_softmax("_log_softmax"))


@decomposes("layer_norm", COMPOSITE)
def _layer_norm(
    x: Tensor, shape: Sizes, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5, cudnn: bool = True,
) -> object:  # fmt: skip
    return put(ATEN.native_layer_norm.default, x, list(shape), weight, bias, eps)[0]


@decomposes("group_norm", COMPOSITE)
def _group_norm(
    x: Tensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5, cudnn: bool = True,
) -> object:  # fmt: skip
    sizes = x.shape[0], x.shape[1], prod(x.shape[2:])
    return put(ATEN.native_group_norm.default, x, weight, bias, *sizes, groups, eps)[0]


@decomposes("max_pool2d", COMPOSITE)
def _max_pool2d(x: Tensor, *args: object, **kwargs: Any) -> object:
    return put(ATEN.max_pool2d_with_indices.default, x, *args, **kwargs)[0]


@decomposes("dropout", COMPOSITE)
def _dropout(x: Tensor, p: float, train: bool) -> object:
    if not train:
        return ATEN.clone.default(x)
    return put(ATEN.native_dropout.default, x, p, True)[0]


@decomposes("adaptive_avg_pool2d", COMPOSITE)
def _adaptive_avg_pool2d(x: Tensor, size: Sizes) -> object:
    if list(size) == [1, 1]:
        return ATEN.mean.dim(x, [-1, -2], True)
    return put(ATEN._adaptive_avg_pool2d.default, x, list(size))


@decomposes("cross_entropy_loss", COMPOSITE)
def _cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1,
    ignored: int = -100, smoothing: float = 0.0,
) -> object:  # fmt: skip
    if smoothing or target.is_floating_point() or x.dim() > 2 or weight is not None:
        return NotImplemented
    logs = put(ATEN._log_softmax.default, x, x.dim() - 1, False)
    return put(ATEN.nll_loss_forward.default, logs, target, None, reduction, ignored)[0]


@decomposes("l1_loss", COMPOSITE)
def _l1_loss(x: Tensor, target: Tensor, reduction: int = 1) -> object:
    return reduced((x - target).abs(), reduction)


@decomposes("broadcast_tensors", COMPOSITE)
def _broadcast(tensors: Sequence[Tensor]) -> list[Tensor]:
    shape = list(mindtorch.broadcast_shapes(*(t.shape for t in tensors)))
    return [t if list(t.shape) == shape else ATEN.expand.default(t, shape) for t in tensors]


@decomposes("pad", COMPOSITE)
def _pad(x: Tensor, sizes: Sizes, mode: str = "constant", value: float | None = None) -> object:
    if mode != "constant":
        return NotImplemented
    return put(ATEN.constant_pad_nd.default, x, list(sizes), value or 0.0)


def reduced(loss: Tensor, reduction: int) -> Tensor:
    """A loss by the number of its reduction."""
    reductions: tuple[Rule, ...] = (lambda t: t, mindtorch.mean, mindtorch.sum)
    result: Tensor = reductions[reduction](loss)
    return result


@decomposes("scaled_dot_product_attention", COMPOSITE)
def _attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, p: float = 0.0,
    is_causal: bool = False, **options: object,
) -> object:  # fmt: skip
    if mask is not None or p or is_causal or options or query.dim() != 4:
        return NotImplemented
    scale = sqrt(1 / sqrt(query.shape[-1]))
    scores = _batched(
        put(ATEN.mul.Scalar, query, scale),
        put(ATEN.mul.Scalar, ATEN.permute.default(key, [0, 1, 3, 2]), scale),
    )
    weights = put(ATEN._softmax.default, scores, -1, False)
    empty = mindtorch.logical_not(ATEN.eq.Scalar(scores, -inf))
    whole = mindtorch.logical_not(put(ATEN.any.dim, empty, -1, True))
    zeros = put(
        ATEN.full_like.default, weights, 0, pin_memory=False,
        memory_format=mindtorch.preserve_format,
    )  # fmt: skip
    product = _batched(mindtorch.where(whole, zeros, weights), value)
    rows = ATEN.permute.default(product, [2, 0, 1, 3])
    if not rows.is_contiguous():
        rows = put(ATEN.clone.default, rows, memory_format=mindtorch.contiguous_format)
    return ATEN.permute.default(rows, [1, 2, 0, 3])


def _batched(a: Tensor, b: Tensor) -> Tensor:
    """A product of batches of matrices `[N, h, L, M]`."""
    flat = []
    for x in (a, b):
        expanded = put(ATEN.expand.default, x, list(x.shape))
        flat.append(ATEN.view.default(expanded, [x.shape[0] * x.shape[1], *x.shape[2:]]))
    product = ATEN.bmm.default(*flat)
    return ATEN.view.default(product, [*a.shape[:-1], b.shape[-1]])


COMPOSITE.update(
    narrow=lambda x, dim, start, length: ATEN.slice.Tensor(x, dim, start, start + length),
    numpy_T=lambda x: ATEN.permute.default(x, [1, 0]),
    _assert_tensor_metadata=lambda x, **expected: None,
)


# What is made of others whatever a table has: writes, and views that may be copies.


def _batch_norm(
    r: CoreRecorder, x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor,
    var: Tensor, training: bool, momentum: float, eps: float, cudnn: bool = False,
) -> object:  # fmt: skip
    if not training:
        function = ATEN._native_batch_norm_legit_no_training.default
        return put(function, x, weight, bias, mean, var, momentum, eps)[0]
    function = ATEN._native_batch_norm_legit_functional.default
    outs = put(function, x, weight, bias, mean, var, True, momentum, eps)
    r.change(mean, outs[3])
    r.change(var, outs[4])
    return outs[0]


def _reshape(r: CoreRecorder, x: Tensor, shape: Sizes) -> object:
    with outside():
        whole = r.metas_of(x)[0]
        target = whole.reshape(tuple(int(s) for s in shape)).shape
        contiguous = whole.is_contiguous()
    alone = r.versions == 1 or any(isinstance(s, TracedInt) for s in shape)
    sizes = [t if s == -1 and alone else s for s, t in zip(shape, target, strict=True)]
    if contiguous:
        return ATEN.view.default(x, sizes)
    copied = put(ATEN.clone.default, x, memory_format=mindtorch.contiguous_format)
    return ATEN.view.default(copied, sizes)


def _flatten(r: CoreRecorder, x: Tensor, start_dim: int = 0, end_dim: int = -1) -> object:
    first, last = start_dim % max(x.dim(), 1), end_dim % max(x.dim(), 1)
    product = 1
    for size in x.shape[first : last + 1]:
        product = product * size
    return _reshape(r, x, [*x.shape[:first], product, *x.shape[last + 1 :]])


def _unflatten(r: CoreRecorder, x: Tensor, dim: int, sizes: Sizes) -> object:
    at = dim % x.dim()
    return _reshape(r, x, [*x.shape[:at], *sizes, *x.shape[at + 1 :]])


def _chunk(r: CoreRecorder, x: Tensor, chunks: int, dim: int = 0) -> object:
    size = max(-(-x.shape[dim] // chunks), 1)
    return ATEN.split.Tensor(x, size, *((dim,) if dim else ()))


def _cast(r: CoreRecorder, x: Tensor, *args: object, **kwargs: Any) -> object:
    cast = cast_of("to", (x, *args), kwargs)
    if cast is None or cast.keeps(x):
        return x
    named = {n: v for n, v in kwargs.items() if n not in ("copy", "dtype")}
    named.update({} if cast.device is None else {"device": cast.device})
    named.update({"non_blocking": True} if cast.non_blocking else {})
    if cast.memory_format is not None:
        named["memory_format"] = cast.memory_format
    return put(ATEN._to_copy.default, x, dtype=cast.dtype, **named)


def _type_as(r: CoreRecorder, x: Tensor, other: Tensor) -> object:
    return _cast(r, x, dtype=other.dtype, layout=mindtorch.strided, device=other.device)


def _contiguous(r: CoreRecorder, x: Tensor, **options: Any) -> object:
    if not options and r.metas_of(x)[0].is_contiguous():
        return x
    return put(ATEN.clone.default, x, **(options or {"memory_format": mindtorch.contiguous_format}))


for _sign in ("and", "or", "xor"):
    COMPOSITE[f"__{_sign}__.Tensor"] = getattr(ATEN, f"bitwise_{_sign}").Tensor
    COMPOSITE[f"__{_sign}__.Scalar"] = getattr(ATEN, f"bitwise_{_sign}").Scalar
CoreRecorder.always = {
    "contiguous": _contiguous, "to": _cast, "type_as": _type_as,
    "batch_norm": _batch_norm, "chunk": _chunk, "detach_": lambda r, x: x, "flatten": _flatten,
    "lift_fresh_copy": lambda r, x: ATEN.clone.default(x), "reshape": _reshape,
    "unflatten": _unflatten,
}  # fmt: skip


def full_of(
    size: Sizes, value: object, like: Tensor | None = None, dtype: Dtype | None = None
) -> Any:
    """A tensor of one number, as core programs make it; without dtype and device those of `like`,
    or the defaults."""
    kind: Dtype = dtype or (like.dtype if like is not None else mindtorch.get_default_dtype())
    device = mindtorch.device("cpu") if like is None else like.device
    return put(
        ATEN.full.default, list(size), value, dtype=kind, layout=mindtorch.strided, device=device,
        pin_memory=False,
    )  # fmt: skip
