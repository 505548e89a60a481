"""Rows of pixel and channel shuffles, fold and unfold."""

from __future__ import annotations

from ...rules import as_images
from ...sizes import _pair
from ...words import *


def in_format_of(result: Tensor, image: Tensor) -> Tensor:
    """`result` in the memory format that torch suggests for an image."""
    strides = as_images(result.shape, image._geom).strides
    if strides == result.stride():
        return result
    laid_out = aten.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device)
    return laid_out.copy_(result)


@composite(
    "pixel_shuffle(Tensor input, int upscale_factor) -> Tensor",
    surface="nn function",
    samples=calls((Arg((2, 8, 2, 3)), 2), Sample((Arg((2, 3)), 2), error=True)),
    tolerance="exact",
)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """`[*, C r², H, W]` → `[*, C, H r, W r]`."""
    r = upscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if r * r >= 1 << 63:
        raise ValueError(
            "upscale factor is too large, (upscale_factor)^2 overflowed:"
            f" upscale_factor={upscale_factor}"
        )
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the "
            "square of "
            f"upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    x = input.reshape(*lead, c // (r * r), r, r, h, w)
    n = len(lead)
    x = x.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return in_format_of(x.reshape(*lead, c // (r * r), h * r, w * r), input)


@composite(
    "pixel_unshuffle(Tensor input, int downscale_factor) -> Tensor",
    surface="nn function",
    samples=calls((Arg((2, 2, 4, 6)), 2), Sample((Arg((1, 2, 3, 3)), 2), error=True)),
    tolerance="exact",
)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """`[*, C, H r, W r]` → `[*, C r², H, W]`."""
    r = downscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = input.shape
    for name, size in (("height", h), ("width", w)):
        if size % r:
            at = -2 if name == "height" else -1
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({at})={size} is not divisible by {r}"
            )
    x = input.reshape(*lead, c, h // r, r, w // r, r)
    n = len(lead)
    x = x.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return in_format_of(x.reshape(*lead, c * r * r, h // r, w // r), input)


@composite(
    "channel_shuffle(Tensor input, int groups) -> Tensor",
    surface="nn function",
    samples=calls((Arg((2, 4, 2, 3)), 2)),
    tolerance="exact",
)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """`[N, g · C / g, *]` with the two channel dimensions swapped."""
    if input.dim() < 3:
        raise RuntimeError(
            "channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{list(input.shape)}"
        )
    n, c, *space = input.shape
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if c % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    x = input.reshape(n, groups, c // groups, *space).transpose(1, 2)
    return in_format_of(x.reshape(n, c, *space), input)


@composite(
    "unfold.nn(Tensor input, int[] kernel_size, int[] dilation=1, int[] padding=0, int[] "
    "stride=1) -> Tensor",
    unsupported={"whole": "im2col_out_cpu"},
    samples=calls((Arg((2, 3, 5, 6)), (2, 3), 1, 1, 2)),
    tolerance="exact",
)
def unfold(
    input: Tensor,
    kernel_size: tuple[int, ...],
    dilation: int = 1,
    padding: int = 0,
    stride: int = 1,
) -> Tensor:
    """Sliding blocks of `[N, C, H, W]` as columns `[N, C kH kW, L]`."""
    return aten.im2col(input, *(_pair(v) for v in (kernel_size, dilation, padding, stride)))


@composite(
    "fold(Tensor input, int[] output_size, int[] kernel_size, int[] dilation=1, int[] "
    "padding=0, int[] stride=1) -> Tensor",
    unsupported={"whole": "col2im_out_cpu"},
    samples=calls((Arg((2, 18, 9)), (4, 5), (2, 3), 1, 0, 1)),
    tolerance="accumulated",
    fixed_shape=True,
)
def fold(
    input: Tensor,
    output_size: tuple[int, ...],
    kernel_size: tuple[int, ...],
    dilation: int = 1,
    padding: int = 0,
    stride: int = 1,
) -> Tensor:
    """Sums columns `[N, C kH kW, L]` back into `[N, C, H, W]`; overlaps add up."""
    sizes = (output_size, kernel_size, dilation, padding, stride)
    return aten.col2im(input, *(_pair(v) for v in sizes))
