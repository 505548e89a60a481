"""Rows of interpolation and grid sampling: each spatial dimension is picked and weighted."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from ...._tensor import dtype as dt
from ...._tensor.tensor import Tensor
from ...._tensor.types import Number
from ...limits import reserve
from ...samples import Arg, Sample, calls
from ...spec import aten, composite
from .antialias import FILTERS, rounded, shrunk, shrunk_bytes
from .pools import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .upsample import refuse_memory, step_of, taps_of, weighted

_LINEAR = {"linear": 3, "bilinear": 4, "trilinear": 5}
_WEIGHTED = {"bicubic", *_LINEAR}  # rows of upsample.py
_MODES = {"nearest", "nearest-exact", "area", "bicubic", *_LINEAR}


@composite(
    "interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, str "
    "mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, bool "
    "antialias=False) -> Tensor",
    surface="nn",
    samples=calls(
        Sample((Arg((1, 2, 4)), 7), {"mode": "linear"}),
        Sample((Arg((1, 2, 4, 3)), (5, 6)), {"mode": "bilinear", "align_corners": True}),
        Sample((Arg((1, 2, 4, 3)), None, 2.0), {"mode": "bicubic"}),
        Sample((Arg((1, 2, 4, 3)), (2, 2)), {"mode": "area"}),
        Sample((Arg((1, 2, 6, 5)), (3, 2)), {"mode": "bicubic", "antialias": True}),
        (Arg((1, 2, 4, 3)), None, 1.5),
        Sample((Arg((1, 2, 4)), 7, None, "bilinear"), error=True),
    ),
    tolerance="chained",
)
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """Resizes the spatial dims of `[N, C, *]` to `size`, or by `scale_factor`.

    Modes: nearest, nearest-exact, linear (3-D), bilinear and bicubic (4-D), trilinear (5-D), area.
    """
    _check_mode(input, mode, align_corners)
    if antialias and not (mode in FILTERS and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D"
            " tensor as input"
        )
    dims = input.dim() - 2
    scales = _as_list(scale_factor, input.shape[2:], "scale_factor")
    sizes = _output_size(input, size, scales, dims)
    _refuse_sizes(input, sizes)
    if size is not None or recompute_scale_factor:
        scales = None
    if mode == "area":
        pool = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[dims - 1]
        return pool(input, tuple(sizes))
    if not antialias and mode in _WEIGHTED and input.is_floating_point():
        factors = [None] * dims if scales is None else scales
        row = getattr(aten, f"upsample_{mode}{dims}d")
        return row(input, tuple(sizes), bool(align_corners), *factors)
    result: Any = input
    resized = shrunk if antialias else _resized
    places = list(enumerate(sizes))
    if input.dtype is dt.uint8 and not mode.startswith("nearest"):
        resized = shrunk_bytes if antialias else rounded(resized)
        places.reverse()  # torch rounds after each dimension, the last one first
    for i, out in places:
        scale = None if scales is None else scales[i]
        result = resized(result, i + 2, out, scale, mode, bool(align_corners))
    return result


def _check_mode(input: Tensor, mode: str, align_corners: bool | None) -> None:
    expected = 4 if mode == "bicubic" else _LINEAR.get(mode, input.dim())
    wrong = input.dim() != expected
    if mode not in _MODES or input.dim() not in (3, 4, 5) or (wrong and mode == "bicubic"):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the "
            "modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area |"
            f" nearest-exact (got {mode})"
        )
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: "
            "linear | bilinear | bicubic | trilinear"
        )
    if wrong:
        raise NotImplementedError(
            f"Got {input.dim()}D input, but {mode} mode needs {expected}D input"
        )


def _as_list(
    value: Number | tuple[float, ...] | tuple[int, ...] | None, space: Sequence[int], name: str
) -> list[Any] | None:
    dims = len(space)
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        return [value] * dims
    if len(value) != dims:
        axes = "o" if name == "output size" else "s"
        raise ValueError(
            f"Input and {name.split()[0]} must have the same number of spatial dimensions, but got "
            f"input with spatial dimensions of {list(space)} and {name} of"
            f"{'' if axes == 'o' else ' shape'} {value}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            f"{name} in ({axes}1, {axes}2, ...,{axes}K) format."
        )
    return list(value)


def _output_size(
    input: Tensor, size: int | tuple[int, ...] | None, scales: list[Any] | None, dims: int
) -> list[int]:
    if size is not None and scales is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    sizes = _as_list(size, input.shape[2:], "output size")
    if sizes is not None:
        return [int(s) for s in sizes]
    if scales is None:
        raise ValueError("either size or scale_factor should be defined")
    target = [float(s) * f for s, f in zip(input.shape[2:], scales, strict=True)]
    for extent in target:
        if not abs(extent) < 1 << 63:
            raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return [math.floor(extent) for extent in target]


def _axes(sizes: Sequence[int]) -> str:
    names = "DHW" if len(sizes) > 1 else "W"
    pairs = zip(names[-len(sizes) :], sizes, strict=True)
    return ", ".join(f"{axis}: {size}" for axis, size in pairs)


def _refuse_sizes(input: Tensor, sizes: list[int]) -> None:
    """RuntimeError in torch's words for sizes without elements, or that no memory has."""
    space = list(input.shape[2:])
    if any(size < 1 for size in (*space, *sizes)):
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({_axes(space)})"
            f" output ({_axes(sizes)})"
        )
    shape = (*input.shape[:2], *sizes)
    nbytes = input._geom.fresh(shape).numel * input.element_size()
    refuse_memory(shape, nbytes)
    reserve(shape, input)


