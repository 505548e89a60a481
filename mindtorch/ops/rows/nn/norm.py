"""Rows of layer, group and batch normalization.

Their gradients are rows of `norm_grads.py` where the kept statistics are whole; for halves, and
where gradients come by the statistics, they are written from the input.
"""

from __future__ import annotations

from math import prod
from types import ModuleType

from ...._compat.unsupported_dtypes import kernel
from ...complex_parts import below_double
from ...rules import HALVES, as_images
from ...words import *
from .norm_grads import WHOLE, back_through, or_zeros, standardized, wide


def _stat(g: Geometry) -> Dtype:
    return dt.float32 if g.dtype in (dt.float16, dt.bfloat16) else g.dtype


def _normalized(x: Array, axes: int | tuple[int, ...], eps: float) -> tuple[Any, Any, Any]:
    mean = x.mean(axis=axes, keepdims=True)
    centered = x - mean
    var = (centered * centered).mean(axis=axes, keepdims=True)
    rstd = x.dtype.type(1) / np.sqrt(var + x.dtype.type(eps))
    return centered * rstd, mean, rstd


def trailing(sizes: Sequence[int], normalized_shape: Sequence[int]) -> tuple[int, ...]:
    """`normalized_shape`, which an input of `sizes` ends with; RuntimeError in torch's words."""
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
            f"one element, but got normalized_shape = {list(shape)}"
        )
    if tuple(sizes[-len(shape) :]) != shape:
        expected = "".join(f", {size}" for size in shape)
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{expected}], "
            f"but got input of size{list(sizes)}"
        )
    return shape


def _layer_norm_rule(
    input: Geometry,
    normalized_shape: tuple[int, ...],
    weight: Geometry | None,
    bias: Geometry | None,
    eps: float,
) -> tuple[Geometry, ...]:
    shape = trailing(input.shape, normalized_shape)
    for name, factor in (("weight", weight), ("bias", bias)):
        if factor is not None and tuple(factor.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of "
                f"shape {list(factor.shape)} and normalized_shape = {list(shape)}"
            )
    _refuse_mixed(input, weight, bias)
    lead = input.ndim - len(shape)
    rows = (*input.shape[:lead], *([1] * len(normalized_shape)))
    # Statistics of halves are float32 beside parameters of float32, and always by CANN's PyTorch
    # adapter (op-plugin, native_layer_norm).
    parameters = {p.dtype for p in (weight, bias) if p is not None}
    whole = input.dtype in HALVES and (input.device.type == "npu" or dt.float32 in parameters)
    stat = input.fresh(rows, dt.float32 if whole else input.dtype)
    return input.fresh(), stat, stat


def _is_mixed(args: Sequence[object]) -> bool:
    """Whether the first parameter is of another dtype: torch says that before it looks further."""
    first, *parameters = [a.dtype for a in args if isinstance(a, Geometry)]
    return bool(parameters) and parameters[0] is not first


def _refuse_mixed(input: Geometry, *parameters: Geometry | None) -> None:
    """RuntimeError in torch's words for parameters of another dtype; halves go with float32."""
    dtypes = [p.dtype for p in parameters if p is not None]
    half = input.dtype in HALVES and set(dtypes) == {dt.float32}
    other = next((d for d in dtypes if d is not input.dtype), None)
    if other is None or half:
        return
    if dtypes[0] is input.dtype:
        expected = scalar_name(input.dtype)
        raise RuntimeError(f"expected scalar type {expected} but found {scalar_name(other)}")
    if input.dtype not in HALVES and set(dtypes) == {dt.float32}:
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
    raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")


def _layer_norm(
    x: Array, shape: tuple[int, ...], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, ...]:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    out, mean, rstd = _normalized(x, axes, eps)
    if weight is not None:
        out = out * weight
    return (out if bias is None else out + bias), mean, rstd


def _widened(*tensors: Tensor | None) -> list[Any]:
    """Halves in float32, for gradients that take whole statistics."""
    return [t if t is None else wide(t) for t in tensors]


