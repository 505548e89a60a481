"""Rows of interpolation by weights (linear to trilinear, bicubic) and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from ...._compat.warn_once import warn
from ...._tensor.recording import unrepeatable
from ...rules import as_images
from ...samples import FLOATS
from ...spec import SHORT_FLOATS, Derivative, in_dtypes
from ...words import *
from .norm_grads import wide

Sizes = tuple[int, ...]
Scales = tuple[float | None, ...]
_KINDS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
_LETTERS = ("d", "h", "w")


def upsample_row(mode: str) -> str:
    """The row of a mode of interpolate."""
    return f"upsample_{mode}{_KINDS[mode]}d"


class Taps(NamedTuple):
    """What each output of a dimension is summed from: `[taps, out]` places and their weights."""

    places: Array
    weights: Array


def step_of(size: int, out: int, align: bool, scale: float | None) -> float:
    """How far apart in the input neighbours of the output lie."""
    if align:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return 1.0 / scale if scale is not None else size / out


def taps_of(
    cubic: bool, size: int, out: int, align: bool, scale: float | None, kind: Any = np.float32
) -> Taps:
    """Corners lie on corners where `align`, else the centres of pixels on centres; places are
    numbers of `kind`, as torch's and CANN's kernels compute them."""
    step, half, at = kind(step_of(size, out, align, scale)), kind(0.5), np.arange(out, dtype=kind)
    at = at * step if align else (at + half) * step - half
    if not (align or cubic):
        at = np.maximum(at, kind(0))
    base = np.floor(at)
    share = at - base
    low = base.astype(np.int64)
    if not cubic:
        low = np.minimum(low, size - 1)
        share = np.clip(at - low, 0.0, 1.0)
        return Taps(np.stack([low, np.minimum(low + 1, size - 1)]), np.stack([1 - share, share]))
    places = np.clip(low + np.arange(-1, 3)[:, None], 0, size - 1)
    weights = [_far(share + 1), _near(share), _near(1 - share), _far(2 - share)]
    return Taps(places, np.stack(weights))


_A = -0.75  # of the cubic convolution, torch's choice


def _near(x: Array) -> Array:
    return np.asarray(((_A + 2) * x - (_A + 3)) * x * x + 1)


def _far(x: Array) -> Array:
    return np.asarray(((_A * x - 5 * _A) * x + 8 * _A) * x - 4 * _A)


def _spread(weights: Array, like: Array, dim: int) -> Array:
    """The weights of one tap beside an array whose `dim` they belong to."""
    return weights.astype(like.dtype).reshape((-1, *[1] * (like.ndim - 1 - dim)))


def _resampled(x: Array, dim: int, taps: Taps) -> Array:
    total = None
    for places, weights in zip(*taps, strict=True):
        term = x.take(places, axis=dim)
        term *= _spread(weights, x, dim)
        total = term if total is None else total + term
    return np.asarray(total)


def _gathered(grad: Array, dim: int, taps: Taps, size: int) -> Array:
    """The adjoint of `_resampled`: places never fall, so those of one input are neighbours."""
    sums = np.zeros((*grad.shape[:dim], size, *grad.shape[dim + 1 :]), grad.dtype)
    front = np.moveaxis(sums, dim, 0)
    for places, weights in zip(*taps, strict=True):
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        parts = np.moveaxis(grad * _spread(weights, grad, dim), dim, 0)
        front[places[starts]] += np.add.reduceat(parts, starts, axis=0)
    return sums


def _tensors(taps: Taps, like: Tensor, dim: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Places and weights of each tap beside a tensor."""
    shape = (-1, *[1] * (like.ndim - 1 - dim))
    for places, weights in zip(*taps, strict=True):
        factors = aten.tensor(weights.tolist(), dtype=like.dtype, device=like.device)
        yield aten.tensor(places.tolist(), device=like.device), aten.reshape(factors, shape)


def weighted(x: Tensor, dim: int, taps: Taps) -> Tensor:
    """`_resampled` by calls."""
    terms = [aten.index_select(x, dim, p) * w for p, w in _tensors(taps, x, dim)]
    return sum(terms[1:], terms[0])


_ADDRESSES = 1 << 47  # bytes of a process's addresses (x86-64 and AArch64 with 48 bits)
_LONGEST = 1 << 31  # elements of one dimension: places are listed before they are picked


def refuse_memory(shape: Sequence[int], nbytes: int) -> None:
    """RuntimeError for more than any memory holds, before places are listed."""
    if nbytes > _ADDRESSES or max(shape[2:]) > _LONGEST:
        raise RuntimeError(
            f"interpolate to {list(shape)}: you tried to allocate {nbytes} bytes; no machine has"
            " as much memory"
        )