def _resized(x: Tensor, dim: int, out: int, scale: float | None, mode: str, align: bool) -> Tensor:
    size = x.size(dim)
    if mode.startswith("nearest"):
        if size == out and scale is None:
            return x
        return x.index_select(dim, _index(_nearest(size, out, scale, mode), x))
    return weighted(x, dim, taps_of(mode == "bicubic", size, out, align, scale))


def _index(values: list[int], like: Any) -> Any:
    return aten.tensor(values, device=like.device, dtype=dt.int64)


def _nearest(size: int, out: int, scale: float | None, mode: str) -> list[int]:
    step = step_of(size, out, False, scale)
    shift = 0.5 if mode == "nearest-exact" else 0.0
    return [min(math.floor((i + shift) * step), size - 1) for i in range(out)]


@composite(
    "upsample(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode='nearest', "
    "bool? align_corners=None) -> Tensor",
    surface="nn",
    samples=calls((Arg((1, 2, 4, 3)), (5, 6))),
    tolerance="chained",
)
def upsample(
    input: Tensor,
    size: tuple[int, ...] | None = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The former name of interpolate."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


@composite(
    "upsample_nearest(Tensor input, int[]? size=None, float[]? scale_factor=None) -> Tensor",
    surface="nn",
    samples=calls((Arg((1, 2, 4, 3)), (5, 6))),
    tolerance="accumulated",
)
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    """interpolate with mode nearest."""
    return interpolate(input, size, scale_factor, mode="nearest")


@composite(
    "upsample_bilinear(Tensor input, int[]? size=None, float[]? scale_factor=None) -> Tensor",
    surface="nn",
    samples=calls((Arg((1, 2, 4, 3)), (5, 6))),
    tolerance="chained",
)
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    """interpolate with mode bilinear and aligned corners."""
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


@composite(
    "affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor",
    surface="nn",
    samples=calls((Arg((2, 2, 3)), (2, 1, 3, 4)), (Arg((1, 3, 4)), (1, 1, 2, 3, 2), True)),
    tolerance="chained",
)
def affine_grid(theta: Tensor, size: tuple[int, ...], align_corners: bool | None = None) -> Tensor:
    """theta `[N, 2, 3]` and size (N, C, H, W) → grid `[N, H, W, 2]`; or the 3-d forms."""
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    space = list(size)[2:]
    n = len(space)
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms,"
            f" respectively. Got size {size}."
        )
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. "
            f"Got {theta.shape}."
        )
    if min(size, default=0) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    # Memory that is not there is refused before anything is computed.
    aten.empty((theta.size(0), *space, n + 1), dtype=theta.dtype, device=theta.device)
    axes = [_grid_axis(extent, bool(align_corners), theta) for extent in space]
    mesh = aten.meshgrid(*axes, indexing="ij")
    # Coordinates run x, y, z: the last spatial dimension first.
    base = aten.stack([*reversed(mesh), aten.ones_like(mesh[0])], -1)
    flat = base.reshape(1, -1, n + 1).expand(theta.size(0), -1, -1)
    return aten.bmm(flat, theta.transpose(1, 2)).reshape(theta.size(0), *space, n)