def _layer_norm_grad(
    grad_out: Tensor | None,
    grad_mean: Tensor | None,
    grad_rstd: Tensor | None,
    input: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    mean: Tensor,
    rstd: Tensor,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    if grad_out is not None and grad_mean is None and grad_rstd is None:
        mixed = weight is not None and weight.dtype is not input.dtype
        if mean.dtype not in WHOLE or mixed:
            input, grad_out, weight, bias, mean, rstd = _widened(
                input, grad_out, weight, bias, mean, rstd
            )
        return aten._layer_norm_backward(
            grad_out, input, normalized_shape, mean, rstd, weight, bias, needs
        )
    lead = input.ndim - len(normalized_shape)
    dims, over = tuple(range(lead, input.ndim)), tuple(range(lead))
    x, g = wide(input), or_zeros(grad_out, input)
    normal, rstd = standardized(x, dims, eps)
    grads: list[Any] = [None, None, None]
    if needs[0]:
        scaled = g if weight is None else g * weight
        grads[0] = back_through(scaled, normal, rstd, dims, grad_mean, grad_rstd)
    if needs[1] and grad_out is not None:
        both = g * normal
        grads[1] = aten.sum(both, over) if over else both
    if needs[2] and grad_out is not None:
        grads[2] = aten.sum(g, over) if over else g
    return tuple(grads)


def _layer_norm_double(
    input: Tensor, shape: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, ...]:
    dims = tuple(range(input.ndim - len(shape), input.ndim))
    out, rstd = standardized(input, dims, eps)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias), aten.mean(input, dims, True), rstd


def _layer_norm_oracle(torch: ModuleType) -> Callable[..., Any]:
    """torch's layer_norm, with statistics that have gradients: those of its native op have none."""

    def run(input: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
        dims = tuple(range(-len(shape), 0))
        out = torch.layer_norm(input, shape, weight, bias, eps)
        spread = input.var(dims, correction=0, keepdim=True)
        return out, input.mean(dims, keepdim=True), torch.rsqrt(spread + eps)

    return run


op(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias,"
    " float eps) -> (Tensor out, Tensor mean, Tensor rstd)",
    infer=_layer_norm_rule,
    cpu=_layer_norm,
    aclnn=call("aclnnLayerNorm", when=below_double("input")),
    lower=_layer_norm_double,
    grad={("input", "weight", "bias"): _layer_norm_grad},
    unsupported={"bool whole complex": kernel("LayerNormKernelImpl", unless=_is_mixed)},
    samples=lambda: [
        Sample((Arg((2, 3, 4)), (4,), Arg((4,)), Arg((4,)), 1e-5)),
        Sample((Arg((2, 3, 4), "float64"), (3, 4), None, None, 1e-3)),
        Sample((Arg((2, 5), "float64"), (5,), Arg((5,), "float64"), None, 1e-5)),
    ],
    oracle=_layer_norm_oracle,
    tolerance="composite",
    surface="none",
    autocast="float32 on npu",
)


def _group_norm_rule(
    input: Geometry,
    weight: Geometry | None,
    bias: Geometry | None,
    n: int,
    c: int,
    area: int,
    group: int,
    eps: float,
) -> tuple[Geometry, ...]:
    if group <= 0 or c % group:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(input.shape)} and num_groups={group}"
        )
    if input.numel != n * c * area:
        raise RuntimeError("Expected X.numel() == N * C * HxW to be true, but got false.")
    for name, factor in (("weight", weight), ("bias", bias)):
        if factor is not None and tuple(factor.shape) != (c,):
            factor = weight if weight is not None else factor  # torch shows that one's shape
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(factor.shape)} and input of shape "
                f"{list(input.shape)}"
            )
    _refuse_mixed(input, weight, bias)
    stat = input.fresh((n, group), input.dtype)
    return as_images(input.shape, input), stat, stat


def _per_channel(t: Array, ndim: int) -> Array:
    return t.reshape((1, -1, *([1] * (ndim - 2))))


