"""Rows of pooling over windows that divide the input into an output of given size."""

from __future__ import annotations

from math import ceil, prod

from ...rules import as_images
from ...words import *
from .pool import best_of, flat, max_grad, places_within
from .pool_sizes import expanded
from .pool_windows import on_cann

Sizes = tuple[int, ...]


def _ranges(size: int, out: int) -> list[tuple[int, int]]:
    """The input range of each output of an adaptive pooling."""
    return [(i * size // out, ceil((i + 1) * size / out)) for i in range(out)]


def _averages(size: int, out: int, dtype: Dtype | None) -> Array:
    """A matrix [out, size] that takes the mean of each range."""
    weights = np.zeros((out, size), dtype)
    for i, (start, end) in enumerate(_ranges(size, out)):
        weights[i, start:end] = 1.0 / (end - start)
    return weights


def refuse_empty(name: str, shape: Sequence[int], n: int, channels: bool = True) -> None:
    """RuntimeError in torch's words for a line, plane or space without elements or channels."""
    first = len(shape) - n - channels
    empty = [d for d, size in enumerate(shape) if d >= first and not size]
    if empty:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but"
            f" input has sizes {list(shape)} with dimension {empty[0]} being empty"
        )


def _adaptive_rule(n: int, name: str) -> Callable[..., Any]:
    def infer(self: Geometry, output_size: Sizes) -> Geometry:
        maxima = "max" in name
        if self.ndim not in (n + 1, n + 2):
            raise RuntimeError(
                f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{':' * maxima}"
                f" {list(self.shape)}"
            )
        refuse_empty(name, self.shape, n, channels=maxima or n == 3)
        shape = (*self.shape[:-n], *expanded(output_size, n))
        bad = next((size for size in output_size if size < 0), None)
        if bad is not None and maxima:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {bad}: {list(shape)}"
            )
        if bad is not None:
            sizes = [str(size) for size in output_size]
            raise RuntimeError(
                f"{name}: elements of output_size must be greater than or equal to 0 but received"
                f" {{{sizes[0]}, {','.join(sizes[1:])}}}"
            )
        return as_images(shape, self) if n == 2 else self.fresh(shape)

    return infer


def _along(x: Array, matrices: list[Any]) -> Array:
    """Applies one matrix to each of the last dimensions."""
    for i, matrix in enumerate(reversed(matrices)):
        at = x.ndim - 1 - i
        x = np.moveaxis(np.matmul(np.moveaxis(x, at, -1), matrix.T), -1, at)
    return x


def _means(x: Any, outs: Sequence[int]) -> Any:
    """The mean of each range by itself: a product with zeros would spread infinities."""
    for i, out in enumerate(reversed(outs)):
        at = x.ndim - 1 - i
        ranges = _ranges(x.shape[at], out)
        parts = [x.take(range(start, end), at).mean(at, keepdims=True) for start, end in ranges]
        x = np.concatenate(parts, at) if parts else x.take([], at)
    return x


def _adaptive_avg(n: int) -> Callable[..., Any]:
    def run(self: Any, output_size: Sizes) -> Any:
        outs = expanded(output_size, n)
        if not np.isfinite(self).all():
            return _means(self, outs)
        sizes = zip(self.shape[-n:], outs, strict=True)
        return _along(self, [_averages(size, out, self.dtype) for size, out in sizes])

    return run


def _by_ranges(n: int) -> Callable[..., Tensor]:
    """`_means` of a tensor, for dtypes that CANN's pools do not take."""

    def lower(self: Tensor, output_size: Sizes) -> Tensor:
        for i, out in enumerate(reversed(expanded(output_size, n))):
            at = self.ndim - 1 - i
            parts = [
                aten.mean(aten.narrow(self, at, start, end - start), at, True)
                for start, end in _ranges(self.shape[at], out)
            ]
            self = aten.cat(parts, at) if parts else aten.narrow(self, at, 0, 0)
        return self

    return lower


def _back_by_ranges(n: int) -> Callable[..., Tensor]:
    """The adjoint of `_by_ranges`, a product with one matrix along each dimension."""

    def lower(grad_output: Tensor, self: Tensor) -> Tensor:
        result = grad_output
        for i in range(1, n + 1):
            matrix = aten.from_numpy(_averages(self.shape[-i], result.shape[-i], self.dtype.np))
            moved = aten.movedim(result, -i, -1) @ aten.to(matrix, self.device)
            result = aten.movedim(moved, -1, -i)
        return aten.contiguous(result)

    return lower


def _maxima_by_ranges(self: Tensor, output_size: Sizes) -> tuple[Tensor, Tensor]:
    n = 3
    space = self.shape[-n:]
    places = aten.reshape(aten.arange(0, prod(space), device=self.device), space)
    places = aten.expand(places, self.shape)
    for i, out in enumerate(reversed(expanded(output_size, n))):
        at = self.ndim - 1 - i
        values, there = [], []
        for start, end in _ranges(self.shape[at], out):
            value, best = aten.max(aten.narrow(self, at, start, end - start), at, True)
            values.append(value)
            there.append(aten.gather(aten.narrow(places, at, start, end - start), at, best))
        self, places = aten.cat(values, at), aten.cat(there, at)
    return self, places


