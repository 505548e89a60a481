"""Rows of distances, cosines, unit vectors and the bilinear product."""

from __future__ import annotations

from math import inf

from ...._compat.unsupported_dtypes import kernel
from ...rules import c_name, result_type, scalar_name
from ...words import *


@composite(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    unsupported={"bool": "bmm"},
    surface="nn function",
    samples=calls((Arg((5, 2)), Arg((5, 3)), Arg((4, 2, 3)), Arg((4,)))),
    tolerance="chained",
)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 `[*, i]`, input2 `[*, j]`, weight `[o, i, j]` → `[*, o]`."""
    _refuse_bilinear(input1, input2, weight, bias)
    left = (input1.unsqueeze(-2).unsqueeze(-2) @ weight).squeeze(-2)
    result = (left * input2.unsqueeze(-2)).sum(-1, dtype=input1.dtype)
    return result if bias is None else result + bias


def _refuse_bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """RuntimeError in torch's words for dtypes and sizes that do not fit."""
    operands = {"input1": input1, "input2": input2, "weight": weight, "bias": bias}
    names = {name: c_name(t.dtype) for name, t in operands.items() if t is not None}
    if len({*names.values()}) > 1:
        listed = ", ".join(f"{name}: {dtype}" for name, dtype in names.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {listed}")
    if input1.dim() != input2.dim():
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}"
        )
    for i, (a, b) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if a != b:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {i}: got {a} and {b}"
            )
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(
            "bilinear(): bias size does not match weight size: got"
            f" {bias.shape[0]} but expected {weight.shape[0]}"
        )
    for number, side in ((1, input1), (2, input2)):
        if side.shape[-1] != weight.shape[number]:
            raise RuntimeError(
                f"bilinear(): input{number} size does not match weight size: got"
                f" {side.shape[-1]} but expected {weight.shape[number]}"
            )


@composite(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    surface="nn function",
    samples=calls(
        (Arg((3, 4)), Arg((3, 4))),
        (Arg((3, 4), "int64", 1, 3), Arg((3, 4))),
        (Arg((2, 3, 4)), Arg((2, 3, 4)), -1),
    ),
    tolerance="chained",
)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 · x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`."""
    common = result_type((x1._geom, x2._geom))
    if not common.is_floating_point:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {scalar_name(common)}"
        )
    x1, x2 = aten.broadcast_tensors(x1.to(common), x2.to(common))
    return ((x1 / _length(x1, dim, eps)) * (x2 / _length(x2, dim, eps))).sum(dim)


def _length(x: Tensor, dim: int, eps: float) -> Tensor:
    """|x| along `dim`, at least `eps`; the gradient is that of |x|, as torch has it."""
    norm = aten.linalg_vector_norm(x, 2, (dim,), True)
    if not norm.requires_grad:
        return aten.clamp_min(norm, eps)
    norm = aten.clone(norm)
    norm.detach().clamp_min_(eps)
    return norm


@composite(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) "
    "-> Tensor",
    surface="nn function",
    samples=calls((Arg((3, 4)), Arg((3, 4), low=-1)), (Arg((3, 4)), Arg((3, 4), low=-1), 1.0)),
    tolerance="accumulated",
)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """p-norm of x1 - x2 + eps along the last dim."""
    result = (x1 - x2 + eps).norm(p, -1, keepdim)
    if result._fn is not None:
        result._fn.label = "NormBackward1"
    return result


def _pairs(self: Tensor) -> tuple[Tensor, Tensor]:
    """Which rows make a pair: the first of each, and the second."""
    n = self.shape[0]
    first, second = aten.unbind(aten.triu_indices(n, n, 1, device=self.device), 0)
    return first, second


def _gaps(self: Tensor) -> Tensor:
    first, second = _pairs(self)
    return self.index_select(0, first) - self.index_select(0, second)


def _pdist_grad(grad: Tensor, self: Tensor, result: Tensor, p: float) -> Tensor:
    """Each pair's share by its gap, 0 where there is none, to one row and from the other."""
    gap, grad, far = _gaps(self), grad.unsqueeze(1), result.unsqueeze(1)
    size, signs = aten.abs(gap), aten.sign(gap)
    if p == inf:
        slope = aten.where(size == far, signs * grad, 0.0)
    elif p in (0, 1):
        slope = signs * grad * p
    else:
        none = aten.logical_or(far == 0, size == 0)
        share = aten.masked_fill(size, none, 1) / aten.masked_fill(far, none, 1)
        slope = aten.masked_fill(signs * aten.pow(share, p - 1) * grad, none, 0)
    first, second = _pairs(self)
    zeros = aten.zeros(self.shape, dtype=grad.dtype, device=grad.device)
    return zeros.index_add(0, first, slope).index_add(0, second, -slope)


def _pair_geometry(self: Geometry, p: float = 2) -> Geometry:
    if not self.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if wrap_dim(1, self.ndim) and self.ndim > 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    return self.fresh((self.shape[0] * (self.shape[0] - 1) // 2,))


op(
    "_pdist_forward(Tensor self, float p=2) -> Tensor",
    infer=_pair_geometry,
    lower=lambda self, p=2: _gaps(self).norm(p, 1),
    grad={"self": _pdist_grad},
    samples=calls((Arg((4, 3)),), (Arg((4, 3)), 1.0)),
    tolerance="accumulated",
)


@composite(
    "pdist(Tensor input, float p=2.0) -> Tensor",
    unsupported={"half": kernel("pdist", cpu_alone=True)},
    surface="nn function",
    samples=calls((Arg((4, 3)),), (Arg((4, 3)), 1.0)),
    tolerance="accumulated",
)
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """p-norms of the differences of every two rows of `[n, d]` → `[n (n - 1) / 2]`."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return aten._pdist_forward(input, p)


@composite(
    "normalize(Tensor input, float p=2.0, int dim=1, float eps=1e-12, Tensor? out=None) -> Tensor",
    samples=calls((Arg((3, 4)),), (Arg((2, 3, 4)), 1.0, 2)),
    tolerance="accumulated",
)
def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """x / max(|x|_p, eps) along `dim`."""
    denominator = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denominator if out is None else aten.div(input, denominator, out=out)