def _group_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    n: int,
    c: int,
    area: int,
    group: int,
    eps: float,
) -> tuple[Array, ...]:
    normal, mean, rstd = _normalized(x.reshape((n, group, c // group * area)), 2, eps)
    out = normal.reshape(x.shape)
    if weight is not None:
        out = out * _per_channel(weight, x.ndim)
    if bias is not None:
        out = out + _per_channel(bias, x.ndim)
    return out, mean.reshape((n, group)), rstd.reshape((n, group))


def _group_norm_double(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, area: int,
    group: int, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    rows = aten.reshape(input, (n, group, c // group * area))
    normal, rstd = standardized(rows, (2,), eps)
    out = _scaled(aten.reshape(normal, input.shape), weight, bias)
    return out, aten.mean(rows, 2), aten.squeeze(rstd, 2)


def _scaled(normal: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """By channel."""
    spread = (1, -1, *([1] * (normal.ndim - 2)))
    out = normal if weight is None else normal * aten.reshape(weight, spread)
    return out if bias is None else out + aten.reshape(bias, spread)


def _group_norm_grad(
    grad_out: Tensor | None,
    grad_mean: Tensor | None,
    grad_rstd: Tensor | None,
    input: Tensor,
    weight: Tensor | None,
    N: int,  # noqa: N803
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    eps: float,
    mean: Tensor,
    rstd: Tensor,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    if grad_out is not None and grad_mean is None and grad_rstd is None:
        if input.dtype not in WHOLE:
            input, grad_out, weight = _widened(input, grad_out, weight)
            _, mean, rstd = aten.native_group_norm(input, None, None, N, C, HxW, group, eps)
        return aten._group_norm_backward(
            grad_out, input, mean, rstd, weight, N, C, HxW, group, needs
        )
    shape, over = input.shape, (0, *range(2, input.ndim))
    x, g = wide(input), or_zeros(grad_out, input)
    rows = (N, group, shape[1] // group * prod(shape[2:]))
    normal, rstd = standardized(aten.reshape(x, rows), (2,), eps)
    grads: list[Any] = [None, None, None]
    if needs[0]:
        scaled = g
        if weight is not None:
            scaled = g * aten.reshape(weight, (1, -1, *[1] * (input.ndim - 2)))
        flat = aten.reshape(scaled, rows)
        back = back_through(flat, normal, rstd, (2,), grad_mean, grad_rstd)
        grads[0] = aten.reshape(back, shape)
    if needs[1] and grad_out is not None:
        grads[1] = aten.sum(g * aten.reshape(normal, shape), over)
    if needs[2] and grad_out is not None:
        grads[2] = aten.sum(g, over)
    return tuple(grads)


op(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW,"
    " int group, float eps) -> (Tensor out, Tensor mean, Tensor rstd)",
    infer=_group_norm_rule,
    cpu=_group_norm,
    aclnn=call("aclnnGroupNorm", when=below_double("input")),
    lower=_group_norm_double,
    grad={("input", "weight", "bias"): _group_norm_grad},
    unsupported={"bool whole complex": kernel("GroupNormKernelImpl", unless=_is_mixed)},
    samples=lambda: [
        Sample((Arg((2, 4, 3)), Arg((4,)), Arg((4,)), 2, 4, 3, 2, 1e-5)),
        Sample((Arg((2, 6, 2, 2), "float64"), None, None, 2, 6, 4, 3, 1e-3)),
    ],
    tolerance="composite",
    surface="function",
    autocast="float32 on npu",
)  # fmt: skip


def _batch_norm_rule(
    input: Geometry,
    weight: Geometry | None,
    bias: Geometry | None,
    running_mean: Geometry | None,
    running_var: Geometry | None,
    training: bool,
    eps: float,
) -> tuple[Geometry, ...]:
    _refuse_mixed(input, weight, bias, running_mean, running_var)
    stat = input.fresh((input.shape[1],) if training else (0,), _stat(input))
    return as_images(input.shape, input), stat, stat


def _batch_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array,
    var: Array,
    training: bool,
    eps: float,
) -> tuple[Array, ...]:
    axes = (0, *range(2, x.ndim))
    channels = x.shape[1]
    if training:
        normal, mean, rstd = _normalized(x, axes, eps)
        statistics = (mean.reshape(channels), rstd.reshape(channels))
    else:
        rstd = x.dtype.type(1) / np.sqrt(var.astype(x.dtype) + x.dtype.type(eps))
        normal = (x - _per_channel(mean.astype(x.dtype), x.ndim)) * _per_channel(rstd, x.ndim)
        statistics = (np.zeros(0, x.dtype), np.zeros(0, x.dtype))
    out = normal if weight is None else normal * _per_channel(weight, x.ndim)
    return (out if bias is None else out + _per_channel(bias, x.ndim)), *statistics


def _batch_norm_double(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor,
    running_var: Tensor, training: bool, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    over = (0, *range(2, input.ndim))
    if training:
        normal, rstd = standardized(input, over, eps)
        statistics = (aten.mean(input, over), aten.reshape(rstd, (-1,)))
    else:
        rstd = aten.rsqrt(running_var + eps)
        normal = _scaled(_scaled(input, None, -running_mean), rstd, None)
        statistics = (aten.zeros_like(rstd[:0]), aten.zeros_like(rstd[:0]))
    return _scaled(normal, weight, bias), *statistics


def _batch_norm_grad(
    grad_out: Tensor | None,
    grad_mean: Tensor | None,
    grad_rstd: Tensor | None,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    eps: float,
    mean: Tensor,
    rstd: Tensor,
    needs: Sequence[bool],
) -> tuple[Any, ...]:
    if grad_out is not None and grad_mean is None and grad_rstd is None:
        if input.dtype not in WHOLE:
            input, grad_out, weight, running_mean, running_var, mean, rstd = _widened(
                input, grad_out, weight, running_mean, running_var, mean, rstd
            )
            if training:
                _, mean, rstd = aten._batch_norm_functional(
                    input, None, None, None, None, True, eps
                )
        return aten._batch_norm_backward(
            grad_out, input, weight, running_mean, running_var, mean, rstd, training, eps, needs
        )
    over = (0, *range(2, input.ndim))
    spread = (1, -1, *([1] * (input.ndim - 2)))
    x, g = wide(input), or_zeros(grad_out, input)
    if training:
        normal, rstd = standardized(x, over, eps)
    else:
        rstd = aten.reshape(aten.rsqrt(running_var + eps), spread)
        normal = (x - aten.reshape(running_mean, spread)) * rstd
    grads: list[Any] = [None, None, None]
    if needs[0]:
        scaled = g if weight is None else g * aten.reshape(weight, spread)
        if training:
            grads[0] = back_through(scaled, normal, rstd, over, grad_mean, grad_rstd)
        else:
            grads[0] = scaled * rstd
    if needs[1] and grad_out is not None:
        grads[1] = aten.sum(g * normal, over)
    if needs[2] and grad_out is not None:
        grads[2] = aten.sum(g, over)
    return tuple(grads)


def _batch_norm_oracle(torch: ModuleType) -> Callable[..., Any]:
    """As _layer_norm_oracle, for torch's batch_norm."""

    def run(
        input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, eps: float
    ) -> Any:
        out = torch.batch_norm(input, weight, bias, mean, var, training, 0.0, eps, False)
        if not training:
            return out, input.new_zeros(0), input.new_zeros(0)
        over = (0, *range(2, input.dim()))
        spread = input.var(over, correction=0)
        return out, input.mean(over), torch.rsqrt(spread + eps)

    return run


# torch's native_batch_norm without its hidden writes: nn.functional moves the running statistics.
op(
    "_batch_norm_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,"
    " Tensor? running_var, bool training, float eps) -> (Tensor out, Tensor mean, Tensor rstd)",
    infer=_batch_norm_rule,
    cpu=_batch_norm,
    aclnn=call(
        "aclnnBatchNorm", "input", "weight", "bias", "running_mean", "running_var", "training",
        0.0, "eps", "out", "mean", "rstd", when=below_double("input"),
    ),
    lower=_batch_norm_double,
    grad={("input", "weight", "bias"): _batch_norm_grad},
    unsupported={"bool whole complex": "batch_norm"}, samples=lambda: [
        Sample((Arg((4, 3)), Arg((3,)), Arg((3,)), None, None, True, 1e-5)),
        Sample((Arg((2, 3, 2, 2), "float64"), None, None, None, None, True, 1e-3)),
        Sample(
            (
                Arg((2, 3, 4), "float64"),
                Arg((3,), "float64"),
                Arg((3,), "float64"),
                Arg((3,), "float64", grad=False),
                Arg((3,), "float64", 0.5, 2.0, grad=False),
                False,
                1e-5,
            )
        ),
    ],
    oracle=_batch_norm_oracle,
    tolerance="composite",
)  # fmt: skip


def _moving_rule(
    input: Geometry, weight: Geometry | None, bias: Geometry | None, running_mean: Geometry,
    running_var: Geometry, momentum: float, eps: float,
) -> tuple[Geometry, ...]:  # fmt: skip
    return _batch_norm_rule(input, weight, bias, running_mean, running_var, True, eps)


def _moving_grad(
    grad_out: Tensor | None, grad_mean: Tensor | None, grad_rstd: Tensor | None, input: Tensor,
    weight: Tensor | None, eps: float, mean: Tensor, rstd: Tensor, needs: Sequence[bool],
) -> tuple[Any, ...]:  # fmt: skip
    nothing: Any = None
    return _batch_norm_grad(
        grad_out, grad_mean, grad_rstd, input, weight, nothing, nothing, True, eps, mean, rstd,
        needs,
    )  # fmt: skip


# Training's call where the operator moves the running statistics itself, as CANN's PyTorch adapter
# has it: it writes to both.
op(
    "_batch_norm_moving(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean,"
    " Tensor running_var, float momentum, float eps) -> (Tensor out, Tensor mean, Tensor rstd)",
    infer=_moving_rule,
    aclnn=call(
        "aclnnBatchNorm", "input", "weight", "bias", "running_mean", "running_var", True,
        "momentum", "eps", "out", "mean", "rstd",
    ),
    absent={"cpu": "statistics are moved by calls of their own"},
    grad={("input", "weight", "bias"): _moving_grad},
    unsampled="batch_norm is held against torch",
    fixed_shape=True,
)  # fmt: skip
