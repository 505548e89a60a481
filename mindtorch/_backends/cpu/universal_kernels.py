"""Owns which rows run a universal function of ours on cpu, and how their arguments become its.

A row that has no other cpu kernel is computed by its `lower` where none of these fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._compat.unsupported_dtypes import REFERENCES
from ..._tensor.dtype import COMPLEX, complex64, complex128, float32, float64, int32, int64, uint64
from ..._tensor.geometry import Geometry
from ..._tensor.tensor import Tensor
from ..._tensor.types import Array, Number
from ...ops.rows.matrix.triangular import pivots_outside
from ...ops.rows.move.scattering import divided, start_of
from ...ops.rules import Results
from ...ops.spec import Op
from . import factors, native, products
from .ufuncs import universal

Kernel = Callable[..., Any]
Maker = Callable[[Op, Sequence[Any], Geometry], Kernel | None]
_FULL = (float32, float64)


def kernel(op: Op, args: Sequence[Any], outs: Results) -> Kernel | None:
    """The row's kernel for these arguments and results, None where there is none."""
    make = _MAKERS.get(op.name)
    if make is None and universal(op.name) is None:
        return None
    out = outs[0] if outs else None
    if not native.switch.enabled or REFERENCES.active or out.__class__ is not Geometry:
        return None
    if make is None:
        function = universal(op.name)
        return function if function is not None and _has(function, out) else None
    geoms = [a._geom for a in args if isinstance(a, Tensor)]
    if make is _pairs and not out.numel:
        return lambda *_: np.empty(out.shape, out.dtype.np)
    if universal("middle") is None or not all(g.numel for g in (*geoms, out)):
        return None
    return None if any(g.dtype is uint64 for g in geoms) else make(op, args, out)


def _has(function: Any, out: Geometry) -> bool:
    """Whether a universal function has a loop of a result's dtype."""
    return any(types.endswith(out.dtype.np.char) for types in function.types)


