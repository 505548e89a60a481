"""Rows of sampling images and volumes at the places of a grid, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from typing import NamedTuple

from ...spec import SHORT_FLOATS, Derivative, in_dtypes
from ...words import *
from .norm_grads import masked_calls
from .upsample import warn_of_alignment

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")
_FAR = 1e9  # places beyond it, and NaN, lie outside of every image
_A = -0.75  # of the cubic convolution, torch's choice


class Setting(NamedTuple):
    """How a grid is read, by the numbers of torch's operator."""

    mode: int
    padding: int
    align: bool


class Tap(NamedTuple):
    """A corner of each place: where it lies, its weight, and the weight's first and second
    derivative by the grid."""

    at: Array
    weight: Array
    slope: Array
    bend: Array


def _reflected(x: Array, slope: Array, extent: int, align: bool) -> tuple[Array, Array]:
    low, span = (0.0, extent - 1.0) if align else (-0.5, float(extent))
    if span <= 0:
        return np.zeros_like(x), np.zeros_like(slope)
    slope = np.where(x < low, -slope, slope)
    away = np.abs(x - low)
    extra = np.fmod(away, span)
    even = np.fmod(np.floor(away / span), 2) == 0
    return np.where(even, extra + low, span - extra + low), np.where(even, slope, -slope)


def _padded(x: Array, slope: Array, extent: int, how: Setting) -> tuple[Array, Array]:
    """Places moved into the image as the padding says, and their slopes by the grid."""
    if how.padding == 2:
        x, slope = _reflected(x, slope, extent, how.align)
    if how.padding:
        inner = (x > 0) & (x < extent - 1)
        slope = np.where(inner, slope, 0)
        x = np.where(x > 0, np.minimum(x, extent - 1), 0)  # NaN as torch holds it
    return np.where(np.abs(x) < _FAR, x, -100), slope


def _tap(place: Array, extent: int, weight: Array, slope: Array, bend: Any = 0) -> Tap:
    inside = (place >= 0) & (place < extent)
    at = np.where(inside, place, 0).astype(np.int64)
    return Tap(at, *(np.where(inside, part, 0) for part in (weight, slope, bend)))


def _cubic(x: Array, slope: Array, extent: int, how: Setting) -> Iterator[Tap]:
    x = np.where(np.abs(x) < _FAR, x, -100)
    base = np.floor(x)
    for k in range(4):
        away = x - base + (1 - k)
        t, sign = np.abs(away), np.where(away < 0, -slope, slope)
        if k in (1, 2):
            weight = ((_A + 2) * t - (_A + 3)) * t * t + 1
            by_t = (3 * (_A + 2) * t - 2 * (_A + 3)) * t
            bend = 6 * (_A + 2) * t - 2 * (_A + 3)
        else:
            weight = ((_A * t - 5 * _A) * t + 8 * _A) * t - 4 * _A
            by_t = (3 * _A * t - 10 * _A) * t + 8 * _A
            bend = 6 * _A * t - 10 * _A
        place, _ = _padded(base + (k - 1), slope, extent, how)
        yield _tap(place, extent, weight, by_t * sign, bend * slope * slope)


def _taps(grid: Array, extent: int, how: Setting) -> list[Tap]:
    """The corners along one dimension of places in [-1, 1]."""
    x = (grid + 1) * ((extent - 1) / 2) if how.align else ((grid + 1) * extent - 1) / 2
    slope = np.full_like(x, (extent - 1 if how.align else extent) / 2)
    if how.mode == 2:
        return list(_cubic(x, slope, extent, how))
    x, slope = _padded(x, slope, extent, how)
    if how.mode == 1:
        return [_tap(np.rint(x), extent, np.ones_like(x), np.zeros_like(x))]
    low = np.floor(x)
    return [_tap(low, extent, low + 1 - x, -slope), _tap(low + 1, extent, x - low, slope)]


def _corners(grid: Array, space: tuple[int, ...], how: Setting) -> Iterator[tuple[Array, Any]]:
    """Of each place `[N, P, d]` every corner: its element of the image, and the derivative of its
    weight `[N, P]` by any of the place's values, in their order."""
    n = len(space)
    along = [_taps(grid[..., n - 1 - d], space[d], how) for d in range(n)]
    for taps in product(*along):
        at = np.ravel_multi_index(tuple(t.at for t in taps), space)
        yield at, partial(_derivative, taps[::-1])


def _derivative(taps: Sequence[Tap], *by: int) -> Any:
    return prod(tap[1 + by.count(d)] for d, tap in enumerate(taps))


def _flat(input: Array, grid: Array) -> tuple[Array, Array]:
    return (
        input.reshape(*input.shape[:2], prod(input.shape[2:])),
        grid.reshape(len(grid), prod(grid.shape[1:-1]), grid.shape[-1]),
    )


