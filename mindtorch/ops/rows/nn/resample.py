"""Rows of interpolation and grid sampling: each spatial dimension is picked and weighted."""

from __future__ import annotations

import math
from functools import lru_cache

from ...._compat.warn_once import warn
from ...._tensor.recording import unrepeatable
from ...limits import reserve
from ...rules import scalar_name
from ...words import *
from .antialias import FILTERS, rounded, shrunk, shrunk_bytes
from .pools import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .shuffle import in_format_of
from .upsample import refuse_memory, step_of, taps_of, warn_of_alignment, weighted

_LINEAR = {"linear": 3, "bilinear": 4, "trilinear": 5}
_WEIGHTED = {"bicubic", *_LINEAR}  # rows of upsample.py
_MODES = {"nearest", "nearest-exact", "area", "bicubic", "lanczos", *_LINEAR}


@composite(
    "interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, str "
    "mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, bool "
    "antialias=False) -> Tensor",
    samples=calls(
        Sample((Arg((1, 2, 4)), 7), {"mode": "linear"}),
        Sample((Arg((1, 2, 4, 3)), (5, 6)), {"mode": "bilinear", "align_corners": True}),
        Sample((Arg((1, 2, 4, 3)), None, 2.0), {"mode": "bicubic"}),
        Sample((Arg((1, 2, 4, 3)), (2, 2)), {"mode": "area"}),
        Sample((Arg((1, 2, 6, 5)), (3, 2)), {"mode": "bicubic", "antialias": True}),
        Sample((Arg((1, 2, 6, 9)), (3, 11)), {"mode": "lanczos", "antialias": True}),
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

    Modes: nearest, nearest-exact, linear (3-D), bilinear and bicubic (4-D), trilinear (5-D), area,
    lanczos (4-D, with `antialias`).
    """
    if size is None and scale_factor is None and align_corners is None:
        raise ValueError("either size or scale_factor should be defined")
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: "
            "linear | bilinear | bicubic | trilinear"
        )
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    scales = _as_list(scale_factor, input.shape[2:], "scale_factor")
    sizes = _output_size(input, size, scales)
    if antialias and not (mode in FILTERS and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a"
            " 4-D tensor as input"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    _check_mode(input, mode)
    _refuse_sizes(input, sizes)
    if size is not None or recompute_scale_factor:
        scales = None
    if mode == "area":
        pool = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[dims - 1]
        return pool(input, tuple(sizes))
    if not input.is_floating_point() and input.device.type != "meta":
        _refuse_integers(input, mode, antialias)
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
    return in_format_of(result, input) if mode.startswith("nearest") else result


def _refuse_integers(input: Tensor, mode: str, antialias: bool) -> None:
    """NotImplementedError in torch's words for all but the bytes of images and nearest places."""
    nearest, flat = mode.startswith("nearest"), input.dim() == 4
    if input.dtype is dt.uint8 and (nearest or flat):
        return
    if antialias:
        kernel = "compute_index_ranges_weights"
    elif flat and mode != "bicubic":
        kernel = f"upsample_{'nearest' if nearest else mode}2d_channels_last"
    else:
        weights = "nearest" if nearest else "cubic" if flat else "linear"
        kernel = f"compute_indices_weights_{weights}"
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(input.dtype)}'")


def _check_mode(input: Tensor, mode: str) -> None:
    expected = 4 if mode in ("bicubic", "lanczos") else _LINEAR.get(mode, input.dim())
    wrong = input.dim() != expected
    if (
        mode not in _MODES
        or input.dim() not in (3, 4, 5)
        or (wrong and mode in ("bicubic", "lanczos"))
    ):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the "
            "modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area |"
            f" nearest-exact (got {mode})"
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
    input: Tensor, size: int | tuple[int, ...] | None, scales: list[Any] | None
) -> list[int]:
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


def _index(values: Array, like: Any) -> Any:
    return aten.tensor(values, device=like.device, dtype=dt.int64)


@lru_cache(maxsize=64)
def _nearest(size: int, out: int, scale: float | None, mode: str) -> Array:
    """The places that torch reads, which are numbers of float32: those of pixels' centres come
    from one product and difference, rounded once."""
    step = np.float32(step_of(size, out, False, scale))
    if mode == "nearest-exact":
        at = ((np.arange(out) + 0.5) * np.float64(step) - 0.5).astype(np.float32) + np.float32(0.5)
    else:
        at = np.arange(out, dtype=np.float32) * step
    places = np.floor(at).astype(np.int64)
    return np.minimum(places, size - 1)


def _warn_of_older_name(name: str) -> None:
    unrepeatable()
    warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
    )


@composite(
    "upsample(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode='nearest', "
    "bool? align_corners=None) -> Tensor",
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
    _warn_of_older_name("upsample")
    return aten.interpolate(input, size, scale_factor, mode, align_corners)


@composite(
    "upsample_nearest(Tensor input, int[]? size=None, float[]? scale_factor=None) -> Tensor",
    samples=calls((Arg((1, 2, 4, 3)), (5, 6))),
    tolerance="accumulated",
)
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    """interpolate with mode nearest."""
    _warn_of_older_name("upsample_nearest")
    return aten.interpolate(input, size, scale_factor, mode="nearest")


@composite(
    "upsample_bilinear(Tensor input, int[]? size=None, float[]? scale_factor=None) -> Tensor",
    samples=calls((Arg((1, 2, 4, 3)), (5, 6))),
    tolerance="chained",
)
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    """interpolate with mode bilinear and aligned corners."""
    _warn_of_older_name("upsample_bilinear")
    return aten.interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


@composite(
    "affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor",
    samples=calls((Arg((2, 2, 3)), (2, 1, 3, 4)), (Arg((1, 3, 4)), (1, 1, 2, 3, 2), True)),
    tolerance="chained",
)
def affine_grid(theta: Tensor, size: tuple[int, ...], align_corners: bool | None = None) -> Tensor:
    """theta `[N, 2, 3]` and size (N, C, H, W) → grid `[N, H, W, 2]`; or the 3-d forms."""
    if align_corners is None:
        warn_of_alignment()
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
    if align_corners and min(space) == 1:
        unrepeatable()
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when"
            " align_corners=True. This is not an intended use case of affine_grid. See the"
            " documentation of affine_grid for details.",
        )
    axes = [_grid_axis(extent, bool(align_corners), theta) for extent in space]
    mesh = aten.meshgrid(*axes, indexing="ij")
    # Coordinates run x, y, z: the last spatial dimension first.
    base = aten.stack([*reversed(mesh), aten.ones_like(mesh[0])], -1)
    flat = base.reshape(1, -1, n + 1).expand(theta.size(0), -1, -1)
    return aten.bmm(flat, theta.transpose(1, 2)).reshape(theta.size(0), *space, n)


def _grid_axis(extent: int, align: bool, like: Tensor) -> Tensor:
    end = 0 if extent == 1 else 1 if align else 1 - 1 / extent
    return aten.linspace(-end, end, extent, device=like.device, dtype=like.dtype)
