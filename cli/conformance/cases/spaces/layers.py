"""Owns the space of layers: norms, convolutions, pools, windows, losses and their backward kernels.

Sizes change with the attributes that depend on them: a channel count with its weights, a plane
with its windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any, Final

from mindtorch.ops import Op
from mindtorch.ops.samples import Sample

from ....spec.factors import Factor, factor
from ..inputs import Input
from .space import LAYOUTS, QUICK_CAP, DesignLevels, DesignScope, Space, common, data, indices

_NORM_FILLS: Final = ("normal", "offset", "integer", "nan")
_CONV_FILLS: Final = ("normal", "integer", "nan")
_POOL_FILLS: Final = ("normal", "special", "integer", "nan", "infinite", "ties")
_WEIGHTS: Final = ("both", "none", "weight", "bias")
_YES_NO: Final = ("no", "yes")
_COST: Final = 1 << 21


# --- norms ------------------------------------------------------------------------------------


def _norm_factors(op: Op, scope: DesignScope) -> list[Factor]:
    factors = common(op, scope, _NORM_FILLS)
    # Stride 0 along what is averaged leaves no spread: only rounding errors would be divided.
    factors[2] = factor("layout", *(x for x in LAYOUTS if x not in ("expanded", "middle")))
    factors += [
        factor("row", *scope.sizes), factor("batch", 3, 1, 2, 17, 65), factor("weights", *_WEIGHTS),
        factor("eps", 1e-5, 0.25, 1e-3), factor("channels", 4, 1, 3, 8, 17, 33),
        factor("rank", 2, 3, 4),
    ]  # fmt: skip
    if op.name == "native_group_norm":
        factors.append(factor("group", 1, 2, 4, "all"))
    if op.name == "native_layer_norm":
        factors.append(factor("normalized", 1, 2))
    if op.name == "_batch_norm_functional":
        factors.append(factor("training", "yes", "no"))
    return factors


def _weights(op: Op, shape: tuple[int, ...], selection: DesignLevels) -> tuple[Any, Any]:
    how = selection["weights"]
    plain = DesignLevels({**selection, "values": "normal"})
    weight = data(op, shape, plain, 1, span=(0.5, 1.5), layout="contiguous")
    bias = data(op, shape, plain, 2, layout="contiguous")
    return weight if how in ("both", "weight") else None, bias if how in ("both", "bias") else None


def _norm(op: Op, selection: DesignLevels) -> Sample:
    row, batch, channels = (selection.number(n) for n in ("row", "batch", "channels"))
    eps = float(selection["eps"])
    while batch > 1 and batch * channels * row > QUICK_CAP:
        batch = max(1, batch // 4)
    while channels > 1 and channels * row > QUICK_CAP:
        channels = max(1, channels // 4)
    if op.name == "native_layer_norm":
        return _layer_norm(op, selection, row, batch, channels, eps)
    rank = selection.number("rank")
    if op.name == "native_group_norm":
        group = channels if selection["group"] == "all" else selection.number("group")
        channels = max(1, channels // group) * group
        shape = (batch, channels, *([row] if rank < 4 else [1, row]))
        weight, bias = _weights(op, (channels,), selection)
        sizes = (batch, channels, row, group, eps)
        return Sample((data(op, shape, selection), weight, bias, *sizes))
    shape = (batch, channels, *([row] if rank == 3 else [1, row] if rank == 4 else []))
    shape = (max(row // channels, 1) * batch, channels) if rank == 2 else shape
    return _batch_norm(op, selection, shape, eps)


def _layer_norm(
    op: Op, selection: DesignLevels, row: int, batch: int, channels: int, eps: float
) -> Sample:
    lead = {2: (batch,), 3: (batch, 2), 4: (batch, 1, 2)}[selection.number("rank")]
    shape = (row,) if selection["normalized"] == "1" else (channels, row)
    weight, bias = _weights(op, shape, selection)
    return Sample((data(op, (*lead, *shape), selection), shape, weight, bias, eps))


def _batch_norm(op: Op, selection: DesignLevels, shape: tuple[int, ...], eps: float) -> Sample:
    weight, bias = _weights(op, shape[1:2], selection)
    training = selection.flag("training")
    mean = var = None
    if not training:
        plain = DesignLevels({**selection, "values": "normal"})
        mean = replace(data(op, shape[1:2], plain, 3, layout="contiguous"), grad=False)
        var = replace(data(op, shape[1:2], plain, 4, span=(0.5, 2.0), layout="contiguous"),
                      grad=False)  # fmt: skip
    return Sample((data(op, shape, selection), weight, bias, mean, var, training, eps))


# --- convolutions -----------------------------------------------------------------------------


def _conv_factors(op: Op, scope: DesignScope) -> list[Factor]:
    factors = common(op, scope, _CONV_FILLS)
    factors += [
        factor("space", 2, 1, 3), factor("per_group", 3, 1, 2, 8, 17),
        factor("outputs", 4, 1, 3, 9, 17), factor("batch", 2, 1, 5, 33),
        factor("plane", 7, 5, 9, 16, 17, 33), factor("kernel", 3, 1, 2, 5),
        factor("stride", 1, 2, 3), factor("padding", 0, 1, 2), factor("dilation", 1, 2),
        factor("groups", 1, 2, 4, 9), factor("layout1", *LAYOUTS[:4]),
    ]  # fmt: skip
    if op.name == "convolution":
        factors += [factor("bias", "yes", "no"), factor("transposed", *_YES_NO),
                  factor("extra", 0, 1)]  # fmt: skip
    return factors


def _conv(op: Op, selection: DesignLevels) -> Sample:
    n = selection.number("space")
    stride, padding, dilation, groups = (
        selection.number(x) for x in ("stride", "padding", "dilation", "groups")
    )
    kernel = selection.number("kernel")
    plane = max(min(selection.number("plane"), 9) if n == 3 else selection.number("plane"),
                dilation * (kernel - 1) + 1)  # fmt: skip
    inputs, outputs = selection.number("per_group") * groups, selection.number("outputs") * groups
    sides = [plane + d for d in range(n)]
    while prod(sides) * inputs * outputs * kernel**n > _COST * 4 and inputs * outputs > groups**2:
        inputs, outputs = (
            max(groups, inputs // 2 // groups * groups),
            max(groups, outputs // 2 // groups * groups),
        )
    batch = selection.number("batch")
    while batch > 5 and batch * prod(sides) * inputs * outputs * kernel**n > _COST * 4:
        batch //= 2
    x = data(op, (batch, inputs, *sides), selection)
    steps = ((stride,) * n, (padding,) * n, (dilation,) * n)
    if op.name != "convolution":
        return _weight_grad(op, selection, x, inputs, outputs, steps, kernel, groups)
    flipped = selection.flag("transposed")
    shape = (inputs, outputs // groups) if flipped else (outputs, inputs // groups)
    # NaN times padding is NaN or nothing, as the algorithm has it: weights stay finite.
    finite = (
        DesignLevels({**selection, "values": "normal"})
        if selection["values"] == "nan"
        else selection
    )
    weight = data(op, (*shape, *([kernel] * n)), finite, 1)
    extra = min(selection.number("extra"), max(stride, dilation) - 1) if flipped else 0
    if flipped and any((s - 1) * stride - 2 * padding + dilation * (kernel - 1) < 0 for s in sides):
        steps = (steps[0], (0,) * n, steps[2])
    bias = (
        data(op, (outputs,), selection, 2, layout="contiguous") if selection.flag("bias") else None
    )
    return Sample((x, weight, bias, *steps, flipped, (extra,) * n, groups))


def _weight_grad(
    op: Op,
    selection: DesignLevels,
    x: Input,
    inputs: int,
    outputs: int,
    steps: Any,
    kernel: int,
    groups: int,
) -> Sample:
    n = len(steps[0])
    out = [_windows(s, kernel, steps[0][0], steps[1][0], steps[2][0], False) for s in x.shape[2:]]
    weight = data(
        op, (outputs, inputs // groups, *([kernel] * n)), selection, 2, layout="contiguous"
    )
    finite = (
        DesignLevels({**selection, "values": "normal"})
        if selection["values"] == "nan"
        else selection
    )
    grad = data(op, (x.shape[0], outputs, *out), finite, 1)
    return Sample((grad, x, weight, *steps, groups))


def _windows(size: int, kernel: int, stride: int, padding: int, dilation: int, up: bool) -> int:
    """How many windows fit along one dimension (torch.nn.MaxPool2d document, Shape)."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (span + (stride - 1 if up else 0)) // stride + 1
    return count - 1 if up and (count - 1) * stride >= size + padding else count


