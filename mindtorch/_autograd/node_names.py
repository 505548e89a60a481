"""Owns the names of nodes as torch prints them: torch counts overloads and has other operators.

`print(y)` shows the name of the last node, so programs see these. A row's node is named after the
row, or by a rule here; the last node of a composite that is one operator in torch bears its label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor

Rule = Callable[[Sequence[Any]], str]


def _tensor_at(place: int, base: str, tensor: int, number: int) -> Rule:
    """A name that ends in one of two numbers: by whether an argument is a tensor."""
    return lambda args: f"{base}Backward{tensor if isinstance(args[place], Geometry) else number}"


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
    if biased:
        return "ViewBackward0"
    return "SqueezeBackward4" if args[0].ndim == 1 else "UnsafeViewBackward0"


def _squeeze(args: Sequence[Any]) -> str:
    if args[1] is None:
        return "SqueezeBackward0"
    return f"SqueezeBackward{1 if len(args[1]) == 1 else 2}"


# By the row's name: a name, or a rule that reads the arguments as the plan knows them.
RULES: dict[str, str | Rule] = {
    "_batch_norm_functional": "NativeBatchNormBackward0",
    "_gru_gates": "AddBackward0",
    "_layer_norm_backward": "NativeLayerNormBackwardBackward0",
    "_linalg_cholesky": "LinalgCholeskyExBackward0",
    "_linalg_solve": "LinalgSolveExBackward0",
    "_lstm_gates": "MulBackward0",
    "_reshape_copy": "UnsafeViewBackward0",
    "clamp": lambda args: (
        f"ClampBackward{0 if any(isinstance(a, Geometry) for a in args[1:]) else 1}"
    ),
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
    "squeeze": _squeeze,
    "sum": _with_dim("Sum"),
}

# Composites that are one operator in torch, and the name of that one's node.
LABELS: dict[str, str] = {
    "_pdist_forward": "PdistBackward0",
    "addmv": "AddmvBackward0",
    "addr": "AddrBackward0",
    "affine_grid": "AffineGridGeneratorBackward0",
    "affine_grid_generator": "AffineGridGeneratorBackward0",
    "angle": "AngleBackward0",
    "binary_cross_entropy_with_logits": "BinaryCrossEntropyWithLogitsBackward0",
    "block_diag": "BlockDiagBackward0",
    "cdist": "CdistBackward0",
    "celu": "CeluBackward0",
    "clamp_min": "ClampMinBackward0",
    "conj": "ConjBackward0",
    "cross": "LinalgCrossBackward0",
    "diag": "DiagonalBackward0_copy",
    "dist": "DistBackward0",
    "dot": "DotBackward0",
    "embedding_bag": "EmbeddingBagBackward0",
    "fmax": "FmaxBackward0",
    "fmin": "FminBackward0",
    "glu": "GluBackward0",
    "grid_sample": "GridSampler2DBackward0",
    "linalg_cross": "LinalgCrossBackward0",
    "logcumsumexp": "LogcumsumexpBackward0",
    "logit": "LogitBackward0",
    "multi_margin_loss": "MultiMarginLossBackward0",
    "aminmax": "AminmaxBackward0",
    "median.dim": "MedianBackward1",
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
    "rsub": "RsubBackward1",
    "scaled_dot_product_attention": "ScaledDotProductFlashAttentionForCpuBackward0",
    "segment_reduce": "SegmentReduceBackward0",
    "square": "PowBackward0",
    "sum_to_size": "SumBackward1",
    "take": "TakeBackward0",
    "trace": "TraceBackward0",
    "triangular_solve": "TriangularSolveBackward0",
    "upsample_nearest1d": "UpsampleNearest1DBackward0",
    "upsample_nearest2d": "UpsampleNearest2DBackward0",
    "upsample_nearest3d": "UpsampleNearest3DBackward0",
    "vdot": "VdotBackward0",
}


def row_name(base: str, name: str, args: Sequence[Any]) -> str:
    """The name of a row's node: `base` and its arguments as the plan knows them."""
    rule = RULES.get(name)
    if rule is None:
        return base
    return rule if isinstance(rule, str) else rule(args)


def labelled(result: Any, label: str, args: Sequence[Any]) -> Any:
    """`result`, whose last node bears the label unless it is an argument's."""
    first = result if isinstance(result, Tensor) else result[0]
    node = getattr(first, "_fn", None)
    if hasattr(node, "op") and not any(getattr(a, "_fn", None) is node for a in args):
        node.__dict__["label"] = label
    return result
