"""Rows of distances, of integrals by trapezoids, of histograms, and of norms held to a bound."""

from __future__ import annotations

from math import inf, isfinite, prod

from ...._compat.unsupported_dtypes import Refusal, kernel
from ...rules import broadcast, c_name, wrap_dims
from ...words import *
from .statistics import norm_grad


@composite(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    samples=calls((Arg((2, 3)), Arg((3,), high=2.5)), (Arg((2, 3)), Arg((2, 3), high=2.5), 1)),
    tolerance="accumulated",
)
def dist(self: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of the difference."""
    gap = self - other
    if gap.dtype.category < dt.FLOAT:
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got"
            f" {scalar_name(gap.dtype)} instead."
        )
    return aten.linalg_vector_norm(gap, float(p))


_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
          "donot_use_mm_for_euclid_dist")  # fmt: skip


_MANY = 25  # rows of either side, beyond which torch multiplies (aten/src/ATen/native/Distance.cpp)


def _by_products(rows: int, columns: int, mode: str | None) -> bool:
    if mode in (None, _MODES[0]):
        return rows > _MANY or columns > _MANY
    return mode == _MODES[1]


def _euclidean(x1: Tensor, x2: Tensor) -> Tensor:
    """√(x1² + x2² - 2 x1 x2ᵀ) as one product of rows with their squares and ones beside them, as
    torch's `_euclidean_dist`, without the differences of all pairs in memory."""
    squares = [aten.sum(x * x, (-1,), True) for x in (x1, x2)]
    ones = [aten.ones_like(s) for s in squares]
    left = aten.cat([x1 * -2, squares[0], ones[0]], -1)
    right = aten.cat([x2, ones[1], squares[1]], -1)
    squared = aten.clamp_min(left @ aten.transpose(right, -2, -1), 0)
    same = squared == 0  # where the root has no derivative torch gives 0
    return aten.masked_fill(aten.sqrt(aten.masked_fill(squared, same, 1)), same, 0)


def _gap(x1: Tensor, x2: Tensor) -> Tensor:
    return aten.unsqueeze(x1, -2) - aten.unsqueeze(x2, -3)


def _cdist_grad(
    grad: Tensor, x1: Tensor, x2: Tensor, result: Tensor, p: float
) -> tuple[Tensor, Tensor]:
    if p == 0:
        return aten.zeros_like(x1), aten.zeros_like(x2)
    slope = norm_grad(grad, _gap(x1, x2), result, p, (-1,), False)
    return aten.sum(slope, (-2,)), -aten.sum(slope, (-3,))


op(
    "_cdist_forward(Tensor x1, Tensor x2, float p) -> Tensor",
    summary="Distances of each row of one matrix from each row of another, of the same batch.",
    infer=lambda x1, x2, p: x1.fresh((*x1.shape[:-1], x2.shape[-2])),
    # Rows without elements are at no distance in any norm.
    lower=lambda x1, x2, p: aten.linalg_vector_norm(
        _gap(x1, x2), p if x1.shape[-1] else 0.0, (-1,)
    ),
    grad={("x1", "x2"): _cdist_grad},
    samples=calls(
        *((Arg((2, 3, 9)), Arg((2, 4, 9), high=2.5), p) for p in (2.0, 1.0, 3.0, inf)),
        (Arg((3, 9), grad=False), Arg((4, 9), grad=False), 0.0),
    ),
    oracle=lambda torch: lambda x1, x2, p: torch.cdist(x1, x2, p, _MODES[2]),
    tolerance="accumulated",
)


@composite(
    "cdist(Tensor x1, Tensor x2, float p=2.0, Any compute_mode=None) -> Tensor",
    autocast="float32",
    unsupported={"half": kernel("cdist", cpu_alone=True)},
    samples=calls(
        (Arg((3, 2)), Arg((4, 2), high=2.5)),
        (Arg((3, 2)), Arg((4, 2), high=2.5), 1.0),
        (Arg((2, 30, 3)), Arg((1, 4, 3), high=2.5)),
    ),
    tolerance="composite",
    surface="function",
)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """Distances of each row of one matrix from each row of another, `[…, n, m]`."""
    if isinstance(compute_mode, str) and compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for t, name in ((x1, "X1"), (x2, "X2")):
        if t.dtype.category != dt.FLOAT:
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {scalar_name(t.dtype)}"
            )
        if t.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {t.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    batch = broadcast(tuple(x1.shape[:-2]), tuple(x2.shape[:-2]))
    if x1.dtype is not x2.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got:"
            f" {c_name(x1.dtype)} != {c_name(x2.dtype)}"
            if p == 2 and _by_products(x1.shape[-2], x2.shape[-2], compute_mode)
            else f"expected scalar type {scalar_name(x1.dtype)} but found {scalar_name(x2.dtype)}"
        )
    if p == 2 and _by_products(x1.shape[-2], x2.shape[-2], compute_mode):
        return _euclidean(x1, x2)
    if x1.ndim > 2 or x2.ndim > 2:
        x1, x2 = (aten.expand(x, (*batch, *x.shape[-2:])) for x in (x1, x2))
    return aten._cdist_forward(x1, x2, float(p))


