"""Rows of pooling over windows of a given size: maxima with their places, and means."""

from __future__ import annotations

from math import prod

from ...._compat.unsupported_dtypes import UnsupportedDtypes, halves_elsewhere
from ...choice import choose
from ...rules import as_images
from ...spec import Derivative
from ...words import *
from . import pool_windows
from .conv import scatter_windows, windows
from .pool_sizes import counts_of, covered, expanded, pooled

Sizes = tuple[int, ...]


def _batched(x: Array, n: int) -> Array:
    return x if x.ndim == n + 2 else x[None]


def _seen(x: Array, out: Sizes, k: Sizes, s: Sizes, p: Sizes, d: Sizes, fill: Number) -> Array:
    edges = covered(x.shape[2:], out, k, s, p, d)
    whole = np.pad(x, [(0, 0), (0, 0), *edges], constant_values=fill)
    return windows(whole, k, s, (0,) * len(k), d, out)


def _lowest(dtype: Any) -> float:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def best_of(flat: Any, inside: Any = True) -> Array:
    """Where each window's maximum is: the last NaN if there is one, else the first largest element
    that is no padding (torch's CPU kernel: `val > max || isnan(val)`, from the first element).
    """
    largest = np.max(flat, -1, keepdims=True, where=inside, initial=_lowest(flat.dtype))
    first = np.argmax((flat == largest) & inside, -1)
    if flat.dtype.kind != "f":
        return first
    broken = np.isnan(flat) & inside
    last = flat.shape[-1] - 1 - np.argmax(broken[..., ::-1], -1)
    return np.where(broken.any(-1), last, first)


def places_within(best: Array, kernel: Sizes) -> list[Array]:
    """Where in its window each maximum is, by dimension, from its number.

    In one dimension: numpy 2.4.6's unravel_index mixes up more than 8,192 numbers `[..., 1]`.
    """
    return [place.reshape(best.shape) for place in np.unravel_index(best.reshape(-1), kernel)]


_FEW = 64  # elements of a window that are compared one after the other


def _best_in_turn(seen: Any, inside: Any, kernel: Sizes) -> tuple[Array, Array]:
    """`best_of` and its values, the windows' elements taken one after the other.

    Passes over whole planes; to lay each window's elements side by side would take longer.
    """
    shape = seen.shape[: seen.ndim - len(kernel)]
    values = np.full(shape, _lowest(seen.dtype), seen.dtype)
    best = np.zeros(shape, np.int64)
    best[...] = np.argmax(inside.reshape((*inside.shape[: -len(kernel)], -1)), -1)
    for at, place in enumerate(np.ndindex(*kernel)):
        there = seen[(..., *place)]  # padding is the lowest value: never better
        better = there > values
        if seen.dtype.kind == "f":
            better |= there != there
        values = choose(better, there, values)
        best = choose(better, np.asarray(at), best)
    return values, best


def _max_pool(
    self: Array,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    *,
    out: tuple[Geometry, ...],
) -> tuple[Array, ...]:
    k, n = kernel_size, len(kernel_size)
    s, p, d = expanded(stride, n, k), expanded(padding, n), expanded(dilation, n)
    x = _batched(self, n)
    space, result = x.shape[2:], out[0].shape[-n:]
    seen = _seen(x, result, k, s, p, d, _lowest(x.dtype))
    inside = _seen(np.ones((1, 1, *space), np.bool_), result, k, s, p, d, False)
    if prod(k) <= _FEW:
        values, best = _best_in_turn(seen, inside, k)
    else:
        flat = seen.reshape((*seen.shape[: 2 + n], prod(k)))
        best = best_of(flat, inside.reshape((1, 1, *result, -1)))
        values = np.take_along_axis(flat, best[..., None], -1)[..., 0]
    place = np.zeros(best.shape, np.int64)
    inner = places_within(best, k)
    for i in range(n):
        start = np.arange(result[i]) * s[i] - p[i]
        start = start.reshape([-1 if j == i else 1 for j in range(n)])
        place = place * space[i] + start + inner[i] * d[i]
    return values.reshape(out[0].shape), place.reshape(out[0].shape)


def _max_pool_rule(n: int) -> Callable[..., Any]:
    def infer(
        self: Geometry,
        kernel_size: Sizes,
        stride: Sizes = (),
        padding: Sizes = (0,),
        dilation: Sizes = (1,),
        ceil_mode: bool = False,
    ) -> tuple[Geometry, Geometry]:
        k = expanded(kernel_size, n)
        s, p, d = expanded(stride, n, k), expanded(padding, n), expanded(dilation, n)
        shape = pooled(f"max_pool{n}d", self, k, s, p, d, ceil_mode)
        return as_images(shape, self), as_images(shape, self, dtype=dt.int64)

    return infer


