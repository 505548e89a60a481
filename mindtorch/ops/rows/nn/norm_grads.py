"""Rows of the gradients of layer, group and batch normalization: one call each.

They take the statistics that the forward call kept, so they are for dtypes that keep them whole
(`WHOLE`); halves are written from the input in float32, as kernels compute.
"""

from __future__ import annotations

from itertools import product
from math import prod
from types import ModuleType

from ...fields import AclnnCall
from ...rules import as_images
from ...words import *

WHOLE = (dt.float32, dt.float64)
_NAMES = ("float32", "float64")
Mask = tuple[bool, ...]


def mean_of(t: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The mean over `dims`, which stay with size 1."""
    count = prod(t.shape[d] for d in dims)
    return aten.sum(t, dims, True) * (1.0 / max(count, 1))


def wide(t: Tensor) -> Tensor:
    """Half tensors in float32, as the kernels compute."""
    half = t.dtype in (dt.float16, dt.bfloat16)
    return t.to(dt.float32) if half else t


def standardized(x: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    """`x` with mean 0 and spread 1 over `dims`, and the reciprocal of what its spread was."""
    centered = x - mean_of(x, dims)
    rstd = aten.rsqrt(mean_of(centered * centered, dims) + eps)
    return centered * rstd, rstd


def back_through(
    g: Tensor,
    normal: Tensor,
    rstd: Tensor,
    dims: tuple[int, ...],
    grad_mean: Tensor | None = None,
    grad_rstd: Tensor | None = None,
) -> Tensor:
    """Gradient by the input, from those of the standardized values and of the statistics."""
    spread = normal * mean_of(g * normal, dims)
    gradient = (g - mean_of(g, dims) - spread) * rstd
    share = 1.0 / max(prod(normal.shape[d] for d in dims), 1)
    if grad_mean is not None:
        gradient = gradient + aten.reshape(grad_mean, rstd.shape) * share
    if grad_rstd is not None:
        slope = rstd * rstd * normal * -share
        gradient = gradient + slope * aten.reshape(grad_rstd, rstd.shape)
    return gradient


def or_zeros(grad: Tensor | None, like: Tensor) -> Tensor:
    """The gradient of what looks like `like`, in the dtype that kernels compute in."""
    return wide(
        aten.zeros(like.shape, dtype=like.dtype, device=like.device) if grad is None else grad
    )


class Form:
    """How one normalization looks at an image.

    `rows` is the shape in which `dims` are what a statistic covers, `stat` that of a statistic
    beside it; `over` are the dims of the image over which a weight's gradient is summed, and
    `spread` the shape of a weight beside the image.
    """

    def __init__(
        self, rows: Sequence[int], dims: tuple[int, ...], over: tuple[int, ...],
        spread: Sequence[int],
    ):  # fmt: skip
        self.rows, self.dims, self.over, self.spread = tuple(rows), dims, over, tuple(spread)
        self.stat = tuple(1 if d in dims else size for d, size in enumerate(self.rows))

    @classmethod
    def layer(cls, shape: Sequence[int], normalized: Sequence[int]) -> Form:
        """Of layer norm: the dims at the end."""
        lead = len(shape) - len(normalized)
        dims = tuple(range(lead, len(shape)))
        return cls(shape, dims, tuple(range(lead)), normalized)

    @classmethod
    def groups(cls, shape: Sequence[int], n: int, group: int) -> Form:
        """Of group norm: groups of channels and all their places."""
        rows = (n, group, shape[1] // group * prod(shape[2:]))
        return cls(rows, (2,), (0, *range(2, len(shape))), (1, -1, *[1] * (len(shape) - 2)))

    @classmethod
    def batch(cls, shape: Sequence[int]) -> Form:
        """Of batch norm: a channel in all images."""
        over = (0, *range(2, len(shape)))
        return cls(shape, over, over, (1, -1, *[1] * (len(shape) - 2)))

    def numbers(
        self, grad: Array, x: Array, weight: Array | None, mean: Array, rstd: Array, *,
        constant: bool = False,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """The three gradients; `constant`: the statistics do not come from the input."""
        rows = x.reshape(self.rows)
        rstd = rstd.reshape(self.stat)
        normal = (rows - mean.reshape(self.stat)) * rstd
        g = grad if weight is None else grad * weight.reshape(self.spread)
        g = g.reshape(self.rows)
        if constant:
            flow = g * rstd
        else:
            slope = (g * normal).mean(axis=self.dims, keepdims=True)
            flow = (g - g.mean(axis=self.dims, keepdims=True) - normal * slope) * rstd
        both = grad * normal.reshape(x.shape)
        return flow.reshape(x.shape), both.sum(axis=self.over), grad.sum(axis=self.over)

    def tensors(
        self, grad: Tensor, x: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor,
        mask: Mask, *, constant: bool = False,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        """`numbers` by calls, for devices without the kernel; those that are masked are empty."""
        rows, rstd = aten.reshape(x, self.rows), aten.reshape(rstd, self.stat)
        normal = (rows - aten.reshape(mean, self.stat)) * rstd
        grads: list[Any] = [aten.zeros((0,), dtype=x.dtype, device=x.device) for _ in range(3)]
        if mask[0]:
            g = aten.reshape(self.scaled(grad, weight), self.rows)
            flow = g * rstd if constant else back_through(g, normal, rstd, self.dims)
            grads[0] = aten.reshape(flow, x.shape)
        if mask[1]:
            grads[1] = self.summed(grad * aten.reshape(normal, x.shape))
        if mask[2]:
            grads[2] = self.summed(grad)
        return grads[0], grads[1], grads[2]

    def scaled(self, t: Tensor, weight: Tensor | None) -> Tensor:
        """`t` times its weights."""
        return t if weight is None else t * aten.reshape(weight, self.spread)

    def summed(self, t: Tensor) -> Tensor:
        """`t` summed to the shape of a weight."""
        return aten.sum(t, self.over) if self.over else t

    def again(
        self, flows: Sequence[Tensor | None], grad: Tensor, x: Tensor, weight: Tensor | None,
        mean: Tensor, rstd: Tensor,
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        """Gradients of `numbers` by (grad, x, weight, mean, rstd), from `flows` that reach its
        results. Here the statistics are arguments of their own; what they owe to the input comes
        by the gradient of the forward call, which gave them."""
        dims, (by_input, by_weight, by_bias) = self.dims, flows
        to_grad: list[Tensor] = []
        to_normal: list[Tensor] = []
        to_weight = to_rstd = None
        root = aten.reshape(rstd, self.stat)
        centered = aten.reshape(x, self.rows) - aten.reshape(mean, self.stat)
        normal = centered * root
        if by_input is not None:
            g = aten.reshape(self.scaled(grad, weight), self.rows)
            flow = aten.reshape(by_input, self.rows)
            slope, projection = mean_of(g * normal, dims), mean_of(flow * normal, dims)
            to_rstd = aten.sum(flow * (g - mean_of(g, dims) - normal * slope), dims, True)
            to_normal.append((flow * slope + g * projection) * -root)
            back = aten.reshape((flow - mean_of(flow, dims) - normal * projection) * root, x.shape)
            to_grad.append(self.scaled(back, weight))
            if weight is not None:
                to_weight = aten.reshape(self.summed(grad * back), weight.shape)
        if by_weight is not None:
            spread = aten.reshape(by_weight, self.spread)
            to_grad.append(aten.reshape(normal, x.shape) * spread)
            to_normal.append(aten.reshape(grad * spread, self.rows))
        if by_bias is not None:
            to_grad.append(aten.expand(aten.reshape(by_bias, self.spread), x.shape))
        by_normal, by_x, by_mean = _total(to_normal), None, None
        if by_normal is not None:
            by_x = by_normal * root
            by_mean = aten.reshape(-aten.sum(by_x, dims, True), mean.shape)
            by_x = aten.reshape(by_x, x.shape)
            residual = aten.sum(by_normal * centered, dims, True)
            to_rstd = residual if to_rstd is None else to_rstd + residual
        by_rstd = None if to_rstd is None else aten.reshape(to_rstd, rstd.shape)
        return _total(to_grad), by_x, to_weight, by_mean, by_rstd


def _total(parts: Sequence[Tensor]) -> Tensor | None:
    return sum(parts[1:], parts[0]) if parts else None


def _empty_or(mask: Mask, *geometries: Geometry) -> tuple[Geometry, ...]:
    return tuple(g if need else g.fresh((0,)) for need, g in zip(mask, geometries, strict=True))


def _masked_grads(mask: Mask, grads: Sequence[Array]) -> tuple[Array, ...]:
    return tuple(g if need else np.zeros(0, g.dtype) for need, g in zip(mask, grads, strict=True))


def _masked_flows(mask: Mask, *flows: Tensor | None) -> tuple[Tensor | None, ...]:
    """The gradients by the results, None by those that are empty."""
    return tuple(flow if need else None for need, flow in zip(mask, flows, strict=True))


_RESULTS = ("grad_input", "grad_weight", "grad_bias")


def masked_calls(
    name: str, results: Sequence[str], *args: Any, applies: Callable[[dict[str, Any]], bool]
) -> tuple[AclnnCall, ...]:
    """One call for each mask of results: those that are not wanted are null."""

    def one(mask: Mask) -> AclnnCall:
        outs = [r if need else None for r, need in zip(results, mask, strict=True)]

        def fits(a: dict[str, Any]) -> bool:
            return tuple(a["output_mask"]) == mask and applies(a)

        return call(name, *args, "output_mask", *outs, when=fits)

    masks = product((True, False), repeat=len(results))
    return tuple(one(mask) for mask in masks if any(mask))


def _oracle(name: str, place: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
    """The values of torch's row, with the gradients of its formula: torch's own take the
    statistics as functions of the input. `place` gives (form, grad, x, weight, mean, rstd, whether
    the statistics are constant) of its arguments."""

    def of(torch: ModuleType) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            *rest, mask = args
            native = getattr(torch.ops.aten, name)(*rest, list(mask))
            formula = _formula(*place(*rest))
            empty = rest[1].new_zeros(0)
            return tuple(
                empty if n is None else f + (n - f).detach()
                for n, f in zip(native, formula, strict=True)
            )

        return run

    return of


def _formula(
    form: Form, grad: Tensor, x: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor,
    constant: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """`Form.numbers` in torch."""
    rstd = rstd.reshape(form.stat)
    normal = (x.reshape(form.rows) - mean.reshape(form.stat)) * rstd
    g = (grad if weight is None else grad * weight.reshape(form.spread)).reshape(form.rows)
    flow = g * rstd
    if not constant:
        slope = (g * normal).mean(form.dims, True)
        flow = (g - g.mean(form.dims, True) - normal * slope) * rstd
    both = grad * normal.reshape(x.shape)
    sums = (t.sum(form.over) if form.over else t for t in (both, grad))
    return flow.reshape(x.shape), *sums


def _single(a: dict[str, Any]) -> bool:
    return a["input"].dtype is dt.float32 and a["input"].numel > 0


def _whole_statistics(a: dict[str, Any]) -> bool:
    return a["mean"].dtype is dt.float32 and a["input"].numel > 0


def _weighted(a: dict[str, Any]) -> bool:
    return _single(a) and a["weight"] is not None  # gamma is no optional argument


def _stats(x: Arg, form: Form, shape: Sequence[int]) -> tuple[Arg, Arg]:
    """The statistics of a sample's input: with others its gradients would mean nothing."""
    rows = x.array().astype(np.float64).reshape(form.rows)
    mean = rows.mean(axis=form.dims).reshape(shape)
    rstd = 1 / np.sqrt(rows.var(axis=form.dims).reshape(shape) + 1e-5)
    first, second = (Arg(tuple(shape), x.dtype, values=v.astype(x.dtype)) for v in (mean, rstd))
    return first, second


_ALL = (True, True, True)
_RETURNS = " -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)"


def _layer_lower(
    grad_out: Tensor, input: Tensor, shape: tuple[int, ...], mean: Tensor, rstd: Tensor,
    weight: Tensor | None, bias: Tensor | None, mask: Mask,
) -> tuple[Any, ...]:  # fmt: skip
    grad_out, x = wide(grad_out), wide(input)
    grads = Form.layer(x.shape, shape).tensors(grad_out, x, weight, mean, rstd, mask)
    return tuple(g.to(input.dtype) for g in grads)


def _layer_again(
    grad_grad_input: Tensor | None, grad_grad_weight: Tensor | None,
    grad_grad_bias: Tensor | None, grad_out: Tensor, input: Tensor,
    normalized_shape: tuple[int, ...], mean: Tensor, rstd: Tensor, weight: Tensor | None,
    output_mask: Mask,
) -> tuple[Any, ...]:  # fmt: skip
    form = Form.layer(input.shape, normalized_shape)
    flows = _masked_flows(output_mask, grad_grad_input, grad_grad_weight, grad_grad_bias)
    return form.again(flows, grad_out, input, weight, mean, rstd)


def _layer_sample(
    shape: tuple[int, ...], over: int, weighted: bool, mask: Mask, dtype: str = "float32"
) -> Sample:
    x, inner = Arg(shape, dtype), shape[-over:]
    rows = (*shape[:-over], *[1] * over)
    weights = (Arg(inner, dtype), Arg(inner, dtype, grad=False)) if weighted else (None, None)
    stats = _stats(x, Form.layer(shape, inner), rows)
    args = (Arg(shape, dtype, -1.0, 1.5), x, inner, *stats, *weights, mask)
    return Sample(args, dtypes=_NAMES)


def _layer_samples() -> list[Sample]:
    return [
        _layer_sample((2, 3, 4), 1, True, _ALL),
        _layer_sample((2, 3, 4), 2, True, _ALL, "float64"),
        _layer_sample((2, 5), 1, False, (True, False, False)),
        _layer_sample((3, 4), 1, True, (False, True, True)),
    ]


# torch's native_layer_norm_backward, whose results that are not wanted are None.
op(
    "_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean,"
    " Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask)" + _RETURNS,
    infer=lambda grad_out, input, shape, mean, rstd, weight, bias, mask: _empty_or(
        mask, input.fresh(), input.fresh(shape), input.fresh(shape)
    ),
    cpu=lambda grad_out, x, shape, mean, rstd, weight, bias, mask: _masked_grads(
        mask, Form.layer(x.shape, shape).numbers(grad_out, x, weight, mean, rstd)
    ),
    lower=_layer_lower,
    aclnn=masked_calls(
        "aclnnLayerNormBackward", _RESULTS, "grad_out", "input", "normalized_shape", "mean", "rstd",
        "weight", "bias", applies=_whole_statistics,
    ),
    grad={("grad_out", "input", "weight", "mean", "rstd"): _layer_again},
    samples=_layer_samples,
    oracle=_oracle(
        "native_layer_norm_backward",
        lambda grad, x, shape, mean, rstd, weight, bias: (
            Form.layer(x.shape, shape), grad, x, weight, mean, rstd, False
        ),
    ),
    tolerance="composite",
    surface="none",
    fixed_shape=True,
)  # fmt: skip


def _group_again(
    grad_grad_input: Tensor | None, grad_grad_weight: Tensor | None,
    grad_grad_bias: Tensor | None, grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor,
    weight: Tensor | None, N: int, group: int, output_mask: Mask,  # noqa: N803
) -> tuple[Any, ...]:  # fmt: skip
    form = Form.groups(input.shape, N, group)
    flows = _masked_flows(output_mask, grad_grad_input, grad_grad_weight, grad_grad_bias)
    return form.again(flows, grad_out, input, weight, mean, rstd)


def _group_sample(weighted: bool, mask: Mask, dtype: str = "float32") -> Sample:
    x = Arg((2, 4, 3), dtype)
    stats = _stats(x, Form.groups(x.shape, 2, 2), (2, 2))
    weight = Arg((4,), dtype) if weighted else None
    args = (Arg((2, 4, 3), dtype, -1.0, 1.5), x, *stats, weight, 2, 4, 3, 2, mask)
    return Sample(args, dtypes=_NAMES)


# torch's native_group_norm_backward, whose results that are not wanted are None.
op(
    "_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight,"
    " int N, int C, int HxW, int group, bool[3] output_mask)" + _RETURNS,
    infer=lambda grad_out, input, mean, rstd, weight, n, c, area, group, mask: _empty_or(
        mask, as_images(input.shape, input), input.fresh((c,)), input.fresh((c,))
    ),
    cpu=lambda grad_out, x, mean, rstd, weight, n, c, area, group, mask: _masked_grads(
        mask, Form.groups(x.shape, n, group).numbers(grad_out, x, weight, mean, rstd)
    ),
    lower=lambda grad_out, x, mean, rstd, weight, n, c, area, group, mask: (
        Form.groups(x.shape, n, group).tensors(grad_out, x, weight, mean, rstd, mask)
    ),
    aclnn=masked_calls(
        "aclnnGroupNormBackward", _RESULTS, "grad_out", "input", "mean", "rstd", "weight",
        "N", "C", "HxW", "group", applies=_weighted,
    ),
    grad={("grad_out", "input", "weight", "mean", "rstd"): _group_again},
    samples=lambda: [
        _group_sample(True, _ALL),
        _group_sample(True, (True, False, False), "float64"),
        _group_sample(False, (True, False, False)),
        _group_sample(True, (False, True, True)),
    ],
    oracle=_oracle(
        "native_group_norm_backward",
        lambda grad, x, mean, rstd, weight, n, c, area, group: (
            Form.groups(x.shape, n, group), grad, x, weight, mean, rstd, False
        ),
    ),
    tolerance="composite",
    surface="none",
    fixed_shape=True,
)  # fmt: skip


def _batch_stats(
    mean: Any, rstd: Any, moving: Any, var: Any, training: bool, eps: float
) -> tuple[Any, Any]:
    """What the values were standardized by, and the reciprocal of its spread."""
    if training:
        return mean, rstd
    if isinstance(var, Tensor):
        return moving, aten.rsqrt(var + eps)
    return moving, 1 / np.sqrt(var + var.dtype.type(eps))


def _batch_numbers(
    grad_out: Array, x: Array, weight: Array | None, moving: Array | None, var: Array | None,
    mean: Array, rstd: Array, training: bool, eps: float, mask: Mask,
) -> tuple[Array, ...]:  # fmt: skip
    stats = _batch_stats(mean, rstd, moving, var, training, eps)
    form = Form.batch(x.shape)
    return _masked_grads(mask, form.numbers(grad_out, x, weight, *stats, constant=not training))


def _batch_tensors(
    grad_out: Tensor, x: Tensor, weight: Tensor | None, moving: Tensor | None, var: Tensor | None,
    mean: Tensor, rstd: Tensor, training: bool, eps: float, mask: Mask,
) -> tuple[Any, ...]:  # fmt: skip
    stats = _batch_stats(mean, rstd, moving, var, training, eps)
    form = Form.batch(x.shape)
    return form.tensors(grad_out, x, weight, *stats, mask, constant=not training)


def _batch_again(
    grad_grad_input: Tensor | None, grad_grad_weight: Tensor | None,
    grad_grad_bias: Tensor | None, grad_out: Tensor, input: Tensor, weight: Tensor | None,
    running_mean: Tensor | None, running_var: Tensor | None, mean: Tensor, rstd: Tensor,
    training: bool, eps: float, output_mask: Mask,
) -> tuple[Any, ...]:  # fmt: skip
    form = Form.batch(input.shape)
    flows = _masked_flows(output_mask, grad_grad_input, grad_grad_weight, grad_grad_bias)
    if training:
        return form.again(flows, grad_out, input, weight, mean, rstd)
    moving, root = _batch_stats(None, None, running_mean, running_var, False, eps)
    root = aten.reshape(root, form.spread)
    normal = (input - aten.reshape(moving, form.spread)) * root
    grads: list[Any] = [None] * 5
    for at, (flow, part) in enumerate(zip(flows, (root, normal, None), strict=True)):
        if flow is None:
            continue
        if at:
            flow = aten.expand(aten.reshape(flow, form.spread), input.shape)
        scaled_flow = flow if part is None else flow * part
        if at == 0:
            if weight is not None:
                grads[2] = form.summed(grad_out * scaled_flow)
            scaled_flow = form.scaled(scaled_flow, weight)
        if at == 1:
            grads[1] = grad_out * flow * root
        grads[0] = scaled_flow if grads[0] is None else grads[0] + scaled_flow
    return tuple(grads)


def _batch_sample(weighted: bool, training: bool, mask: Mask, dtype: str = "float32") -> Sample:
    x = Arg((4, 3, 2), dtype)
    stats = _stats(x, Form.batch(x.shape), (3,))
    weight = Arg((3,), dtype) if weighted else None
    moved = (Arg((3,), dtype, grad=False), Arg((3,), dtype, 0.5, 2.0, grad=False))
    return Sample(
        (Arg((4, 3, 2), dtype, -1.0, 1.5), x, weight, *moved, *stats, training, 1e-5, mask),
        dtypes=_NAMES,
    )


# torch's native_batch_norm_backward, whose results that are not wanted are None.
op(
    "_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean,"
    " Tensor? running_var, Tensor mean, Tensor rstd, bool training, float eps,"
    " bool[3] output_mask)" + _RETURNS,
    infer=lambda grad_out, input, weight, moving, var, mean, rstd, training, eps, mask: _empty_or(
        mask, as_images(input.shape, input), *[input.fresh((input.shape[1],))] * 2
    ),
    cpu=_batch_numbers,
    lower=_batch_tensors,
    aclnn=masked_calls(
        "aclnnBatchNormBackward", _RESULTS, "grad_out", "input", "weight", "running_mean",
        "running_var", "mean", "rstd", "training", "eps", applies=_single,
    ),
    grad={("grad_out", "input", "weight", "mean", "rstd"): _batch_again},
    samples=lambda: [
        _batch_sample(True, True, _ALL),
        _batch_sample(True, False, _ALL),
        _batch_sample(True, False, _ALL, "float64"),
        _batch_sample(False, True, (True, False, False), "float64"),
        _batch_sample(True, True, (False, True, True)),
    ],
    oracle=_oracle(
        "native_batch_norm_backward",
        lambda grad, x, weight, moving, var, mean, rstd, training, eps: (
            Form.batch(x.shape), grad, x, weight,
            *((mean, rstd) if training else (moving, (var + eps).rsqrt())), not training
        ),
    ),
    tolerance="composite",
    surface="none",
    fixed_shape=True,
)  # fmt: skip