def _row(mode: str) -> None:
    n, cubic = _KINDS[mode], mode == "bicubic"
    name = upsample_row(mode)
    ascend = "aclnnUpsample" + name.removeprefix("upsample_").capitalize()
    scales = ["scales"] if n == 1 else [f"scales_{letter}" for letter in _LETTERS[-n:]]
    scale_args = ", ".join(f"float? {scale}=None" for scale in scales)
    zeros = tuple((lambda a, scale=scale: float(a[scale] or 0)) for scale in scales)
    settings = ("output_size", "align_corners", *scales)

    def each(
        size: Sizes, to: Sizes, align: bool, factors: Scales, values: Array | Tensor
    ) -> list[Taps]:
        parts = zip(size, to, factors, strict=True)
        kind: Any = np.float64 if values.dtype in (np.float64, dt.float64) else np.float32
        return [taps_of(cubic, s, o, align, scale, kind) for s, o, scale in parts]

    def forward(x: Array, to: Sizes, align: bool, *factors: float | None) -> Array:
        for dim, taps in enumerate(each(x.shape[2:], to, align, factors, x)):
            x = _resampled(x, dim + 2, taps)
        return x

    def lowered(x: Tensor, to: Sizes, align: bool, *factors: float | None) -> Tensor:
        dtype, x = x.dtype, wide(x)
        for dim, taps in enumerate(each(x.shape[2:], to, align, factors, x)):
            x = weighted(x, dim + 2, taps)
        return x if x.dtype is dtype else x.to(dtype)

    def backward(grad: Array, to: Sizes, size: Sizes, align: bool, *factors: float | None) -> Array:
        for dim, taps in reversed(list(enumerate(each(size[2:], to, align, factors, grad)))):
            grad = _gathered(grad, dim + 2, taps, size[dim + 2])
        return grad

    def lowered_backward(
        grad: Tensor, to: Sizes, size: Sizes, align: bool, *factors: float | None
    ) -> Tensor:
        dtype, grad = grad.dtype, wide(grad)
        parts = each(size[2:], to, align, factors, grad)
        for dim, taps in reversed(list(enumerate(parts))):
            shape = (*grad.shape[: dim + 2], size[dim + 2], *grad.shape[dim + 3 :])
            total = aten.zeros(shape, dtype=grad.dtype, device=grad.device)
            for places, weights in _tensors(taps, grad, dim + 2):
                total = aten.index_add(total, dim + 2, places, grad * weights)
            grad = total
        return grad if grad.dtype is dtype else grad.to(dtype)

    def shape(self: Geometry, to: Sizes, *rest: object) -> Geometry:
        result = (*self.shape[:2], *to)
        refuse_memory(result, prod(result) * self.dtype.itemsize)
        return as_images(result, self)

    def source(grad: Geometry, to: Sizes, size: Sizes, *rest: object) -> Geometry:
        for dim, (size_in, size_out) in enumerate(zip(grad.shape, (*size[:2], *to), strict=True)):
            if size_in != size_out:
                raise RuntimeError(
                    "Expected grad_output to have the same shape as output;"
                    f" output.size({dim}) = {size_out} but got grad_output.size({dim}) = {size_in}"
                )
        refuse_memory(size, prod(size) * grad.dtype.itemsize)
        return as_images(tuple(size), grad)

    def slope(grad: Tensor, self_geom: Geometry, to: Sizes, align: bool, *factors: Any) -> Tensor:
        result: Tensor = getattr(aten, f"{name}_backward")(
            grad, to, tuple(self_geom.shape), align, *factors
        )
        return result

    def again(grad: Tensor, to: Sizes, align: bool, *factors: Any) -> Tensor:
        result: Tensor = getattr(aten, name)(grad, to, align, *factors)
        return result

    small, large = (1, 2, *(4, 3, 5)[:n]), (6, 4, 3)[:n]
    forms: Sequence[tuple[Any, ...]] = (
        (large, False, *[None] * n), (large, True, *[None] * n),
        (tuple(2 * s for s in small[2:]), False, *[2.0] * n),
    )  # fmt: skip

    op(
        f"{name}(Tensor self, int[{n}] output_size, bool align_corners, {scale_args}) -> Tensor",
        infer=shape,
        cpu=forward,
        lower=lowered,
        aclnn=call(
            ascend,
            "self",
            "output_size",
            "align_corners",
            *zeros,
            "out",
            when=in_dtypes("self", *SHORT_FLOATS),
        ),
        grad={"self": Derivative(slope, ("grad", "self_geom", *settings))},
        samples=lambda: [Sample((Arg(small, d), *form)) for form in forms for d in FLOATS],
        oracle=lambda torch: getattr(torch.ops.aten, name),
        tolerance="composite",
        surface="none",
        fixed_shape=True,
    )
    op(
        f"{name}_backward(Tensor grad_output, int[{n}] output_size, int[{n + 2}] input_size,"
        f" bool align_corners, {scale_args}) -> Tensor",
        infer=source,
        cpu=backward,
        lower=lowered_backward,
        aclnn=call(
            f"{ascend}Backward", "grad_output", "output_size", "input_size", "align_corners",
            *zeros, "out", when=in_dtypes("grad_output", *SHORT_FLOATS),
        ),
        grad={"grad_output": Derivative(again, ("grad", *settings))},
        samples=lambda: [
            Sample((Arg((1, 2, *form[0]), d), form[0], small, *form[1:]))
            for form in forms for d in FLOATS
        ],
        tolerance="composite",
        surface="none",
        fixed_shape=True,
    )  # fmt: skip


for _mode in _KINDS:
    _row(_mode)


def warn_of_alignment() -> None:
    """torch's warning where nobody said whether corners are aligned."""
    unrepeatable()
    warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since"
        " 1.3.0. Please specify align_corners=True if the old behavior is desired. See the"
        " documentation of grid_sample for details.",
    )
