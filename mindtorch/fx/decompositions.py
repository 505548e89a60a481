"""Owns what operators are in core ones: a table, and the recorder that follows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import mindtorch

from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..ops.aten_forms import FORMS
from ..ops.aten_overloads import Call
from ..ops.namespaces import namespace
from .aten import AtenRecorder, TracedInt
from .fake import outside
from .recorder import Arguments, Function, Keywords

Sizes = Sequence[int]
_ATEN = namespace("aten")


class CoreRecorder(AtenRecorder):
    """Traces to core operators: those of `table` are made of others."""

    table: dict[str, Callable[..., Any]] = {}
    infers_sizes = True  # what -1 stands for is in the graph

    def change(self, tensor: Tensor, value: Tensor) -> None:
        """A tensor of the state has another value from now on."""

    def put(self, name: str, *args: object, **kwargs: Any) -> Any:
        """The node of an operator that is no row."""
        run: Callable[..., Any] = FORMS.get(name) or getattr(_ATEN, name)
        target = getattr(_ATEN, name).default
        return super().operator((target, args, kwargs), run, args, kwargs)

    def operator(
        self, call: Call, run: Function, args: Arguments, kwargs: Keywords
    ) -> Any:  # fmt: skip
        target, node_args, node_kwargs = call
        rule = self.table.get(target.overloadpacket.__name__)
        if rule is None:
            return super().operator(call, run, args, kwargs)
        with self.inside():
            return rule(self, *node_args, **node_kwargs)


def linear_of_columns(x: Tensor, columns: Tensor, size: int, bias: Tensor | None) -> object:
    """x @ columns + bias, of matrices."""
    flat = x.dim() == 2
    rows = x if flat else _ATEN.view.default(x, [prod(x.shape[:-1]), x.shape[-1]])
    if bias is None:
        product = _ATEN.mm.default(rows, columns)
    else:
        product = _ATEN.addmm.default(bias, rows, columns)
    return product if flat else _ATEN.view.default(product, [*x.shape[:-1], size])


def _linear(r: CoreRecorder, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> object:
    columns = _ATEN.permute.default(weight, [1, 0])
    return linear_of_columns(x, columns, weight.shape[0], bias)


def _matmul(r: CoreRecorder, x: Tensor, other: Tensor) -> object:
    names = {(2, 2): "mm", (2, 1): "mv", (1, 1): "dot", (3, 3): "bmm"}
    name = names.get((x.dim(), other.dim()))
    if name is not None:
        return getattr(_ATEN, name).default(x, other)
    if x.dim() > 2 and other.dim() == 2:
        rows = _ATEN.view.default(x, [prod(x.shape[:-1]), x.shape[-1]])
        product = _ATEN.mm.default(rows, other)
        return _ATEN.view.default(product, [*x.shape[:-1], other.shape[1]])
    return r.put("matmul", x, other)


def _full(value: int) -> Callable[..., Any]:
    def full(r: CoreRecorder, size: Sizes, *, dtype: Dtype | None = None, **options: Any) -> object:
        dtype = dtype or mindtorch.get_default_dtype()
        return r.put("full", list(size), value, dtype=dtype, layout=mindtorch.strided, **options)

    return full


def _conv(count: int) -> Callable[..., Any]:
    def conv(
        r: CoreRecorder, x: Tensor, weight: Tensor, bias: Tensor | None = None,
        stride: Sizes = (), padding: Sizes = (), dilation: Sizes = (), groups: int = 1,
    ) -> object:  # fmt: skip
        ones, zeros = [1] * count, [0] * count
        sizes = list(stride) or ones, list(padding) or zeros, list(dilation) or ones
        return r.put("convolution", x, weight, bias, *sizes, False, zeros, groups)

    return conv


def _batch_norm(
    r: CoreRecorder, x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor,
    var: Tensor, training: bool,
    momentum: float, eps: float, cudnn: bool = False,
) -> object:  # fmt: skip
    if not training:
        name = "_native_batch_norm_legit_no_training"
        return r.put(name, x, weight, bias, mean, var, momentum, eps)[0]
    name = "_native_batch_norm_legit_functional"
    outs = r.put(name, x, weight, bias, mean, var, True, momentum, eps)
    r.change(mean, outs[3])
    r.change(var, outs[4])
    return outs[0]


def _reshape(r: CoreRecorder, x: Tensor, shape: Sizes) -> object:
    with outside():
        whole = r.metas_of(x)[0]
        target = whole.reshape(tuple(int(s) for s in shape)).shape
        contiguous = whole.is_contiguous()
    alone = r.infers_sizes and (r.versions == 1 or any(isinstance(s, TracedInt) for s in shape))
    sizes = [t if s == -1 and alone else s for s, t in zip(shape, target, strict=True)]
    if contiguous:
        return _ATEN.view.default(x, sizes)
    copied = r.put("clone", x, memory_format=mindtorch.contiguous_format)
    return _ATEN.view.default(copied, sizes)


def _flatten(r: CoreRecorder, x: Tensor, start_dim: int = 0, end_dim: int = -1) -> object:
    first, last = start_dim % max(x.dim(), 1), end_dim % max(x.dim(), 1)
    product = 1
    for size in x.shape[first : last + 1]:
        product = product * size
    return _reshape(r, x, [*x.shape[:first], product, *x.shape[last + 1 :]])


def _unflatten(r: CoreRecorder, x: Tensor, dim: int, sizes: Sizes) -> object:
    at = dim % x.dim()
    return _reshape(r, x, [*x.shape[:at], *sizes, *x.shape[at + 1 :]])


def _transpose(r: CoreRecorder, x: Tensor, dim0: int, dim1: int) -> object:
    order = list(range(x.dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return _ATEN.permute.default(x, order)


def _softmax(name: str) -> Callable[..., Any]:
    def softmax(r: CoreRecorder, x: Tensor, dim: int, dtype: Dtype | None = None) -> object:
        return r.put(name, x, dim, False)

    return softmax


def _layer_norm(
    r: CoreRecorder, x: Tensor, shape: Sizes, weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5, cudnn: bool = True,
) -> object:  # fmt: skip
    return r.put("native_layer_norm", x, list(shape), weight, bias, eps)[0]


def _max_pool2d(r: CoreRecorder, x: Tensor, *args: object, **kwargs: Any) -> object:
    return r.put("max_pool2d_with_indices", x, *args, **kwargs)[0]


def _dropout(r: CoreRecorder, x: Tensor, p: float, train: bool) -> object:
    return r.put("native_dropout", x, p, True)[0] if train else _ATEN.clone.default(x)


def _adaptive_avg_pool2d(r: CoreRecorder, x: Tensor, size: Sizes) -> object:
    if list(size) == [1, 1]:
        return _ATEN.mean.dim(x, [-1, -2], True)
    return r.put("_adaptive_avg_pool2d", x, list(size))


def _silu(r: CoreRecorder, x: Tensor) -> object:
    return _ATEN.mul.Tensor(x, _ATEN.sigmoid.default(x))


def _mse_loss(r: CoreRecorder, x: Tensor, target: Tensor, reduction: int = 1) -> object:
    squares = _ATEN.pow.Tensor_Scalar(_ATEN.sub.Tensor(x, target), 2)
    reductions: tuple[Any, ...] = (lambda t: t, _ATEN.mean.default, _ATEN.sum.default)
    return reductions[reduction](squares)


TABLE: dict[str, Callable[..., Any]] = {
    "adaptive_avg_pool2d": _adaptive_avg_pool2d,
    "batch_norm": _batch_norm, "conv1d": _conv(1), "conv2d": _conv(2), "conv3d": _conv(3),
    "detach_": lambda r, x: x, "dropout": _dropout, "flatten": _flatten,
    "layer_norm": _layer_norm, "lift_fresh_copy": lambda r, x: _ATEN.clone.default(x),
    "linear": _linear, "matmul": _matmul,
    "ones": _full(1), "zeros": _full(0), "log_softmax": _softmax("_log_softmax"),
    "max_pool2d": _max_pool2d,
    "mse_loss": _mse_loss,
    "narrow": lambda r, x, dim, start, length: _ATEN.slice.Tensor(x, dim, start, start + length),
    "numpy_T": lambda r, x: _ATEN.permute.default(x, [1, 0]),
    "reshape": _reshape, "silu": _silu, "softmax": _softmax("_softmax"),
    "unflatten": _unflatten, "t": lambda r, x: _ATEN.permute.default(x, [1, 0]),
    "transpose": _transpose, "_assert_tensor_metadata": lambda r, x, **expected: None,
}  # fmt: skip
