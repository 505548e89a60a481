"""Owns pixel and channel shuffles, fold and unfold of nn.functional."""

from __future__ import annotations

from typing import Any

from mindtorch._tensor import Tensor

from .. import _aten as aten
from .._expand import _pair


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Any:
    """`[*, C r², H, W]` → `[*, C, H r, W r]`."""
    r = upscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
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
    return x.reshape(*lead, c // (r * r), h * r, w * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Any:
    """`[*, C, H r, W r]` → `[*, C r², H, W]`."""
    r = downscale_factor
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
    return x.reshape(*lead, c * r * r, h // r, w // r)


def channel_shuffle(input: Tensor, groups: int) -> Any:
    """`[N, g · C / g, *]` with the two channel dimensions swapped."""
    n, c, *space = input.shape
    if c % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    x = input.reshape(n, groups, c // groups, *space).transpose(1, 2)
    return x.reshape(n, c, *space)


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Sliding blocks of `[N, C, H, W]` as columns `[N, C kH kW, L]`."""
    return aten.im2col(input, *(_pair(v) for v in (kernel_size, dilation, padding, stride)))


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    """Sums columns `[N, C kH kW, L]` back into `[N, C, H, W]`; overlaps add up."""
    sizes = (output_size, kernel_size, dilation, padding, stride)
    return aten.col2im(input, *(_pair(v) for v in sizes))