def _sampled(input: Array, grid: Array, *how: Any) -> Array:
    image, places = _flat(input, grid)
    total = np.zeros((*image.shape[:2], places.shape[1]), input.dtype)
    if how[:2] == (0, 0):  # weights of a place that is no number are none, and 0 times them too
        total += np.where(np.isfinite(places).all(-1), 0, np.nan).astype(input.dtype)[:, None]
    for at, weight in _corners(places, input.shape[2:], Setting(*how)):
        total += np.take_along_axis(image, at[:, None], 2) * weight()[:, None]
    return total.reshape(*input.shape[:2], *grid.shape[1:-1])


def _scatter(image: Array, at: Array, values: Array) -> None:
    batch, channel = np.arange(len(image))[:, None, None], np.arange(image.shape[1])[:, None]
    np.add.at(image, (batch, channel, at[:, None]), values)


def _sampled_back(grad: Array, input: Array, grid: Array, *rest: Any) -> tuple[Array, ...]:
    *how, needs = rest
    image, places = _flat(input, grid)
    flow = grad.reshape(*image.shape[:2], prod(grad.shape[2:]))
    to_image, to_places = np.zeros_like(image), np.zeros_like(places)
    for at, weight in _corners(places, input.shape[2:], Setting(*how)):
        _scatter(to_image, at, flow * weight()[:, None])
        share = (flow * np.take_along_axis(image, at[:, None], 2)).sum(1)
        for d in range(grid.shape[-1]):
            to_places[..., d] += weight(d) * share
    both = to_image.reshape(input.shape), to_places.reshape(grid.shape)
    return tuple(g if need else g[:0].ravel() for g, need in zip(both, needs, strict=True))


def _sampled_again(
    by_input: Array, by_grid: Array, grad: Array, input: Array, grid: Array, *how: Any
) -> tuple[Array, ...]:
    """Gradients of `_sampled_back` by (grad, input, grid): what it is the adjoint of, moved by
    `by_input` and `by_grid`."""
    image, places = _flat(input, grid)
    image_flow, place_flow = _flat(by_input, by_grid)
    flow = grad.reshape(*image.shape[:2], -1)
    to_grad, to_image, to_places = (np.zeros_like(t) for t in (flow, image, places))
    dims = range(grid.shape[-1])
    for at, weight in _corners(places, input.shape[2:], Setting(*how)):
        values, moved = (np.take_along_axis(t, at[:, None], 2) for t in (image, image_flow))
        along = sum(weight(d) * place_flow[..., d] for d in dims)
        to_grad += weight()[:, None] * moved + along[:, None] * values
        _scatter(to_image, at, flow * along[:, None])
        share, moving = (flow * values).sum(1), (flow * moved).sum(1)
        for d in dims:
            bend = sum(weight(d, e) * place_flow[..., e] for e in dims)
            to_places[..., d] += weight(d) * moving + bend * share
    return to_grad.reshape(grad.shape), to_image.reshape(input.shape), to_places.reshape(grid.shape)


def _shape(input: Geometry, grid: Geometry, mode: int, padding: int, align: bool) -> Geometry:
    for what, number, known in (("interpolation", mode, _MODES), ("padding", padding, _PADDINGS)):
        if number not in range(len(known)):
            raise RuntimeError(f"grid_sampler(): expected {what} mode 0, 1 or 2, got {number}")
    _check_grid(input, grid)
    if mode == 2 and input.ndim != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return input.fresh((*input.shape[:2], *grid.shape[1:-1]))


def _grads(grad: Geometry, input: Geometry, grid: Geometry, *rest: Any) -> tuple[Geometry, ...]:
    needs = rest[-1]
    return tuple(
        g.fresh(g.shape if need else (0,)) for g, need in zip((input, grid), needs, strict=True)
    )


def _check_grid(input: Geometry, grid: Geometry) -> None:
    sizes, places = list(input.shape), list(grid.shape)
    both = f"got input with sizes {sizes} and grid with sizes {places}"
    if input.ndim and grid.ndim and sizes[0] != places[0]:
        expected = f"grid and input to have same batch size, but {both}"
    elif grid.ndim and places[-1] != input.ndim - 2:
        expected = f"grid to have size {input.ndim - 2} in last dimension, but got grid with sizes"
        expected += f" {places}"
    elif 0 in sizes[2:]:
        expected = f"input to have non-empty spatial dimensions, but input has sizes {sizes} with"
        expected += f" dimension {sizes.index(0, 2)} being empty"
    elif input.ndim not in (4, 5) or input.ndim != grid.ndim:
        kind = "5D" if input.ndim == 5 else "4D"
        expected = f"{kind} input and grid with same number of dimensions, but {both}"
    else:
        return
    raise RuntimeError(f"grid_sampler(): expected {expected}")


_SETTING = "int interpolation_mode, int padding_mode, bool align_corners"
_NAMES = ("interpolation_mode", "padding_mode", "align_corners")


def _samples(rank: int) -> list[tuple[Any, ...]]:
    space = (4, 3) if rank == 2 else (3, 4, 3)
    image = Arg((1, 2, *space))
    grid = Arg((1, *(3, 2, 2)[:rank], rank), low=-1.2, high=1.2)
    modes = (0, 1, 2) if rank == 2 else (0, 1)
    return [(image, grid, m, p, m == 1) for m in modes for p in range(len(_PADDINGS))]