def _adaptive_avg_back(n: int) -> Callable[..., Any]:
    def run(grad: Any, self: Any) -> Any:
        sizes = zip(self.shape[-n:], grad.shape[-n:], strict=True)
        return _along(grad, [_averages(size, out, grad.dtype).T for size, out in sizes])

    return run


def _adaptive_samples(n: int) -> Callable[..., Any]:
    shape = (2, 3, 5, 6) if n == 2 else (1, 2, 4, 5, 4)

    def make() -> list[Sample]:
        sizes = ((2, 3), (5, 1), (1, 1)) if n == 2 else ((2, 3, 1), (1, 1, 1))
        samples = [Sample((Arg(shape, "float64"), size)) for size in sizes]
        return [*samples, Sample((Arg(shape[1:], "float32"), sizes[0]))]

    return make


def adaptive_avg_pool(n: int, forward: str, backward: str) -> None:
    """The rows of _adaptive_avg_pool{n}d and of its gradient, each the other's adjoint."""
    name = f"_adaptive_avg_pool{n}d"
    kernel, end = f"adaptive_avg_pool{n}d", "_cpu" * (n == 3)
    op(
        f"{name}(Tensor self, int[{n}] output_size) -> Tensor",
        infer=_adaptive_rule(n, kernel),
        cpu=_adaptive_avg(n),
        aclnn=call(forward, "self", lambda a: expanded(a["output_size"], n), "out", when=on_cann),
        lower=_by_ranges(n),
        grad={"self": lambda grad, self: getattr(aten, f"{name}_backward")(grad, self)},
        unsupported={"bool whole complex": f"{kernel}{end}"},
        samples=_adaptive_samples(n),
        oracle=lambda torch: getattr(torch.ops.aten, kernel),
        autocast="float32 on cpu" if n == 3 else "",
        tolerance="accumulated",
        surface="none",
    )
    op(
        f"{name}_backward(Tensor grad_output, Tensor self) -> Tensor",
        infer=lambda grad_output, self: as_images(self.shape, self) if n == 2 else self.fresh(),
        cpu=_adaptive_avg_back(n),
        aclnn=call(backward, "grad_output", "self", "out", when=on_cann),
        lower=_back_by_ranges(n),
        grad={
            "grad_output": lambda grad, grad_output_geom: getattr(aten, name)(
                grad, tuple(grad_output_geom.shape[-n:])
            ),
            "self": flat,
        },
        tolerance="accumulated",
        surface="none",
        unsupported={"bool whole complex": f"{kernel}_backward{end}"},
        samples=calls((Arg((1, 2) + (2,) * n), Arg((1, 2) + (5,) * n))),
        fixed_shape=True,
    )


adaptive_avg_pool(2, "aclnnAdaptiveAvgPool2d", "aclnnAdaptiveAvgPool2dBackward")
adaptive_avg_pool(3, "aclnnAdaptiveAvgPool3d", "aclnnAdaptiveAvgPool3dBackward")


def _adaptive_max(n: int) -> Callable[..., Any]:
    def run(self: Any, output_size: Sizes, *, out: tuple[Geometry, ...]) -> tuple[Array, Array]:
        space, result = self.shape[-n:], expanded(output_size, n)
        values = np.empty(out[0].shape, self.dtype)
        places = np.empty(out[0].shape, np.int64)
        spans = [_ranges(size, count) for size, count in zip(space, result, strict=True)]
        for at in np.ndindex(*result):
            box = [spans[i][at[i]] for i in range(n)]
            part = self[(..., *(slice(a, b) for a, b in box))]
            flat = part.reshape((*part.shape[:-n], prod(part.shape[-n:])))
            best = best_of(flat)
            values[(..., *at)] = np.take_along_axis(flat, best[..., None], -1)[..., 0]
            inner = places_within(best, part.shape[-n:])
            place = np.zeros(best.shape, np.int64)
            for i in range(n):
                place = place * space[i] + inner[i] + box[i][0]
            places[(..., *at)] = place
        return values, places

    return run


def adaptive_max_pool(n: int, aclnn: object, lower: Callable[..., Any] | None = None) -> None:
    """The row of adaptive_max_pool{n}d."""
    rule = _adaptive_rule(n, f"adaptive_max_pool{n}d")

    def infer(self: Geometry, output_size: Sizes) -> tuple[Geometry, Geometry]:
        geoms = rule(self, output_size)
        return geoms, geoms.fresh(dtype=dt.int64, strides=geoms.strides)

    op(
        f"adaptive_max_pool{n}d(Tensor self, int[{n}] output_size) -> (Tensor out, Tensor indices)",
        infer=infer,
        cpu=_adaptive_max(n),
        aclnn=aclnn,
        lower=lower,
        grad={"self": max_grad(n)},
        unsupported={"bool whole complex": f"adaptive_max_pool{n}d" + "_cpu" * (n == 3)},
        samples=_adaptive_samples(n),
        oracle=lambda torch: getattr(torch.ops.aten, f"adaptive_max_pool{n}d"),
        tolerance="exact",
        surface="none",
    )


adaptive_max_pool(
    2,
    call(
        "aclnnAdaptiveMaxPool2d", "self", lambda a: expanded(a["output_size"], 2), "out", "indices"
    ),
)
adaptive_max_pool(
    3,
    call(
        "aclnnAdaptiveMaxPool3d", "self", lambda a: expanded(a["output_size"], 3), "out", "indices",
        when=on_cann,
    ),
    _maxima_by_ranges,
)  # fmt: skip