# --- pools ------------------------------------------------------------------------------------


def _pool_factors(op: Op, scope: DesignScope) -> list[Factor]:
    # The references of averages are products with matrices, where 0 times NaN is NaN.
    fills = _POOL_FILLS if "max" in op.name else ("normal", "integer")
    fills = (*fills, "nan") if op.name in ("im2col", "col2im") else fills
    factors = common(op, scope, fills)
    factors += [
        factor("channels", 3, 1, 8, 17), factor("batch", 2, 1, 3, "none"),
        factor("plane", 9, 5, 7, 8, 16, 17, 33, 65),
    ]  # fmt: skip
    if "adaptive" in op.name:
        return [*factors, factor("output", 3, 1, 2, 5, 7, "same", "whole")]
    factors += [factor("kernel", 2, 1, 3, 5), factor("stride", 2, 1, 3, "default"),
              factor("padding", 0, 1, 2)]  # fmt: skip
    if op.name in ("im2col", "col2im"):
        return [*factors, factor("dilation", 1, 2)]
    factors.append(factor("ceil_mode", *_YES_NO))
    if "max" in op.name:
        return [*factors, factor("dilation", 1, 2)]
    return [*factors, factor("count_include_pad", "yes", "no"),
            factor("divisor_override", "none", 1, 5)]  # fmt: skip


