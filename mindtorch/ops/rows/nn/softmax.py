"""Rows of softmax and log_softmax along one dimension."""

from __future__ import annotations

from ...._compat.unsupported_dtypes import UnsupportedDtypes, kernel
from ...spec import SHORT_FLOATS, in_dtypes
from ...words import *


def _rule(name: str) -> Callable[..., Geometry]:
    def infer(self: Geometry, dim: int, half_to_float: bool = False) -> Geometry:
        wrap_dim(dim, self.ndim)
        if self.dtype.category < dt.FLOAT:
            raise NotImplementedError(
                f"\"{name}_lastdim_kernel_impl\" not implemented for '{scalar_name(self.dtype)}'"
            )
        return self.fresh()

    return infer


def _total(e: Array, dim: int) -> Array:
    """Sums along a dim that is kept. numpy adds pairwise only where elements lie side by side: one
    after another, sums of 65,536 are thousands of units off."""
    side_by_side = np.ascontiguousarray(np.moveaxis(e, dim, -1)) if e.ndim else e
    total = side_by_side.sum(axis=-1 if e.ndim else None, keepdims=True)
    return np.moveaxis(total, -1, dim) if e.ndim else np.asarray(total)


def _softmax(x: Array, dim: int, half_to_float: bool) -> Array:
    if not x.ndim:
        return np.exp(x - x)  # NaN and infinities are none of 1
    top = x.max(axis=dim, keepdims=True) if x.size else 0
    e = np.exp(x - top)
    return e / _total(e, dim)


def _log_softmax(x: Array, dim: int, half_to_float: bool) -> Array:
    if not x.ndim:
        return x - x
    shifted = x - (x.max(axis=dim, keepdims=True) if x.size else 0)
    return shifted - np.log(_total(np.exp(shifted), dim))


def _samples() -> list[Sample]:
    types = ("float32", "float64", "float16", "bfloat16")
    samples = [Sample((Arg((3, 4), d, -4, 4), 1, False)) for d in types]
    samples += [Sample((Arg((2, 3, 4)), dim, False)) for dim in (0, 1, -1)]
    return [*samples, Sample((Arg(()), 0, False)), Sample((Arg((2, 0)), 1, False))]


def _unsupported(name: str) -> UnsupportedDtypes:
    """The dtypes that torch's kernels lack: one for the last dimension, one for the others."""

    def inner(args: Sequence[Any]) -> bool:
        return args[0].ndim > 1 and args[1] % args[0].ndim != args[0].ndim - 1

    return {
        "bool whole complex": kernel(f"{name}_lastdim_kernel_impl", unless=inner),
        "complex whole bool": f"{name}_kernel_impl",
    }


op(
    "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    infer=_rule("softmax"),
    cpu=_softmax,
    aclnn=call("aclnnSoftmax", "self", "dim", "out"),
    grad={"self": lambda grad, result, dim: aten._softmax_backward_data(grad, result, dim, None)},
    unsupported=_unsupported("softmax"),
    samples=_samples,
    autocast="float32 on npu",
    rule="softmax",
)
op(
    "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    infer=_rule("log_softmax"),
    cpu=_log_softmax,
    aclnn=call("aclnnLogSoftmax", "self", "dim", "out"),
    grad={
        "self": lambda grad, result, dim: aten._log_softmax_backward_data(grad, result, dim, None)
    },
    unsupported=_unsupported("log_softmax"),
    samples=_samples,
    tolerance="composite",
    rule="log_softmax",
    autocast="float32 on npu",
)


def _sum(t: Tensor, dim: int) -> Tensor:
    return aten.sum(t, (dim,), True) if t.ndim else t


def _softmax_grad_grad(
    grad: Tensor, grad_output: Tensor, output: Tensor, dim: int
) -> tuple[Any, Any]:
    """Of y (g - Σ g y): by g, and by y."""
    inner = grad - _sum(grad * output, dim)
    dot = _sum(grad_output * output, dim)
    across = _sum(grad * output, dim)
    by_output = grad * (grad_output - dot) - across * grad_output
    return output * inner, by_output


def _same(grad_output: Geometry, output: Geometry, dim: int, input_dtype: Dtype | None) -> Geometry:
    return grad_output.fresh(dtype=output.dtype)


op(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType? input_dtype)"
    " -> Tensor",
    infer=_same,
    cpu=lambda g, y, dim, input_dtype: (
        y * (g - (g * y).sum(axis=dim, keepdims=True)) if y.ndim else np.zeros_like(y)
    ),
    aclnn=call(
        "aclnnSoftmaxBackward",
        "grad_output",
        "output",
        "dim",
        "out",
        when=in_dtypes("output", *SHORT_FLOATS),
    ),
    lower=lambda g, y, dim, input_dtype=None: y * (g - _sum(g * y, dim)),
    grad={("grad_output", "output"): _softmax_grad_grad},
    unsupported={"bool whole complex": "softmax_backward_lastdim_kernel_impl"},
    surface="function",
    tolerance="composite",
    rule="softmax_backward",
    samples=calls((Arg((3, 4)), Arg((3, 4), low=0.1, high=0.5), 1, None)),
    oracle=lambda torch: (
        lambda g, y, dim, _: torch.ops.aten._softmax_backward_data(g, y, dim, y.dtype)
    ),
)
op(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim,"
    " ScalarType? input_dtype) -> Tensor",
    infer=_same,
    cpu=lambda g, y, dim, input_dtype: (
        g - np.exp(y) * g.sum(axis=dim, keepdims=True) if y.ndim else np.zeros_like(y)
    ),
    aclnn=call(
        "aclnnLogSoftmaxBackward",
        "grad_output",
        "output",
        "dim",
        "out",
        when=in_dtypes("output", *SHORT_FLOATS),
    ),
    lower=lambda g, y, dim, input_dtype=None: g - aten.exp(y) * _sum(g, dim),
    grad={
        "grad_output": lambda grad, output, dim: grad - _sum(grad * aten.exp(output), dim),
        "output": lambda grad, grad_output, output, dim: (
            -(grad * aten.exp(output) * _sum(grad_output, dim))
        ),
    },
    unsupported={"bool whole complex": "log_softmax_backward_lastdim_kernel_impl"},
    tolerance="composite",
    rule="softmax_backward",
    samples=calls((Arg((3, 4)), Arg((3, 4), low=-3, high=-0.1), 1, None)),
    oracle=lambda torch: (
        lambda g, y, dim, _: torch.ops.aten._log_softmax_backward_data(g, y, dim, y.dtype)
    ),
)


def _through(name: str) -> Callable[..., Any]:
    def body(self: Tensor, dim: int, dtype: Dtype | None = None) -> Tensor:
        if dtype is not None and dtype is not self.dtype:
            if not isinstance(dtype, Dtype):
                raise TypeError(f"{name[1:]}(): dtype must be a dtype, not {dtype!r}")
            self = self.to(dtype)
        return getattr(aten, name)(self, dim, False)

    return body


for _name in ("softmax", "log_softmax"):
    composite(
        f"{_name}(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        _through("_" + _name),
        summary="exp(x) / sum(exp(x)) along `dim`" + ", as a logarithm" * (_name[0] == "l") + ".",
        samples=lambda: [Sample((Arg((3, 4), d), 1)) for d in ("float32", "float64")],
        tolerance="composite",
        rule=_name,
        surface="both",
        out="expected",
    )
