"""Owns the names of nodes as torch prints them: torch counts overloads and has other operators.

`print(y)` shows the name of the last node, so programs see these. A row's node is named after the
row, or by a rule here; the last node of a composite that is one operator in torch bears its label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor.dtype import int64
from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor
from .views import CopySlices

Rule = Callable[[Sequence[Any]], str]


def _tensor_at(place: int, base: str, tensor: int, number: int) -> Rule:
    """A name that ends in one of two numbers: by whether an argument is a tensor."""
    return lambda args: f"{base}Backward{tensor if isinstance(args[place], Geometry) else number}"


def _sides(base: str) -> Rule:
    """A name that ends in 1 or 2 where the first or the second argument is a number."""

    def name(args: Sequence[Any]) -> str:
        numbers = [not isinstance(a, Geometry) for a in args[:2]]
        return f"{base}Backward{1 if numbers[0] else 2 * numbers[1]}"

    return name


def _with_dim(base: str) -> Rule:
    return lambda args: f"{base}Backward{0 if args[1] is None else 1}"


def _matmul(args: Sequence[Any]) -> str:
    kinds = {(2, 2): "MmBackward0", (1, 1): "DotBackward0", (2, 1): "MvBackward0",
             (1, 2): "SqueezeBackward4"}  # fmt: skip
    return kinds.get((args[0].ndim, args[1].ndim), "UnsafeViewBackward0")


def _linear(args: Sequence[Any]) -> str:
    biased = args[2] is not None
    if args[0].ndim == 2:
        return "AddmmBackward0" if biased else "MmBackward0"
    if biased:  # folded where the input's rows lie one after the other
        return "ViewBackward0" if args[0].contiguous else "AddBackward0"
    return "SqueezeBackward4" if args[0].ndim == 1 else "UnsafeViewBackward0"


def _squeeze(args: Sequence[Any]) -> str:
    if args[1] is None:
        return "SqueezeBackward0"
    return f"SqueezeBackward{1 if len(args[1]) == 1 else 2}"


def _interpolate(args: Sequence[Any]) -> str:
    exact = {"nearest": "", "nearest-exact": "Exact"}.get(args[3])
    return "" if exact is None else f"UpsampleNearest{exact}{args[0].ndim - 2}DBackward0"


# By the row's name: a name, or a rule that reads the arguments as the plan knows them.
RULES: dict[str, str | Rule] = {
    "_batch_norm_backward": "NativeBatchNormBackwardBackward0",
    "_batch_norm_functional": "NativeBatchNormBackward0",
    "_batch_norm_moving": "NativeBatchNormBackward0",
    "_group_norm_backward": "ViewBackward0",
    "_gru_gates": "AddBackward0",
    "_gru_layer": "StackBackward0",
    "_layer_norm_backward": "NativeLayerNormBackwardBackward0",
    "_linear_backward": "MmBackward0",
    "_linalg_cholesky": "LinalgCholeskyExBackward0",
    "_linalg_solve": "LinalgSolveExBackward0",
    "_lstm_cell": "MulBackward0",
    "_lstm_gates": "MulBackward0",
    "_lstm_layer": "StackBackward0",
    "_repeat_each": "ViewBackward0",
    "_reshape_copy": "UnsafeViewBackward0",
    "_unfold_grad": "UnfoldBackwardBackward0",
    "clamp_max.Tensor": "ClampMaxBackward1",
    "clamp_min.Tensor": "ClampMinBackward1",
    "copy": "torch::autograd::CopyBackwards",
    "div.mode": "DivBackward2",
    "round": lambda args: f"RoundBackward{1 if args[1] else 0}",
    "sort": lambda args: f"SortBackward{0 if args[3] is None else 1}",
    "median.dim": "MedianBackward1",
    "nanmedian": "NanmedianBackward0",
    "nanmedian.dim": "NanmedianBackward1",
    "clamp": lambda args: (
        f"ClampBackward{0 if any(isinstance(a, Geometry) for a in args[1:]) else 1}"
    ),
    "fill": _tensor_at(1, "Fill", 3, 2),  # of `fill_`, which is called more than `fill`
    "fmod": _tensor_at(1, "Fmod", 1, 0),
    "index_fill": _tensor_at(3, "IndexFill", 1, 0),
    "lerp": _tensor_at(2, "Lerp", 1, 0),
    "linalg_cholesky": "LinalgCholeskyExBackward0",
    "linalg_inv": "LinalgInvExBackward0",
    "linalg_solve": "LinalgSolveExBackward0",
    "linear": _linear,
    "masked_fill": _tensor_at(2, "MaskedFill", 1, 0),
    "matmul": _matmul,
    "max": "MaxBackward1",
    "mean": _with_dim("Mean"),
    "min": "MinBackward1",
    "nll_loss_forward": lambda args: f"NllLoss{'2D' if args[0].ndim > 2 else ''}Backward0",
    "pow": _tensor_at(1, "Pow", 1, 0),
    "pow.Scalar": "PowBackward2",
    "prod.dim": "ProdBackward1",
    "remainder": _tensor_at(1, "Remainder", 1, 0),
    "scatter.value": "ScatterBackward1",
    "special_i0": "I0Backward0",
    "special_ndtr": "MulBackward1",
    "special_xlog1py": _sides("SpecialXlog1Py"),
    "special_zeta": _sides("SpecialZeta"),
    "squeeze": _squeeze,
    "sum": _with_dim("Sum"),
    "xlogy": _sides("Xlogy"),
}

_COPIES = {name: "".join(w.title() for w in name.split("_")) for name in (
    "alias", "as_strided", "diagonal", "expand", "permute", "select", "slice", "split",
    "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
)}  # fmt: skip

# Composites that are one operator in torch, and the name of that one's node.
LABELS: dict[str, str | Rule] = {
    **{f"{name}_copy": f"{title}Backward0_copy" for name, title in _COPIES.items()},
    "_safe_softmax": "SafeSoftmaxBackward0",
    "_upsample_bicubic2d_aa": "UpsampleBicubic2DAaBackward0",
    "_upsample_bilinear2d_aa": "UpsampleBilinear2DAaBackward0",
    "addbmm": "AddbmmBackward0",
    "as_strided_scatter": "AsStridedScatterBackward0",
    "cholesky": "CholeskyBackward0",
    "clamp.Tensor": "ClampBackward0",
    "deg2rad": "Deg2RadBackward0",
    "diag_embed": "DiagEmbedBackward0",
    "diagonal_scatter": "DiagonalScatterBackward0",
    "fractional_max_pool2d": "FractionalMaxPool2DBackward0",
    "fractional_max_pool2d_with_indices": "FractionalMaxPool2DBackward0",
    "fractional_max_pool3d": "FractionalMaxPool3DBackward0",
    "fractional_max_pool3d_with_indices": "FractionalMaxPool3DBackward0",
    "interpolate": _interpolate,
    "index_fill.int_Tensor": "IndexFillBackward1",
    "kron": "UnsafeViewBackward0",
    "ldexp": "LdexpBackward0",
    "linalg_cholesky_ex": "LinalgCholeskyExBackward0",
    "linalg_lstsq": "LinalgLstsqBackward0",
    "linalg_lu": "LinalgLuBackward0",
    "lu_solve": "LinalgLuSolveBackward0",
    "lu_unpack": "LuUnpackBackward0",
    "max_unpool2d": "MaxUnpool2DBackward0",
    "max_unpool3d": "MaxUnpool3DBackward0",
    "multilabel_margin_loss": "MultilabelMarginLossBackward0",
    "mvlgamma": "MvlgammaBackward0",
    "narrow_copy": "NarrowCopyBackward0",
    "ormqr": "OrmqrBackward0",
    "rad2deg": "Rad2DegBackward0",
    "select_scatter": "SelectScatterBackward0",
    "slice_scatter": "SliceScatterBackward0",
    "std_mean": "StdMeanBackward0",
    "std_mean.dim": "StdMeanBackward0",
    "std_mean.unbiased": "StdMeanBackward0",
    "unsafe_chunk": "UnsafeSplitBackward0",
    "unsafe_split": "UnsafeSplitBackward0",
    "unsafe_split_with_sizes": "UnsafeSplitWithSizesBackward0",
    "var_mean": "VarMeanBackward0",
    "var_mean.dim": "VarMeanBackward0",
    "var_mean.unbiased": "VarMeanBackward0",
    "_pdist_forward": "PdistBackward0",
    "addmv": "AddmvBackward0",
    "addr": "AddrBackward0",
    "affine_grid": "AffineGridGeneratorBackward0",
    "affine_grid_generator": "AffineGridGeneratorBackward0",
    "angle": "AngleBackward0",
    "block_diag": "BlockDiagBackward0",
    "cdist": "CdistBackward0",
    "celu": "CeluBackward0",
    "channel_shuffle": "ChannelShuffleBackward0",
    "clamp_min": "ClampMinBackward0",
    "conj": "ConjBackward0",
    "cross": "LinalgCrossBackward0",
    "diag": lambda args: "DiagEmbedBackward0" if args[0].ndim == 1 else "DiagonalBackward0_copy",
    "dist": "DistBackward0",
    "dot": "DotBackward0",
    "embedding_bag": "EmbeddingBagBackward0",
    "fmax": "FmaxBackward0",
    "fmin": "FminBackward0",
    "glu": "GluBackward0",
    "grid_sample": lambda args: f"GridSampler{args[0].ndim - 2}DBackward0",
    "linalg_cross": "LinalgCrossBackward0",
    "linalg_householder_product": "LinalgHouseholderProductBackward0",
    "logcumsumexp": "LogcumsumexpBackward0",
    "multi_margin_loss": "MultiMarginLossBackward0",
    "aminmax": "AminmaxBackward0",
    "mode": "ModeBackward0",
    "mv": "MvBackward0",
    "nansum": "NansumBackward0",
    "pdist": "PdistBackward0",
    "pixel_shuffle": "PixelShuffleBackward0",
    "pixel_unshuffle": "PixelUnshuffleBackward0",
    "polar": "PolarBackward0",
    "put": "PutBackward0",
    "renorm": "RenormBackward0",
    "rot90": "Rot90Backward0",
    "rrelu": "RreluWithNoiseBackward0",
    "rsub": lambda args: f"RsubBackward{0 if isinstance(args[1], Tensor) else 1}",
    "segment_reduce": "SegmentReduceBackward0",
    "square": "PowBackward0",
    "sum_to_size": "SumBackward1",
    "take": "TakeBackward0",
    "trace": "TraceBackward0",
    "triangular_solve": "TriangularSolveBackward0",
    "upsample_nearest1d": "UpsampleNearest1DBackward0",
    "upsample_nearest2d": "UpsampleNearest2DBackward0",
    "upsample_nearest3d": "UpsampleNearest3DBackward0",
    "chain_matmul": "ViewBackward0",
    "linalg_multi_dot": "ViewBackward0",
    "nanquantile": "SqueezeBackward4",
    "quantile": "SqueezeBackward4",
    "vdot": "VdotBackward0",
    "unique": lambda args: f"Unique{2 if args[4] is None else 'Dim'}Backward0",
    "unique_consecutive": lambda args: (
        f"Unique{'' if args[3] is None else 'Dim'}ConsecutiveBackward0"
    ),
}

# Rows whose derivative is one operator in torch, and the name of that one's node.
SLOPES = {name: f"{title}Backward0" for name, title in {
    "_prelu_kernel": "PreluKernelBackward",
    "diagonal": "DiagonalBackward",
    "elu": "EluBackward",
    "hardshrink": "HardshrinkBackward",
    "hardswish": "HardswishBackward",
    "hardtanh": "HardtanhBackward",
    "index": "IndexPutImpl",
    "leaky_relu": "LeakyReluBackward",
    "log_sigmoid": "LogSigmoidBackward",
    "select": "SelectBackward",
    "sinc": "Where",
    "slice": "SliceBackward",
    "softplus": "SoftplusBackward",
    "softshrink": "SoftshrinkBackward",
    "threshold": "ThresholdBackward",
}.items()}  # fmt: skip


def named_slope(op: str, slope: Callable[..., Any]) -> Callable[..., Any]:
    """A row's derivative; its result's node is named as torch names it."""
    label = SLOPES.get(op)
    if label is None:
        return slope

    def named(*args: Any) -> Any:
        return labelled(slope(*args), label, args)

    return named


def write_whole(target: Tensor, value: Tensor) -> Tensor:
    """`target` with `value` written to it: the node is that of `value`, as of one operator."""
    node, before = value._fn, target._fn
    target.copy_(value)
    if hasattr(node, "op") and hasattr(target._fn, "op"):
        vars(target._fn)["label"] = node.name()
        vars(target._fn)["inputs"] = tuple(
            to[0].edges[0] if to and _copies(to[0], before) else to for to in node.next_edges()
        )
    return target


def _copies(node: Any, before: Any) -> bool:
    """Whether a node is that of the copy that was read in place of what was written to."""
    is_copy = hasattr(node, "op") and node.op.name == "clone" and node.edges[0] is not None
    return is_copy and node.edges[0][0] is before


def row_name(base: str, name: str, args: Sequence[Any]) -> str:
    """The name of a row's node: `base` and its arguments as the plan knows them."""
    rule = RULES.get(name)
    if rule is None:
        return base
    return rule if isinstance(rule, str) else rule(args)


def labelled(result: Any, label: str | Rule, args: Sequence[Any]) -> Any:
    """`result` as one operator's: its nodes bear the label and lead to the arguments.

    A part that is an argument, or a view of one, stays what it is.
    """
    if result.__class__ is Tensor and result._fn is None and result._base is None:
        return result
    name = label if isinstance(label, str) else label(args)
    if not name:  # what other rows name already
        return result
    flat = [a for arg in args for a in (arg if isinstance(arg, list | tuple) else (arg,))]
    tensors = [a for a in flat if isinstance(a, Tensor)]
    for part in (result,) if isinstance(result, Tensor) else result:
        node = getattr(part, "_fn", None)
        known = hasattr(node, "op") or isinstance(node, CopySlices)
        if not known or any(a._fn is node for a in tensors):
            continue
        vars(node)["label"] = name
        vars(node)["inputs"] = tuple(None if a._fn is None else (a._fn, a._nr) for a in tensors
                                     if a.dtype is not int64)  # fmt: skip
        if part._base is not None and not any(part._storage is a._storage for a in tensors):
            part._base = None  # what it is a view of is known to nobody
    return result
