"""Rows of pooling over windows of a given size: maxima with their places, and means."""

from __future__ import annotations

from math import prod

from ...._compat.unsupported_dtypes import UnsupportedDtypes, halves_elsewhere
from ...choice import choose
from ...rules import as_images
from ...spec import Derivative
from ...words import *
from .conv import scatter_windows, windows

Sizes = tuple[int, ...]


def expanded(value: Sizes, n: int, default: Sizes = ()) -> Sizes:
    """One size per dimension; an empty list means the default."""
    value = value or default
    return value * n if len(value) == 1 else value


def refuse_windows(kernel: Sizes, stride: Sizes, dilation: Sizes) -> None:
    """RuntimeError in torch's words for windows that have no elements or do not move."""
    if any(abs(n) >= 1 << 31 for n in (*kernel, *stride, *dilation)):
        raise RuntimeError("value cannot be converted to type int without overflow")
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    named = (
        ("kernel size", "k", kernel),
        ("stride", "d", stride),
        ("dilation", "dilation", dilation),
    )
    for name, short, sizes in named:
        if any(size < 1 for size in sizes):
            axes = zip("THW"[-len(sizes) :], sizes, strict=True)
            settings = " ".join(f"{short}{axis}: {size}" for axis, size in axes)
            raise RuntimeError(f"{name} should be greater than zero, but got {settings}")


def extent_of(size: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    span = size + 2 * p - d * (k - 1) - 1
    extent = (-(-span // s) if ceil_mode else span // s) + 1
    # The last window has to start inside the input or its left padding.
    return extent - 1 if ceil_mode and (extent - 1) * s >= size + p else extent


def _require_positive(shape: Sizes, n: int, name: str) -> None:
    """Nothing but the batch may be empty."""
    if len(shape) in (n + 1, n + 2) and all(shape[-n - 1 :]):
        return
    if n == 2 and name != "max_pool2d":
        wrap_dim(-3, len(shape))  # IndexError
    if n == 2 and len(shape) not in (3, 4) and name == "max_pool2d":
        raise RuntimeError("non-empty 3D or 4D (batch mode) tensor expected for input")
    if n == 2:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but"
            f" got:{list(shape)}"
        )
    raise RuntimeError(
        f"{_KERNELS[name]}(): Expected input's non-batch dimensions to have positive length, but"
        f" input has a shape of {list(shape)} and non-batch dimension 0 has length zero!"
    )


# What torch's kernels call themselves where they refuse empty inputs.
_KERNELS = {"max_pool3d": "max_pool3d_with_indices_out_cpu_template", "avg_pool3d": "avg_pool3d"}


def _refuse_pads(kernel: Sizes, padding: Sizes, dilation: Sizes) -> None:
    for p, k, d in zip(padding, kernel, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > k // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={p}, kernel_size={k} and dilation={d}"
            )


def _too_small(name: str, shape: Sizes, kernel: Sizes, out: Sizes) -> str:
    n = len(kernel)
    if name == "avg_pool3d":
        image, window = (
            " ".join(f"{short}{axis}: {size}" for axis, size in zip("THW", sizes, strict=True))
            for short, sizes in (("", shape[-n:]), ("k", kernel))
        )
        return f"input image ({image}) smaller than kernel size ({window})"
    before, after = ("x".join(map(str, (shape[-n - 1], *s))) for s in (shape[-n:], out))
    return (
        f"Given input size: ({before}). Calculated output size: ({after}). Output size is too small"
    )


def _pooled(
    name: str,
    self: Geometry,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> Sizes:
    n = len(kernel)
    if n == 3 and self.ndim not in (4, 5):
        raise RuntimeError("non-empty 4D or 5D (batch mode) tensor expected for input")
    if name == "avg_pool2d":
        wrap_dim(-3, self.ndim)
    refuse_windows(kernel, stride, dilation)
    _refuse_pads(kernel, padding, dilation)
    _require_positive(self.shape, n, name)
    out_sizes = tuple(
        extent_of(*sizes, ceil_mode)
        for sizes in zip(self.shape[-n:], kernel, stride, padding, dilation, strict=True)
    )
    if any(size < 1 for size in out_sizes):
        raise RuntimeError(_too_small(name, self.shape, kernel, out_sizes))
    return (*self.shape[:-n], *out_sizes)


def _batched(x: Array, n: int) -> Array:
    return x if x.ndim == n + 2 else x[None]


def _covered(space: Sizes, out: Sizes, k: Sizes, s: Sizes, p: Sizes, d: Sizes) -> list[Any]:
    """Padding at both ends of each dimension, so that every window has its elements."""
    return [
        (p_, max(p_, (m - 1) * s_ + d_ * (k_ - 1) + 1 - n - p_))
        for n, m, k_, s_, p_, d_ in zip(space, out, k, s, p, d, strict=True)
    ]


def _seen(x: Array, out: Sizes, k: Sizes, s: Sizes, p: Sizes, d: Sizes, fill: Number) -> Array:
    edges = _covered(x.shape[2:], out, k, s, p, d)
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
    inner = np.unravel_index(best, k)
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
        shape = _pooled(f"max_pool{n}d", self, k, s, p, d, ceil_mode)
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
    ),
)


def _counts(
    space: Sizes, out: Sizes, k: Sizes, s: Sizes, p: Sizes, include: bool, override: int | None
) -> Array:
    """What each window's sum is divided by, [*out]."""
    if override is not None:
        return np.asarray(float(override))
    total: Any = np.ones(())
    for n, m, k_, s_, p_ in zip(space, out, k, s, p, strict=True):
        start = np.arange(m) * s_ - p_
        end = np.minimum(start + k_, n + p_)
        counts = end - start if include else np.minimum(end, n) - np.maximum(start, 0)
        total = total[..., None] * counts
    return total


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
        shape = _pooled(f"avg_pool{n}d", self, k, s, p, (1,) * n, ceil_mode)
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
        counts = _counts(x.shape[2:], result, k, s, p, include, override)
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
        counts = _counts(space, g.shape[2:], k, s, p, include, override).astype(g.dtype)
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
        oracle=lambda torch: getattr(torch.ops.aten, f"avg_pool{n}d_backward"),
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
    return call(name, *lead, *_geometry_args(n), "ceil_mode", "count_include_pad", divisor, *tail)


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