def _max_pool_cpu(n: int) -> Callable[..., Any]:
    def run(
        self: Array, kernel_size: Sizes, *rest: Any, out: tuple[Geometry, ...]
    ) -> tuple[Array, ...]:
        return _max_pool(self, expanded(kernel_size, n), *rest, out=out)

    return run


def unpooled(grad: Tensor, indices: Tensor, shape: Sizes, n: int) -> Tensor:
    """Adds each gradient at its maximum's place."""
    lead, area = shape[:-n], prod(shape[-n:])
    zeros = aten.zeros((*lead, area), dtype=grad.dtype, device=grad.device)
    flat = (*lead, prod(grad.shape[-n:]))
    where = aten.reshape(indices, flat)
    spread = aten.scatter_add(zeros, -1, where, aten.reshape(grad, flat))
    return aten.reshape(spread, shape)


def max_grad(n: int) -> Callable[..., Any]:
    """The derivative of a pooling to maxima of n spatial dimensions."""
    return lambda grad_out, self_geom, indices: unpooled(
        grad_out, indices, tuple(self_geom.shape), n
    )


def _max_samples(n: int) -> Callable[..., Any]:
    shape = (2, 3, 5, 6) if n == 2 else (1, 2, 4, 5, 4)

    def make() -> list[Sample]:
        samples = [Sample((Arg(shape, d), (2,))) for d in ("float32", "float64", "float16")]
        rest = ((3,) * n, (2,) * n, (1,) * n, (1,) * n)
        samples += [Sample((Arg(shape, "float64"), *rest, mode)) for mode in (False, True)]
        return [*samples, Sample((Arg(shape[1:], "float64"), (2,) * n, (1,) * n, (0,), (2,)))]

    return make


def max_pool(n: int, aclnn: object) -> None:
    """The row of max_pool{n}d_with_indices."""
    op(
        f"max_pool{n}d_with_indices(Tensor self, int[{n}] kernel_size, int[{n}] stride=[],"
        f" int[{n}] padding=0, int[{n}] dilation=1, bool ceil_mode=False)"
        " -> (Tensor out, Tensor indices)",
        infer=_max_pool_rule(n),
        cpu=_max_pool_cpu(n),
        aclnn=aclnn,
        lower=pool_windows.max_pool(n),
        grad={"self": max_grad(n)},
        unsupported={"bool complex": f"max_pool{n}d"},
        autocast="float32 on cpu" if n == 3 else "",
        samples=_max_samples(n),
        oracle=lambda torch: getattr(torch.ops.aten, f"max_pool{n}d_with_indices"),
        tolerance="exact",
        surface="none",
    )


def _full(name: str, n: int) -> Callable[..., Any]:
    """An argument as ACLNN wants it: one size per dimension."""

    def compute(args: dict[str, Any]) -> Sizes:
        kernel = expanded(args["kernel_size"], n)
        return expanded(args[name], n, kernel)

    return compute


def _geometry_args(n: int) -> tuple[Any, ...]:
    return tuple(_full(name, n) for name in ("kernel_size", "stride", "padding"))


max_pool(
    2,
    call(
        "aclnnMaxPool2dWithIndices",
        "self",
        *_geometry_args(2),
        _full("dilation", 2),
        "ceil_mode",
        "out",
        "indices",
        when=pool_windows.on_cann,
    ),
)
max_pool(
    3,
    call(
        "aclnnMaxPool3dWithArgmax",
        "self",
        *_geometry_args(3),
        _full("dilation", 3),
        "ceil_mode",
        "out",
        "indices",
        when=pool_windows.on_cann,
    ),
)