@composite(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    samples=calls((Arg((3, 4)), 2, 0, 1.5)),
    tolerance="composite",
    out="expected",
    inplace=True,
)
def renorm(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Slices whose norm is above a bound, scaled down to it."""
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    at = wrap_dim(dim, self.ndim)
    others = tuple(d for d in range(self.ndim) if d != at)
    size = aten.linalg_vector_norm(self, float(p), others, True)
    factor = aten.where(size > maxnorm, maxnorm / (size + 1e-7), aten.ones_like(size))
    return self * factor


def _pairs(y: Tensor, at: int) -> Tensor:
    """The sum of both ends of each step."""
    size = y.shape[at]
    result: Tensor = aten.narrow(y, at, 0, size - 1) + aten.narrow(y, at, 1, size - 1)
    return result


def _areas(y: Tensor, x: Tensor, dim: int) -> Tensor:
    """Twice the area under each step."""
    at = wrap_dim(dim, y.ndim)
    if x.ndim == 1:
        steps = aten.narrow(x, 0, 1, x.shape[0] - 1) - aten.narrow(x, 0, 0, x.shape[0] - 1)
        steps = aten.reshape(steps, (-1, *(1,) * (y.ndim - at - 1)))
    else:
        if x.ndim < y.ndim:
            x = aten.reshape(x, ((1,) * (y.ndim - x.ndim) + tuple(x.shape)))
        steps = aten.narrow(x, dim, 1, x.shape[dim] - 1) - aten.narrow(x, dim, 0, x.shape[dim] - 1)
    return _pairs(y, at) * steps


def _trapezoid(cumulative: bool) -> Callable[..., Tensor]:
    name = "cumulative_trapezoid" if cumulative else "trapezoid"

    def body(y: Tensor, x: Tensor | None = None, dx: float | None = None, dim: int = -1) -> Tensor:
        if not y.ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        at = wrap_dim(dim, y.ndim)
        if isinstance(dx, complex):
            raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
        step = 1 if dx is None else dx
        if isinstance(step, complex):
            raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
        if y.shape[at] == 0:
            if cumulative:
                return aten.clone(y)
            shape = tuple(n for d, n in enumerate(y.shape) if d != at)
            return aten.zeros(shape, dtype=y.dtype, device=y.device)
        if isinstance(x, Tensor) and x.ndim == 1 and x.shape[0] != y.shape[at]:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point"
                if not cumulative
                else "cumulative_trapezoid: There must be one `x` value for each sample point"
            )
        real = dt.get_default_dtype()  # sums of integers would leave their range
        y = y if y.dtype.category >= dt.FLOAT else aten.to(y, real)
        if isinstance(x, Tensor) and x.dtype.category < dt.FLOAT:
            x = aten.to(x, real)
        if isinstance(x, Tensor):
            areas = _areas(y, x, dim)
            result = (aten.cumsum(areas, at) if cumulative else aten.sum(areas, at)) / 2.0
        elif cumulative:
            return aten.cumsum(_pairs(y, at) * (step / 2.0), at)
        else:
            ends = aten.select(y, at, 0) + aten.select(y, at, -1)
            result = (aten.sum(y, at) - ends * 0.5) * step
        if result._fn is not None:  # torch gives the number as one, not as a tensor
            result._fn.label = "DivBackward1" if isinstance(x, Tensor) else "MulBackward1"
        return result

    return body


_NO_BOOL = "{}: received a bool input for `y`, but bool is not supported"
for _name, _cumulative in (("trapezoid", False), ("cumulative_trapezoid", True), ("trapz", False)):
    composite(
        f"{_name}(Tensor y, Tensor? x=None, *, Scalar? dx=None, int dim=-1) -> Tensor",
        _trapezoid(_cumulative),
        unsupported={"bool": Refusal(_NO_BOOL.format(_name.replace("trapz", "trapezoid")))},
        samples=calls((Arg((2, 4)),), (Arg((2, 4)), Arg((4,)))),
        tolerance="chained",
        surface="function",
    )


def _edges(self: Tensor, bins: int, low: float, high: float) -> Tensor:
    return aten.linspace(low, high, bins + 1, dtype=self.dtype, device=self.device)


def _range(column: Tensor, limits: Sequence[float] | None, dim: int) -> tuple[float, float]:
    low, high = 0.0, 1.0
    if limits is not None:
        low, high = (float(v) for v in limits)
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g}"
                f" for dimension {dim}"
            )
    elif column.numel():
        low, high = float(aten.amin(column).item()), float(aten.amax(column).item())
    if not (isfinite(low) and isfinite(high)):
        raise RuntimeError(
            f"torch.histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is not finite"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _edges_of(rows: Tensor, bins: int | Tensor, limits: Sequence[float] | None, dim: int) -> Tensor:
    """The edges of a dimension of points `[N, D]`: those given, or as many as are asked for."""
    if not isinstance(bins, Tensor):
        if bins <= 0:
            raise RuntimeError(
                f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}"
            )
        return _edges(rows, bins, *_range(aten.select(rows, 1, dim), limits, dim))
    if bins.ndim != 1:
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have one dimension, but got"
            f" {bins.ndim} dimensions in the bins tensor for dimension {dim}"
        )
    if not bins.numel():
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in"
            f" the bins tensor for dimension {dim}"
        )
    if bins.dtype is not rows.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got"
            f" input with dtype {_C[rows.dtype]} and bins for dimension {dim} with dtype"
            f" {c_name(bins.dtype)}"
        )
    if bins.numel() == 1:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got 0 for dimension {dim}")
    return aten.clone(bins)


_C = {dt.float32: "float", dt.float64: "double"}


def _refuse_weight(rows: Tensor, shape: Sequence[int], weight: Tensor | None) -> None:
    if weight is None:
        return
    if tuple(weight.shape) != tuple(shape):
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the"
            " input tensor excluding its innermost dimension, but got input with shape"
            f" {[*shape, rows.shape[1]]} and weight with shape {list(weight.shape)}"
        )
    if weight.dtype is not rows.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should"
            f" have the same dtype, but got input({_C[rows.dtype]}), and"
            f" weight({_C.get(weight.dtype, weight.dtype.legacy)})"
        )


def _bin(column: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """The bin of each element (the last one is closed), and which elements are in one."""
    count = edges.shape[0] - 1
    place = aten.searchsorted(edges, column, right=True) - 1
    last = aten.select(edges, 0, count)
    place = aten.where(column == last, aten.full_like(place, count - 1), place)
    first = aten.select(edges, 0, 0)
    inside = aten.logical_and(column >= first, column <= last)
    return aten.clamp(place, 0, max(count - 1, 0)), inside


def _counted(self: Tensor, edges: list[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    """Counts (or weights) of rows `[N, D]` in the boxes between edges."""
    sizes = [e.shape[0] - 1 for e in edges]
    if self.device.type == "cpu" and edges and min(sizes) > 0:
        amounts = None if weight is None else weight.detach().numpy().reshape(-1)
        counts = _boxes(self.numpy(), [e.detach().numpy() for e in edges], amounts)
        return _normalized(aten.from_numpy(counts.astype(self.dtype.np)), edges, density)
    flat = aten.zeros((self.shape[0],), dtype=dt.int64, device=self.device)
    inside = aten.full((self.shape[0],), bool(edges), dtype=dt.bool, device=self.device)
    for d, edge in enumerate(edges):
        place, known = _bin(aten.contiguous(aten.select(self, 1, d)), edge)
        flat, inside = flat * sizes[d] + place, aten.logical_and(inside, known)
    amounts = aten.ones((self.shape[0],), dtype=self.dtype, device=self.device)
    amounts = amounts if weight is None else aten.reshape(weight, (-1,))
    amounts = aten.where(inside, amounts, aten.zeros_like(amounts))
    zeros = aten.zeros((prod(sizes),), dtype=self.dtype, device=self.device)
    result = aten.reshape(aten.scatter_add(zeros, 0, flat, amounts), tuple(sizes))
    return _normalized(result, edges, density)


def _boxes(rows: Array, edges: list[Array], amounts: Array | None) -> Array:
    """The same on the host, in float64."""
    flat, inside = np.zeros(len(rows), np.int64), np.ones(len(rows), bool)
    for column, edge in zip(rows.T, edges, strict=True):
        place = np.minimum(edge.searchsorted(column, "right"), len(edge) - 1) - 1
        inside &= (column >= edge[0]) & (column <= edge[-1])
        flat = flat * (len(edge) - 1) + place
    shape = tuple(len(e) - 1 for e in edges)
    amounts = amounts if amounts is None else amounts[inside]
    return np.bincount(flat[inside], amounts, prod(shape)).reshape(shape)


def _normalized(result: Tensor, edges: list[Tensor], density: bool) -> Tensor:
    sizes = result.shape
    if not density:
        return result
    result = result / aten.sum(result)
    for d, edge in enumerate(edges):
        widths = aten.narrow(edge, 0, 1, sizes[d]) - aten.narrow(edge, 0, 0, sizes[d])
        result = result / aten.reshape(widths, (-1, *(1,) * (len(sizes) - d - 1)))
    return result


@composite(
    "histogram(Tensor self, Any bins=100, *, Any range=None, Tensor? weight=None,"
    " bool density=False) -> (Tensor hist, Tensor bin_edges)",
    unsupported={"bool whole half complex": "histogramdd"},
    samples=calls((Arg((9,), grad=False), 4)),
    tolerance="accumulated",
)
def histogram(
    self: Tensor,
    bins: Any = 100,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """Counts between edges, and the edges: `[bins]` and `[bins + 1]`."""
    rows = aten.reshape(self, (-1, 1)).detach()
    edges = _edges_of(rows, bins, range, 0)
    _refuse_weight(rows, (rows.shape[0],) if weight is None else self.shape, weight)
    return _counted(rows, [edges], weight, density), edges


@composite(
    "histogramdd(Tensor self, Any bins, *, Any range=None, Tensor? weight=None,"
    " bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
    unsampled="its second result is a tuple; tests.opdb holds it against torch",
    tolerance="accumulated",
    surface="function",
)
def histogramdd(
    self: Tensor,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Counts of points `[…, D]` in boxes between the edges of each of D dimensions."""
    if self.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    rows = aten.reshape(self, (prod(self.shape[:-1]), self.shape[-1])).detach()
    dims = rows.shape[1]
    each = [bins] * dims if isinstance(bins, int) else list(bins)
    if len(each) != dims:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    if range is not None and len(range) != 2 * dims:
        raise RuntimeError(
            f"torch.histogramdd: for a {dims}-dimensional histogram range should have {2 * dims}"
            f" elements, but got {len(range)}"
        )
    edges = [
        _edges_of(rows, one, None if range is None else range[2 * d : 2 * d + 2], d)
        for d, one in enumerate(each)
    ]
    _refuse_weight(rows, self.shape[:-1], weight)
    return _counted(rows, edges, weight, density), tuple(edges)


@composite(
    "corrcoef(Tensor self) -> Tensor",
    samples=calls((Arg((3, 5)),)),
    tolerance="composite",
)
def corrcoef(self: Tensor) -> Tensor:
    """Correlations of rows as variables."""
    if self.ndim > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with"
            f" {self.ndim} dimensions"
        )
    result = aten.cov(self)
    if not result.ndim:
        return result / result
    spread = aten.sqrt(aten.real(aten.diagonal(result)))
    result = result / aten.unsqueeze(spread, -1) / aten.unsqueeze(spread, 0)
    if result.is_complex():
        return aten.complex(
            aten.clamp(aten.real(result), -1, 1), aten.clamp(aten.imag(result), -1, 1)
        )
    return aten.clamp(result, -1, 1)