def _grid_axis(extent: int, align: bool, like: Tensor) -> Tensor:
    end = 0 if extent == 1 else 1 if align else 1 - 1 / extent
    return aten.linspace(-end, end, extent, device=like.device, dtype=like.dtype)


_GRID_MODES = ("bilinear", "nearest", "bicubic")
_GRID_PADDINGS = ("zeros", "border", "reflection")


def _grid_sampler(name: str, ranks: tuple[int, ...], kernel: str) -> None:
    """torch's operator, which takes its modes as numbers."""

    def body(
        input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Tensor:
        if interpolation_mode not in range(len(_GRID_MODES)):
            raise RuntimeError(
                f"grid_sampler(): expected interpolation mode 0, 1 or 2, got {interpolation_mode}"
            )
        if padding_mode not in range(len(_GRID_PADDINGS)):
            raise RuntimeError(
                f"grid_sampler(): expected padding mode 0, 1 or 2, got {padding_mode}"
            )
        mode, padding = _GRID_MODES[interpolation_mode], _GRID_PADDINGS[padding_mode]
        return grid_sample(input, grid, mode, padding, align_corners)

    shapes = [((1, 2, 4, 3), (1, 3, 2, 2)), ((1, 2, 3, 4, 3), (1, 2, 3, 2, 3))]
    composite(
        f"{name}(Tensor input, Tensor grid, int interpolation_mode, int padding_mode,"
        " bool align_corners) -> Tensor",
        body,
        unsupported={"bool whole complex": kernel},
        samples=calls(*(
            (Arg(x), Arg(grid, low=-1.2, high=1.2), 0, padding, False)
            for x, grid in shapes if len(x) in ranks for padding in (0, 1, 2)
        )),
        tolerance="chained",
    )  # fmt: skip


_grid_sampler("grid_sampler", (4, 5), "grid_sampler_2d_cpu_kernel_impl")
_grid_sampler("grid_sampler_2d", (4,), "grid_sampler_2d_cpu_kernel_impl")
_grid_sampler("grid_sampler_3d", (5,), "grid_sampler3d_cpu")


@composite(
    "grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', "
    "bool? align_corners=None) -> Tensor",
    unsupported={"bool whole complex": "grid_sampler_2d_cpu_kernel_impl"},
    surface="nn",
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
    if mode not in _GRID_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in _GRID_PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    align = bool(align_corners)
    _check_grid(input, grid)
    space = list(input.shape[2:])
    if mode == "bicubic" and len(space) != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    places = []
    for i, extent in enumerate(reversed(space)):
        x = grid[..., i]
        x = (x + 1) * ((extent - 1) / 2) if align else ((x + 1) * extent - 1) / 2
        places.append(x if mode == "bicubic" else _reflected(x, extent, padding_mode, align))
    places.reverse()
    if mode == "nearest":
        values = _corner(input, [aten.round(p) for p in places], padding_mode, align)
        if not grid.requires_grad:
            return values
        level = places[0].masked_fill(aten.ones_like(places[0], dtype=dt.bool), 0.0)
        return values + level.unsqueeze(1)  # its derivative by the grid is 0, not absent
    if mode == "bicubic":
        return _bicubic_grid(input, places, padding_mode, align)
    return _linear_grid(input, places, align)


def _check_grid(input: Tensor, grid: Tensor) -> None:
    sizes, places = list(input.shape), list(grid.shape)
    both = f"got input with sizes {sizes} and grid with sizes {places}"
    if input.dim() and grid.dim() and sizes[0] != places[0]:
        expected = f"grid and input to have same batch size, but {both}"
    elif grid.dim() and places[-1] != input.dim() - 2:
        expected = f"grid to have size {input.dim() - 2} in last dimension, but got grid with sizes"
        expected += f" {places}"
    elif 0 in sizes[2:]:
        expected = f"input to have non-empty spatial dimensions, but input has sizes {sizes} with"
        expected += f" dimension {sizes.index(0, 2)} being empty"
    elif input.dim() not in (4, 5) or input.dim() != grid.dim():
        kind = "5D" if input.dim() == 5 else "4D"
        expected = f"{kind} input and grid with same number of dimensions, but {both}"
    else:
        return
    raise RuntimeError(f"grid_sampler(): expected {expected}")


def _reflected(x: Tensor, extent: int, padding: str, align: bool) -> Tensor:
    """Moves coordinates outside the image as the padding says; zeros leaves them outside."""
    if padding == "zeros":
        return x
    if padding == "reflection":
        low, span = (0.0, extent - 1.0) if align else (-0.5, float(extent))
        if span <= 0:
            return aten.zeros_like(x)
        x = (x - low).abs()
        extra = aten.fmod(x, span)
        flips = aten.floor(x / span)
        even = aten.fmod(flips, 2) == 0
        x = aten.where(even, extra + low, span - extra + low)
    # NaN as torch holds it. On the border itself the gradient is 0, as hardtanh's is.
    return aten.hardtanh(x.masked_fill(aten.isnan(x), 0.0), 0.0, extent - 1.0)


def _corner(input: Tensor, places: list[Any], padding: str, align: bool) -> Tensor:
    """The input's values at whole coordinates `[N, *out]`, zero outside, as `[N, C, *out]`."""
    space = list(input.shape[2:])
    flat: Any = 0
    inside: Any = None
    for place, extent in zip(places, space, strict=True):
        place = _reflected(place, extent, padding, align)
        ok = (place >= 0) & (place <= extent - 1)
        inside = ok if inside is None else inside & ok
        flat = flat * extent + place.masked_fill(ok.logical_not(), 0.0).to(dt.int64)
    n, c = input.size(0), input.size(1)
    out = list(flat.shape[1:])
    index = flat.reshape(n, 1, -1).expand(n, c, -1)
    values = input.reshape(n, c, -1).gather(2, index).reshape(n, c, *out)
    return values * inside.to(input.dtype).unsqueeze(1)


def _linear_grid(input: Tensor, places: list[Any], align: bool) -> Tensor:
    lows = [aten.floor(p.detach()) for p in places]
    total: Any = None
    for corner in range(2 ** len(places)):
        weight: Any = None
        spot = []
        for i, (place, low) in enumerate(zip(places, lows, strict=True)):
            high = corner >> i & 1
            share = place - low if high else low + 1 - place
            weight = share if weight is None else weight * share
            spot.append(low + 1 if high else low)
        # Border and reflection were applied to the coordinates; the high corner may lie just
        # outside with weight 0, so it is read as zero.
        term = _corner(input, spot, "zeros", align) * weight.unsqueeze(1)
        total = term if total is None else total + term
    return total


def _bicubic_grid(input: Tensor, places: list[Any], padding: str, align: bool) -> Tensor:
    lows = [aten.floor(p.detach()) for p in places]
    weights = [_cubic_weights(p - low) for p, low in zip(places, lows, strict=True)]
    total: Any = None
    for j in range(4):
        for i in range(4):
            spot = [lows[0] + (j - 1), lows[1] + (i - 1)]
            weight = (weights[0][j] * weights[1][i]).unsqueeze(1)
            term = _corner(input, spot, padding, align) * weight
            total = term if total is None else total + term
    return total


def _cubic_weights(t: Tensor) -> list[Any]:
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]