def _polygamma(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    function, plain, kind = universal("polygamma"), op.kernels.cpu, out.dtype.np
    if out.dtype not in _FULL or function is None or plain is None:
        return None

    def polygamma(n: int, x: Array, *, out: Geometry) -> Any:
        if n > _LARGEST_DERIVATIVE:
            return plain(n, x, out=out)
        return function(float(n), x.astype(kind, copy=False))

    return polygamma


_LARGEST_DERIVATIVE = 1 << 20


_MANY = 1 << 16  # elements from which numpy partitions sooner
_LONG = 256  # elements of a line from which numpy sorts it as soon, and looks at it by vectors


def _median(skipping: bool) -> Maker:
    """Of all elements."""

    def make(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
        function = universal("half")
        if function is None or (args[0].numel() > _MANY and not skipping):
            return None
        return lambda self: function(self.reshape(-1), skipping)

    return make


def _along(name: str, *flags: Any) -> Maker:
    """What gives an element of each line along `dim`, and its place."""

    def make(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
        function = universal(name)
        if function is None or args[0].dtype.category == COMPLEX or not args[0].ndim:
            return None

        last = args[1] % args[0].ndim == args[0].ndim - 1

        def run(self: Array, dim: int, keepdim: bool) -> Any:
            pair = function(self, *flags) if last else function(self, *flags, axis=dim)
            return tuple(np.expand_dims(r, dim) for r in pair) if keepdim else pair

        return run

    return make


def _extreme(name: str) -> Maker:
    """Of each line: the first of the greatest or least elements, and its place."""
    make = _along(name)

    def unless_long(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
        self, dim = args[0]._geom, args[1]
        along = self.ndim and self.strides[dim] == 1 and self.shape[dim] > _LONG
        return None if along or self.dtype not in (*_FULL, int64) else make(op, args, out)

    return unless_long


def _sorted(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    function = universal("ordered")
    if function is None or out.dtype not in (*_FULL, int64) or not out.ndim:
        return None
    if out.shape[args[1]] > 4 * _LONG:
        return None
    return lambda self, dim, descending, _: function(self, descending, axis=dim)


def _pairs(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    function, shape, kind = universal("pairs"), out.shape, out.dtype.np
    if out.dtype not in _FULL or function is None:
        return None
    return lambda self, p: function(self, p, out=np.empty(shape, kind))


def _distances(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    function, shape, kind = universal("distances"), out.shape, out.dtype.np
    if out.dtype not in _FULL or function is None:
        return None
    return lambda x1, x2, p: function(x1, x2, p, out=np.empty(shape, kind))


def _refuse_outside(index: Array, low: int, size: int) -> None:
    """RuntimeError for an index that a dimension of a size does not have."""
    outside = universal("outside")
    if outside is not None and (at := outside(index.reshape(-1), low, size)) >= 0:
        bad = index.reshape(-1)[at]
        raise RuntimeError(f"index {bad} is out of bounds for dimension 1 with size {size}")


_ANY_BELOW = -(1 << 63)


def _label_hinges(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    function, classes = universal("label_hinges"), args[0].shape[-1]
    if out.dtype not in _FULL or function is None:
        return None

    def run(self: Array, target: Array) -> Any:
        _refuse_outside(target, _ANY_BELOW, classes)
        return function(self, target)[0]

    return run


def _label_slopes(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    function, classes = universal("label_slopes"), args[1].shape[-1]
    if out.dtype not in _FULL or function is None:
        return None

    def run(grad: Array, self: Array, target: Array) -> Any:
        _refuse_outside(target, _ANY_BELOW, classes)
        return function(self, target, grad)

    return run


def _hinges(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    function = universal("hinges")
    if out.dtype not in _FULL or function is None:
        return None
    classes = args[0].shape[-1]
    ones = np.ones(classes, out.dtype.np)

    def run(self: Array, target: Array, weight: Array | None, p: int, margin: Number) -> Any:
        _refuse_outside(target, 0, classes)
        return function(self, target, ones if weight is None else weight, p, margin)

    return run


def _fractional(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    """Of one to three dimensions; those that lack have one place."""
    function, kernels = universal("fractional"), args[2]
    if out.dtype not in _FULL or function is None:
        return None
    lack, order = 3 - len(kernels), -1 if len(kernels) == 2 else 1
    windows = np.array((1,) * lack + tuple(kernels))
    ones, lead = (1,) * lack, tuple(out.shape[:2])
    sizes = (*lead, *ones, *out.shape[2:])

    def run(self: Array, samples: Array, *_: object) -> Any:
        # Samples of two dimensions count from the last one, samples of three from the first.
        u = np.ones((*samples.shape[:2], 3), out.dtype.np)
        u[..., lack:] = samples[..., ::order]
        results = np.empty(sizes, out.dtype.np), np.empty(sizes, np.int64)
        function(self.reshape(*lead, *ones, *self.shape[2:]), u, windows, out=results)
        return tuple(r.reshape(out.shape) for r in results)

    return run


def _index_reduced(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    reduce, plain = args[4], op.lower
    function = universal(f"together_{'sum' if reduce == 'mean' else reduce}")
    if out.dtype not in (*_FULL, int64) or function is None or not out.ndim or plain is None:
        return None
    n, dim = out.shape[args[1]], args[1] % out.ndim
    inner = int(np.prod(out.shape[dim + 1 :], dtype=np.int64))
    kind = out.dtype.np

    def run(
        self: Array, _: int, index: Array, source: Array, reduce: str, include_self: bool
    ) -> Any:
        index = index.reshape(-1)  # one index may be 0-d
        _refuse_outside(index, 0, n)
        built = np.array(self, order="C")
        slices = built.reshape(-1, n, inner)
        if not include_self:
            slices[:, index] = start_of(kind, reduce)
        function(index, source.reshape(-1, len(index), inner), out=slices)
        if reduce != "mean":
            return built
        counts = np.bincount(index, minlength=n) + int(include_self)
        return divided(slices, np.maximum(counts, 1)[:, None]).reshape(built.shape)

    return run


def _logcumsumexp(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    if out.dtype.category == COMPLEX or not out.ndim:
        return None
    return lambda self, dim: np.logaddexp.accumulate(self, dim, np.float64)


def _joined(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    """Of tensors that all have elements, of the result's dtype."""
    if any(t.dtype is not out.dtype or not t.numel() for t in args[0]):
        return None
    return lambda tensors, dim, *, out: np.concatenate(tensors, dim)


def _searched(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    function = universal("search")
    if function is None or args[0].dtype not in _SEARCHED or args[1].dtype not in _SEARCHED:
        return None
    if args[0].ndim == 1:
        return function
    return lambda edges, values, right: function(edges[..., None, :], values, right)


_SEARCHED = (float32, float64, int32, int64)


def _cross(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    function = universal("cross")
    if function is None or out.dtype not in (*_FULL, int64, complex64):
        return None
    return lambda self, other, dim: function(self, other, axis=dim)


_BLOCK = 64  # reflections applied at once


def _reflected(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    if out.dtype not in (*_FULL, complex64, complex128):
        return None
    return universal("reflected") if args[1].shape[-1] < 8 * _BLOCK else _reflected_by_blocks


def _reflected_by_blocks(self: Array, tau: Array, other: Array, adjoint: bool) -> Array:
    """Products of matrices: H1 … Hk is I - V T Vᴴ, where T⁻¹ is VᴴV above its diagonal, and 1 / tau
    on it (Joffrain et al., "Accumulating Householder transformations, revisited", 2006)."""
    k, still = tau.shape[-1], tau == 0
    vectors, factors = np.tril(self[..., :k], -1), np.where(still, 1, tau)
    vectors[..., range(k), range(k)] = 1
    vectors = np.where(still[..., None, :], 0, vectors)
    result = np.array(other)
    for begin in range(0, k, _BLOCK) if adjoint else reversed(range(0, k, _BLOCK)):
        v, t = vectors[..., begin:, begin : begin + _BLOCK], factors[..., begin : begin + _BLOCK]
        across, rows = v.conj().swapaxes(-1, -2), result[..., begin:, :]
        inverse = np.triu(across @ v, 1)
        inverse[..., range(t.shape[-1]), range(t.shape[-1])] = 1 / t
        inverse = inverse.conj().swapaxes(-1, -2) if adjoint else inverse
        rows -= v @ np.linalg.solve(inverse, across @ rows)
    return result


def _exchanged(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    function, outside, rows = universal("exchanged"), universal("outside"), np.arange(args[1])
    if function is None or outside is None:
        return None

    def run(pivots: Array, m: int) -> Any:
        if outside(pivots.reshape(-1), 1, m + 1) >= 0:
            raise pivots_outside()
        return function(pivots, rows)

    return run


def _each_nll(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    """Without a reduction, where every label is a class."""
    outside, plain, classes = universal("outside"), op.kernels.cpu, args[0].shape[-1]
    if outside is None or plain is None or args[2] is not None or args[0].ndim != 2:
        return None
    if 0 <= args[4] < classes:
        return None
    starts, none = np.arange(args[0].shape[0]) * classes, np.zeros((), out.dtype.np)

    def run(self: Array, target: Array, *rest: Any) -> Any:
        if outside(target, 0, classes) >= 0:
            return plain(self, target, *rest)
        return -self.take(starts + target), none.copy()

    return run


def _nll(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    """Of a sum or mean; numpy's says which label is no class."""
    function, plain, reduction = universal("picked"), op.kernels.cpu, args[3]
    if not reduction and out.dtype in _FULL:
        return _each_nll(op, args, out)
    if out.dtype not in _FULL or function is None or plain is None or out.ndim or not reduction:
        return None
    ones = np.ones(args[0].shape[-1], out.dtype.np)
    shape = (-1, args[0].shape[-1])

    def run(
        self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int
    ) -> Any:
        weights = ones if weight is None else weight
        labels = target.reshape(-1)
        total, count, bad = function(self.reshape(shape), labels, weights, ignore_index)
        if bad >= 0:
            return plain(self, target, weight, reduction, ignore_index)
        return (total / count if reduction == 1 else total), count

    return run


def _counts(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    function, kind = universal("counts"), out.dtype.np
    if out.dtype not in _FULL or function is None:
        return None

    def run(self: Array, bins: int, low: float, high: float) -> Any:
        scale = bins / (high - low)
        return function(self.reshape(-1), low, high, scale, out=np.empty(bins, kind))

    return run


_TORCHS_BITS = 1 << 13  # elements from which numpy's functions count for more


def _nearest(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    """Of float32, with torch's last bit, which numpy's often lack: of few, where numpy's take less
    time than torch's."""
    alike = all(a.dtype is float32 for a in (out, *args))
    fits = alike and (op.name in _AS_FAST or out.numel < _TORCHS_BITS)
    return universal(op.name) if fits else None


def _power(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    """Of float32; squares and the like are by products, as torch's."""
    function, of_number, plain = universal("power"), universal("power_of_number"), op.kernels.cpu
    fits = out.dtype is float32 and out.numel < _TORCHS_BITS
    if not fits or function is None or of_number is None or plain is None:
        return None

    def of_one(self: Array, number: float, *, out: Geometry) -> Any:
        if number in _EXPONENTS_BY_PRODUCTS:
            return plain(self, np.asarray(number, np.float32), out=out)
        return of_number(self, np.float64(number))

    def of_each(self: Any, exponent: Array, *, out: Geometry) -> Any:
        if not exponent.ndim:
            return plain(self, exponent, out=out)
        return function(self, exponent.astype(np.float32, copy=False))

    return of_each if isinstance(args[1], Tensor) else of_one


_EXPONENTS_BY_PRODUCTS = (-2, -1, -0.5, 0, 0.5, 1, 2, 3)


def _fused_sum(sign: int) -> Maker:
    """`self + sign * alpha * other` rounded once, as torch's vectors compute it."""

    def make(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
        function, alpha, kind = universal("fused"), args[2], out.dtype.np.type
        if out.dtype not in _FULL or function is None or alpha == 1:
            return None

        def run(self: Array, other: Array, alpha: Number, into: Array | None = None) -> Array:
            return function(other, kind(sign * alpha), self, into)

        return run

    return make


def _fused_product(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    function, kind = universal("fused"), out.dtype.np.type
    if out.dtype not in _FULL or function is None:
        return None

    def run(self: Array, a: Array, b: Array, value: Number, into: Array | None = None) -> Array:
        return function(a if value == 1 else kind(value) * a, b, self, into)

    return run


def _index_selected(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    """Of what lies densely; numpy's says which index is outside."""
    outside, plain, self = universal("outside"), op.kernels.cpu, args[0]._geom
    if outside is None or plain is None or args[2].dtype is not int64 or not self.contiguous:
        return None
    if not self.ndim:
        return None
    at, size = args[1], self.shape[args[1]]

    def run(self: Array, dim: int, index: Array) -> Any:
        line = index.reshape(-1)
        return plain(self, dim, index) if outside(line, 0, size) >= 0 else self.take(line, at)

    return run


def _angle(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    """Of real numbers, whose result has their dtype."""
    real = out.dtype is float32 and all(a.dtype is float32 for a in args)
    return universal("angle") if real else None


def _polar(op: Op, args: Sequence[Any], out: Geometry) -> Kernel | None:
    """Of float32, by the C library's functions as torch's."""
    real, imaginary = universal("polar.real"), universal("polar.imag")
    if out.dtype is not complex64 or real is None or imaginary is None:
        return None

    def run(abs: Array, angle: Array, *, out: Geometry) -> Array:
        built = np.empty(out.shape, np.complex64)
        real(abs, angle, built.real)
        imaginary(abs, angle, built.imag)
        return built

    return run


def _gates(name: str) -> Maker:
    return lambda op, args, out: universal(name) if out.dtype is float32 else None


_NEAREST = (
    "cosh", "exp2", "expm1", "log", "log10", "log1p", "log2", "sinh", "tanh",
)  # fmt: skip
_AS_FAST = frozenset({"cos", "exp", "sin", "sqrt"})  # as torch's
_MAKERS: dict[str, Maker] = {
    **dict.fromkeys((*_NEAREST, *_AS_FAST), _nearest),
    **factors.MAKERS,
    **products.MAKERS,
    "_cdist_forward": _distances,
    "_cross": _cross,
    "_fractional_max_pool": _fractional,
    "_histc": _counts,
    "_index_reduce": _index_reduced,
    "_logcumsumexp": _logcumsumexp,
    "_lstm_gates": _gates("lstm_gates"),
    "_lstm_gates_backward": _gates("lstm_gates_backward"),
    "_multi_margin": _hinges,
    "_multilabel_margin": _label_hinges,
    "_multilabel_margin_backward": _label_slopes,
    "_pdist_forward": _pairs,
    "_rows_of_pivots": _exchanged,
    "_searchsorted": _searched,
    "index_select": _index_selected,
    "add": _fused_sum(1),
    "addcmul": _fused_product,
    "angle": _angle,
    "cat": _joined,
    "sub": _fused_sum(-1),
    "_reflected": _reflected,
    "max.dim": _extreme("greatest"),
    "median": _median(False),
    "median.dim": _along("middle", False),
    "min.dim": _extreme("least"),
    "mode": _along("mode"),
    "nanmedian": _median(True),
    "nll_loss_forward": _nll,
    "nanmedian.dim": _along("middle", True),
    "polygamma": _polygamma,
    "polar": _polar,
    "pow": _power,
    "pow.Scalar": _power,
    "sort": _sorted,
}