def _planes(op: Op, selection: DesignLevels, kernel: int = 1) -> tuple[tuple[int, ...], int]:
    n = 3 if "3d" in op.name else 2
    plane = selection.number("plane")
    plane = max(min(plane, 9) if n == 3 else plane, kernel)
    sides = [plane + d for d in range(n)]
    channels = selection.number("channels")
    channels = max(1, min(channels, QUICK_CAP // 4 // prod(sides)))
    lead = () if selection["batch"] == "none" else (selection.number("batch"),)
    return (*lead, channels, *sides), n


def _pool(op: Op, selection: DesignLevels) -> Sample:
    if "adaptive" in op.name:
        return _adaptive(op, selection)
    kernel, dilation = selection.number("kernel"), selection.number("dilation", 1)
    shape, n = _planes(op, selection, dilation * (kernel - 1) + 1)
    stride = kernel if selection["stride"] == "default" else selection.number("stride")
    padding = min(selection.number("padding"), kernel // 2)
    up = selection.flag("ceil_mode")
    tuples = [(x,) * n for x in (kernel, stride, padding, dilation)]
    if op.name in ("im2col", "col2im"):
        return _columns(op, selection, shape, tuples)
    explicit = () if selection["stride"] == "default" else tuples[1]
    if "max" in op.name:
        return Sample((data(op, shape, selection), tuples[0], explicit, tuples[2], tuples[3], up))
    override = (
        None if selection["divisor_override"] == "none" else selection.number("divisor_override")
    )
    rest = (tuples[0], explicit, tuples[2], up, selection.flag("count_include_pad"), override)
    x = data(op, shape, selection)
    if not op.name.endswith("backward"):
        return Sample((x, *rest))
    out = [_windows(s, kernel, stride, padding, 1, up) for s in shape[-n:]]
    grad = data(op, (*shape[:-n], *out), selection, 1)
    return Sample((grad, x, *rest))


def _adaptive(op: Op, selection: DesignLevels) -> Sample:
    shape, n = _planes(op, selection)
    how = selection["output"]
    target = [s if how == "same" else 1 if how == "whole" else int(how) + d
              for d, s in enumerate(shape[-n:])]  # fmt: skip
    x = data(op, shape, selection)
    if op.name.endswith("backward"):
        return Sample((data(op, (*shape[:-n], *target), selection, 1), x))
    return Sample((x, tuple(target)))


def _columns(op: Op, selection: DesignLevels, shape: tuple[int, ...], tuples: list[Any]) -> Sample:
    kernel, stride, padding, dilation = tuples
    if op.name == "im2col":
        return Sample((data(op, shape, selection), kernel, dilation, padding, stride))
    out = [_windows(s, kernel[0], stride[0], padding[0], dilation[0], False) for s in shape[-2:]]
    columns = (*shape[:-3], shape[-3] * prod(kernel), prod(out))
    x = data(op, columns, selection)
    return Sample((x, shape[-2:], kernel, dilation, padding, stride))


# --- losses -----------------------------------------------------------------------------------


def _loss_factors(op: Op, scope: DesignScope) -> list[Factor]:
    factors = common(op, scope, ("normal", "mixed", "integer", "nan"))
    factors.append(factor("reduction", 0, 1, 2))
    if "nll" in op.name:
        factors += [
            factor("classes", 5, 1, 2, 17, 129, 1025), factor("batch", *scope.upto(4097)),
            factor("weights", "yes", "no"), factor("ignore", -100, 0, 2),
            factor("pattern", "random", "edges", "repeated"),
        ]  # fmt: skip
        return factors
    factors += [factor("row", *scope.sizes), factor("rank", 2, 1, 3), factor("layout1", *LAYOUTS)]
    if op.name in ("smooth_l1_loss", "huber_loss"):
        factors.append(factor("beta", 1.0, 0.25, 2.5, *((0,) if op.name[0] == "s" else ())))
    if op.name == "binary_cross_entropy":
        factors.append(factor("weights", "no", "yes"))
    return factors


def _loss(op: Op, selection: DesignLevels) -> Sample:
    reduction = selection.number("reduction")
    if "nll" in op.name:
        return _nll(op, selection, reduction)
    row = selection.number("row")
    shape = {1: (row,), 2: (2 if row > 1025 else 3, row), 3: (2, 1, row)}[selection.number("rank")]
    if op.name == "binary_cross_entropy":
        # Certainties have logarithms that are held at -100.
        selection = DesignLevels(
            {**selection, "values": "unit" if selection["values"] == "integer" else "normal"}
        )
        weight = data(op, shape, selection, 2, span=(0.5, 2)) if selection.flag("weights") else None
        pair = (data(op, shape, selection, span=(0.05, 0.95)),
                replace(data(op, shape, selection, 1, span=(0, 1)), grad=False))  # fmt: skip
        return Sample((*pair, weight, reduction))
    pair = (data(op, shape, selection), data(op, shape, selection, 1))
    rest = (float(selection["beta"]),) if "beta" in selection else ()
    return Sample((*pair, reduction, *rest))


def _nll(op: Op, selection: DesignLevels, reduction: int) -> Sample:
    classes, batch = selection.number("classes"), selection.number("batch")
    classes = max(1, min(classes, QUICK_CAP // batch))
    x = data(op, (batch, classes), selection)
    target = replace(indices((batch,), classes, selection), dtype="int64")
    plain = DesignLevels({**selection, "values": "normal"})
    weight = data(op, (classes,), plain, 1, span=(0.5, 1.5), layout="contiguous")
    needed = "weighted" in op.name or selection.flag("weights")
    rest = (weight if needed else None, reduction, selection.number("ignore"))
    if "backward" not in op.name:
        return Sample((x, target, *rest))
    grad = data(op, () if reduction else (batch,), plain, 2, layout="contiguous")
    total = data(op, (), plain, 3, span=(1, 2), layout="contiguous")
    return Sample((grad, x, target, *rest, total))


_BUILDERS: Final[dict[str, tuple[Callable[[Op, DesignScope], list[Factor]], Callable[[Op, DesignLevels], Sample]]]] = {  # noqa: E501
    **dict.fromkeys(("native_layer_norm", "native_group_norm", "_batch_norm_functional"),
                    (_norm_factors, _norm)),
    **dict.fromkeys(("convolution", "_convolution_weight_grad"), (_conv_factors, _conv)),
    **dict.fromkeys((
        "max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d",
        "avg_pool2d_backward", "avg_pool3d_backward", "_adaptive_avg_pool2d",
        "_adaptive_avg_pool3d",
        "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward", "adaptive_max_pool2d",
        "adaptive_max_pool3d", "im2col", "col2im"), (_pool_factors, _pool)),
    **dict.fromkeys((
        "nll_loss_forward", "_nll_loss_weighted", "nll_loss_backward",
        "_nll_loss_backward_weighted", "mse_loss", "smooth_l1_loss", "huber_loss",
        "binary_cross_entropy"), (_loss_factors, _loss)),
}  # fmt: skip
LAYERED: Final = frozenset(_BUILDERS)
LAYERS: Final = Space(
    lambda op, scope: _BUILDERS[op.name][0](op, scope),
    lambda op, selection: _BUILDERS[op.name][1](op, selection),
)