_GRADIENT_SAMPLE = Sample((Arg((5,)),))


@composite(
    "gradient(Tensor self, *, Any spacing=None, Any dim=None, int edge_order=1) -> Tensor[]",
    samples=calls(_GRADIENT_SAMPLE, Sample((Arg((3, 4)),), {"dim": 1, "edge_order": 2})),
    tolerance="gradient",
    surface="function",
)
def gradient(
    self: Tensor, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Central differences along dimensions, one-sided at the ends."""
    if self.dtype is dt.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = tuple(range(self.ndim)) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = list(wrap_dims(dims, self.ndim)) if len(dims) else []
    many = isinstance(spacing, list | tuple)
    if many and len(spacing) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar"
            + (
                f", or a list of length equal to 'self.dim() = {self.ndim}', since dim argument was"
                f" not given, but got a list of length {len(spacing)}"
                if dim is None
                else " or it's spacing and dim arguments to have the same length, but got a spacing"
                f" argument of length {len(spacing)} and a dim argument of length {len(dims)}."
            )
        )
    steps = list(spacing) if many else [spacing] * len(dims)
    for d in dims:
        if self.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    return tuple(_slope(self, d, s, edge_order) for d, s in zip(dims, steps, strict=True))


def _slope(self: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    n = self.shape[dim]

    def part(start: int, count: int) -> Tensor:
        return aten.narrow(self, dim, start, count)

    if isinstance(spacing, Tensor) and spacing.ndim:
        # How many there are is asked of broadcasting alone, as in torch.
        wide = aten.reshape(spacing, (-1, *(1,) * (self.ndim - dim - 1)))
        count = wide.shape[0] - 1
        steps = aten.narrow(wide, 0, 1, count) - aten.narrow(wide, 0, 0, count)
        gaps, second = max(count - 1, 0), min(1, count)
        low, high = aten.narrow(steps, 0, 0, gaps), aten.narrow(steps, 0, second, gaps)
        if wide.ndim != self.ndim:
            low, high, steps = (aten.reshape(t, (1,) * dim + tuple(t.shape))
                                for t in (low, high, steps))  # fmt: skip
        inner = -high / (low * (low + high)) * part(0, n - 2)
        inner = inner + (high - low) / (low * high) * part(1, n - 2)
        inner = inner + low / (high * (low + high)) * part(2, n - 2)
        places = (0, count - 1, min(1, count - 1), max(count - 2, 0))
        ends: list[Any] = [aten.narrow(steps, dim, k, 1) for k in places]
    else:
        h: Any = (
            1.0 if spacing is None else spacing.item() if isinstance(spacing, Tensor) else spacing
        )
        inner = (part(2, n - 2) - part(0, n - 2)) / (2 * h)
        ends = [h if isinstance(h, complex) else aten.full_like(part(0, 1), h)] * 4
    first, last, second, before = ends
    if edge_order == 1:
        start = (part(1, 1) - part(0, 1)) / first
        end = (part(n - 1, 1) - part(n - 2, 1)) / last
    else:
        start = _edge(part(0, 1), part(1, 1), part(2, 1), first, second)
        end = -_edge(part(n - 1, 1), part(n - 2, 1), part(n - 3, 1), last, before)
    return aten.cat([start, inner, end], dim)


def _edge(a: Tensor, b: Tensor, c: Tensor, near: Tensor, far: Tensor) -> Tensor:
    """The slope at the first of three points of a parabola."""
    both = near + far
    return (
        a * (-(near + both) / (near * both)) + b * (both / (near * far)) - c * (near / (far * both))
    )