def _row(rank: int) -> None:
    """torch's operator of a rank, which takes its modes as numbers, and its gradient."""
    name, ascend = f"grid_sampler_{rank}d", f"aclnnGridSampler{rank}D"
    applies = in_dtypes("input", *SHORT_FLOATS, "float64")

    def slope(grad: Tensor, input: Tensor, grid: Tensor, needs: Any, *how: Any) -> Any:
        return getattr(aten, f"{name}_backward")(grad, input, grid, *how, tuple(needs))

    def again(by_input: Tensor | None, by_grid: Tensor | None, grad: Tensor, *rest: Any) -> Any:
        flows = (
            aten.zeros_like(like) if flow is None or not flow.numel() else flow
            for flow, like in zip((by_input, by_grid), rest, strict=False)
        )
        return getattr(aten, f"_{name}_again")(*flows, grad, *rest)

    kernel = {2: "grid_sampler_2d_cpu_kernel_impl", 3: "grid_sampler3d_cpu"}[rank]
    op(
        f"{name}(Tensor input, Tensor grid, {_SETTING}) -> Tensor",
        unsupported={"bool whole complex": kernel},
        infer=_shape,
        cpu=_sampled,
        aclnn=call(ascend, "input", "grid", *_NAMES, "out", when=applies),
        grad={("input", "grid"): Derivative(slope, ("grad", "input", "grid", "needs", *_NAMES))},
        samples=calls(*_samples(rank)),
        tolerance="chained",
        fixed_shape=True,
        surface="function",
    )
    op(
        f"{name}_backward(Tensor grad_output, Tensor input, Tensor grid, {_SETTING},"
        " bool[2] output_mask) -> (Tensor grad_input, Tensor grad_grid)",
        infer=_grads,
        cpu=_sampled_back,
        aclnn=masked_calls(
            f"{ascend}Backward", ("grad_input", "grad_grid"), "grad_output", "input", "grid",
            *_NAMES, applies=applies,
        ),
        grad={
            ("grad_output", "input", "grid"): Derivative(
                again,
                ("grad_grad_input", "grad_grad_grid", "grad_output", "input", "grid", *_NAMES),
            )
        },
        # Its gradients are second ones of the row above, which are compared there.
        samples=calls(*(
            (Arg((1, 2, *grid.shape[1:-1]), grad=False), replace(image, grad=False),
             replace(grid, grad=False), *how, (True, True))
            for image, grid, *how in _samples(rank)
        )),
        oracle=lambda torch: lambda *args: getattr(torch.ops.aten, f"{name}_backward")(
            *args[:-1], list(args[-1])
        ),
        tolerance="composite",
        surface="none",
        fixed_shape=True,
    )  # fmt: skip

    op(
        f"_{name}_again(Tensor grad_grad_input, Tensor grad_grad_grid, Tensor grad_output,"
        f" Tensor input, Tensor grid, {_SETTING}) -> (Tensor, Tensor, Tensor)",
        infer=lambda by_input, by_grid, grad, input, grid, *_: (
            grad.fresh(), input.fresh(), grid.fresh()
        ),
        cpu=_sampled_again,
        unsampled=f"second gradients of {name} run it",
        absent={"npu": "CANN has no second gradient of grid_sample"},
        tolerance="composite",
        fixed_shape=True,
    )  # fmt: skip


for _rank in (2, 3):
    _row(_rank)


@composite(
    f"grid_sampler(Tensor input, Tensor grid, {_SETTING}) -> Tensor",
    unsupported={"bool whole complex": "grid_sampler_2d_cpu_kernel_impl"},
    samples=calls(*(sample for rank in (2, 3) for sample in _samples(rank) if sample[2] == 0)),
    autocast="float32",
    tolerance="chained",
    surface="function",
)
def _grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """The operator of the input's rank."""
    if input.dtype is not grid.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(grid.dtype)}"
        )
    row = aten.grid_sampler_3d if input.dim() == 5 else aten.grid_sampler_2d
    return row(input, grid, interpolation_mode, padding_mode, align_corners)


@composite(
    "grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', "
    "bool? align_corners=None) -> Tensor",
    samples=calls(
        (Arg((1, 2, 4, 3)), Arg((1, 3, 2, 2), low=-1.2, high=1.2), "bilinear", "zeros", False),
        (Arg((1, 2, 4, 3)), Arg((1, 3, 2, 2), low=-1.2, high=1.2), "nearest", "border", True),
        (Arg((1, 2, 4, 3)), Arg((1, 3, 2, 2), low=-1.2, high=1.2), "bicubic", "reflection", False),
    ),
    tolerance="chained",
)
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """input `[N, C, H, W]`, grid `[N, H', W', 2]` in [-1, 1] →
    `[N, C, H', W']`; or the 3-d forms."""
    if mode not in _MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        warn_of_alignment()
    how = _MODES.index(mode), _PADDINGS.index(padding_mode), bool(align_corners)
    result: Tensor = aten.grid_sampler(input, grid, *how)
    return result