def _avg_rule(n: int) -> Callable[..., Any]:
    def infer(
        self: Geometry,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Geometry:
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        k = expanded(kernel_size, n)
        s, p = expanded(stride, n, k), expanded(padding, n)
        shape = pooled(f"avg_pool{n}d", self, k, s, p, (1,) * n, ceil_mode)
        return as_images(shape, self) if n == 2 else self.fresh(shape)

    return infer


def _avg_cpu(n: int) -> Callable[..., Any]:
    def run(
        self: Array,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes,
        ceil_mode: bool,
        include: bool,
        override: int | None,
        *,
        out: Geometry,
    ) -> Array:
        k = expanded(kernel_size, n)
        s, p = expanded(stride, n, k), expanded(padding, n)
        x, result = _batched(self, n), out.shape[-n:]
        seen = _seen(x, result, k, s, p, (1,) * n, 0)
        total = seen.sum(axis=tuple(range(2 + n, 2 + 2 * n)), dtype=x.dtype)
        counts = counts_of(x.shape[2:], result, k, s, p, include, override)
        return (total / counts.astype(x.dtype)).reshape(out.shape)

    return run


def _avg_back(n: int) -> Callable[..., Any]:
    def run(
        grad: Array,
        self: Array,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes,
        ceil_mode: bool,
        include: bool,
        override: int | None,
    ) -> Array:
        k = expanded(kernel_size, n)
        s, p = expanded(stride, n, k), expanded(padding, n)
        g, space = _batched(grad, n), self.shape[-n:]
        counts = counts_of(space, g.shape[2:], k, s, p, include, override).astype(g.dtype)
        share = g / counts
        parts = np.broadcast_to(share.reshape((*share.shape, *([1] * n))), (*share.shape, *k))
        return scatter_windows(parts, s, p, (1,) * n, k, space).reshape(self.shape)

    return run


def _avg_samples(n: int) -> Callable[..., Any]:
    shape = (2, 3, 5, 6) if n == 2 else (1, 2, 4, 5, 4)
    one, two, three = (1,) * n, (2,) * n, (3,) * n

    def make() -> list[Sample]:
        plain = (two, (), (0,), False, True, None)
        samples = [Sample((Arg(shape, d), *plain)) for d in ("float32", "float64")]
        samples += [
            Sample((Arg(shape, "float64"), three, two, one, mode, include, override))
            for mode in (False, True)
            for include, override in ((True, None), (False, None), (True, 5))
        ]
        return [*samples, Sample((Arg(shape[1:], "float64"), two, one, (0,), False, True, None))]

    return make


def avg_pool(n: int, forward: object, backward: object) -> None:
    """The rows of avg_pool{n}d and of its gradient, each the other's adjoint."""
    settings = (
        f"int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, bool ceil_mode=False,"
        " bool count_include_pad=True, int? divisor_override=None) -> Tensor"
    )
    names = "kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override"

    def lacking(kernel_name: str) -> UnsupportedDtypes:
        if n == 2:
            return {"bool narrow complex": kernel_name}
        return halves_elsewhere("bool narrow complex", f"{kernel_name}_out_frame")

    op(
        f"avg_pool{n}d(Tensor self, {settings}",
        infer=_avg_rule(n),
        cpu=_avg_cpu(n),
        aclnn=forward,
        lower=pool_windows.avg_pool(n),
        grad={"self": _adjoint(f"avg_pool{n}d_backward", "self", names)},
        unsupported=lacking(f"avg_pool{n}d"),
        samples=_avg_samples(n),
        oracle=lambda torch: getattr(torch.ops.aten, f"avg_pool{n}d"),
        autocast="float32 on cpu" if n == 3 else "",
        tolerance="accumulated",
        surface="none",
    )
    op(
        f"avg_pool{n}d_backward(Tensor grad_output, Tensor self, {settings}",
        infer=lambda grad, self, *rest: as_images(self.shape, self) if n == 2 else self.fresh(),
        cpu=_avg_back(n),
        aclnn=backward,
        lower=pool_windows.avg_pool_back(n),
        grad={"grad_output": _adjoint(f"avg_pool{n}d", "", names), "self": flat},
        unsupported=lacking(f"avg_pool{n}d_backward"),
        tolerance="accumulated",
        surface="none",
        samples=calls(
            (
                Arg((1, 2) + (2,) * n),
                Arg((1, 2) + (5,) * n),
                (3,) * n,
                (2,) * n,
                (0,) * n,
                False,
                True,
                None,
            )
        ),
        fixed_shape=True,
    )


def flat(self_geom: Geometry) -> Tensor:
    """The derivative of a constant slope: zeros, so that gradients of gradients are there."""
    zeros: Tensor = aten.zeros(self_geom.shape, dtype=self_geom.dtype, device=self_geom.device)
    return zeros


def _adjoint(name: str, more: str, settings: str) -> Any:
    """`aten.name(grad, …)` with the arguments that the settings name."""
    rest = f"{more}, {settings}" if more else settings
    reads = ("grad", *(part.strip() for part in rest.split(",")))
    return Derivative(lambda *values: getattr(aten, name)(*values), reads)


def _avg_aclnn(name: str, n: int, *lead: str, cube: bool) -> Any:
    divisor = lambda a: a["divisor_override"] or 0  # noqa: E731
    tail = ("mean_math_type", "out") if cube else ("out",)
    settings = (*_geometry_args(n), "ceil_mode", "count_include_pad", divisor)
    return call(name, *lead, *settings, *tail, when=pool_windows.on_cann)


avg_pool(
    2,
    _avg_aclnn("aclnnAvgPool2d", 2, "self", cube=True),
    _avg_aclnn("aclnnAvgPool2dBackward", 2, "grad_output", "self", cube=True),
)
avg_pool(
    3,
    _avg_aclnn("aclnnAvgPool3d", 3, "self", cube=False),
    _avg_aclnn("aclnnAvgPool3dBackward", 3, "grad_output", "self", cube=False),
)
