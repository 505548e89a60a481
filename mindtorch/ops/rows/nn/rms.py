"""Rows of root mean square normalization and its gradient as one call each, which CANN has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...._tensor import dtype as dt
from ...._tensor.geometry import Geometry
from ...._tensor.tensor import Tensor
from ...samples import Arg, calls
from ...spec import SHORT_FLOATS, NoNumbers, aten, call, op
from .norm_grads import mean_of, or_zeros, wide

Pair = tuple[Any, Any]


def kernel_takes(input: Tensor | Geometry, weight: Tensor | Geometry | None) -> bool:
    """Whether CANN's operators take these: two dimensions at least, and a weight of the dtype."""
    known = str(input.dtype).removeprefix("torch.") in SHORT_FLOATS
    return known and weight is not None and weight.dtype is input.dtype and input.ndim > 1


def _of_kernel(args: dict[str, Any]) -> bool:
    return kernel_takes(args["input"], args["weight"])


def _dims(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0))


def _rstd_shape(shape: Sequence[int], normalized: Sequence[int]) -> tuple[int, ...]:
    return (*shape[: len(shape) - len(normalized)], *[1] * len(normalized))


def _eps(eps: float | None, dtype: Any) -> float:
    info: Any = dt.finfo(dt.float32 if dtype in (dt.float16, dt.bfloat16) else dtype)
    return float(info.eps if eps is None else eps)


def _rule(
    input: Geometry, normalized_shape: Sequence[int], weight: Geometry | None, eps: float | None
) -> tuple[Geometry, Geometry]:
    half = input.dtype in (dt.float16, dt.bfloat16)
    rstd = input.fresh(
        _rstd_shape(input.shape, normalized_shape), dt.float32 if half else input.dtype
    )
    return input.fresh(), rstd


def _forward(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None
) -> Pair:
    x = wide(input)
    rstd = aten.rsqrt(mean_of(x * x, _dims(normalized_shape)) + _eps(eps, input.dtype))
    normal = x * rstd
    normal = normal if weight is None else normal * weight
    return aten.contiguous(aten.to(normal, input.dtype)), rstd


def _gradients(
    grad_out: Tensor, input: Tensor, normalized_shape: Sequence[int], rstd: Tensor, weight: Any
) -> Pair:
    """By the input, and by the weight in the dtype of `rstd`."""
    grad, normal, dims = wide(grad_out), wide(input) * rstd, _dims(normalized_shape)
    by_weight = aten.reshape(grad * normal, (-1, *normalized_shape))
    scaled = grad if weight is None else grad * weight
    return aten.to(_back(scaled, normal, rstd, dims), input.dtype), aten.sum(by_weight, 0)


def _back(g: Tensor, normal: Tensor, rstd: Tensor, dims: tuple[int, ...]) -> Any:
    return (g - normal * mean_of(g * normal, dims)) * rstd


def _again(
    grads: tuple[Tensor | None, ...],
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    rstd: Tensor,
    weight: Any,
) -> tuple[Any, Any, Any]:
    """What the gradients owe to `grad_out`, the input and the weight."""
    dims, x, g = _dims(normalized_shape), wide(input), wide(grad_out)
    v = or_zeros(grads[0], input)
    u = or_zeros(grads[1], rstd) if grads[1] is None else grads[1]
    w = 1.0 if weight is None else wide(weight)
    normal, h = x * rstd, g * w
    flow = _back(v, normal, rstd, dims)
    cube, mean = rstd * rstd * rstd, mean_of(h * x, dims)
    along = mean_of(v * x, dims)
    slope = mean_of(v * h, dims) + mean_of(u * g * x, dims) - along * mean * rstd * rstd * 3
    by_input = u * g * rstd - cube * (x * slope + mean * v + along * h)
    by_weight = None if weight is None else aten.sum(
        aten.reshape(g * flow, (-1, *normalized_shape)), 0
    )  # fmt: skip
    return flow * w + u * normal, by_input, by_weight


def _oracle(torch: Any) -> Any:
    def run(input: Any, shape: Any, weight: Any, eps: Any) -> Any:
        x, dims = input.double(), tuple(range(-len(shape), 0))
        rstd = (x.square().mean(dims, keepdim=True) + eps).rsqrt()
        return (x * rstd * weight).to(input.dtype), rstd.detach().to(input.dtype)

    return run


op(
    "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps)"
    " -> (Tensor out, Tensor rstd)",
    infer=_rule,
    aclnn=call(
        "aclnnRmsNorm", "input", "weight", lambda a: _eps(a["eps"], a["input"].dtype), "out",
        "rstd", when=NoNumbers(_of_kernel),
    ),
    lower=_forward,
    grad={
        ("input", "weight"): lambda grad_out, input, normalized_shape, rstd, weight: (
            aten._fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight)
        )
    },
    samples=calls(
        (Arg((2, 3, 4), grad=False), (4,), Arg((4,), low=0.5, grad=False), 1e-5),
        (Arg((2, 3, 4), "float64", grad=False), (3, 4), Arg((3, 4), "float64", grad=False), 1e-5),
    ),
    oracle=_oracle,
    tolerance="composite",
)  # fmt: skip
op(
    "_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd,"
    " Tensor? weight) -> (Tensor by_input, Tensor by_weight)",
    infer=lambda grad_out, input, normalized_shape, rstd, weight: (
        input.fresh(), input.fresh(tuple(normalized_shape), rstd.dtype)
    ),
    aclnn=call(
        "aclnnRmsNormGrad", "grad_out", "input", "rstd", "weight", "by_input", "by_weight",
        when=NoNumbers(_of_kernel),
    ),
    lower=_gradients,
    grad={("grad_out", "input", "weight"): _again},
    unsampled="its statistics must be those of the input: tests of rms_norm differentiate it",
    tolerance="composite",
)  # fmt: skip
