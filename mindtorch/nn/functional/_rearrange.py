"""Owns pixel and channel shuffles, fold and unfold of nn.functional."""

from __future__ import annotations

from typing import Any

import mindtorch
from mindtorch._tensor import Tensor

from .. import _aten as aten
from .._expand import _pair
from ._pad import pad


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
    sizes = [list(_pair(v)) for v in (kernel_size, dilation, padding, stride)]
    if aten.has("im2col"):
        return aten.im2col(input, *sizes)
    batched = input.dim() == 4
    x = input if batched else input.unsqueeze(0)
    index, rows, cols = _block_index(list(x.shape[2:]), *sizes)
    (ph, pw) = sizes[2]
    n, c = x.size(0), x.size(1)
    flat = pad(x, (pw, pw, ph, ph)).reshape(n, c, -1)
    where = mindtorch.tensor(index, device=x.device, dtype=mindtorch.int64)
    area = sizes[0][0] * sizes[0][1]
    out = flat.index_select(2, where).reshape(n, c * area, rows * cols)
    return out if batched else out.squeeze(0)


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    """Sums columns `[N, C kH kW, L]` back into `[N, C, H, W]`; overlaps add up."""
    height, width = _pair(output_size)
    sizes = [list(_pair(v)) for v in (kernel_size, dilation, padding, stride)]
    if aten.has("col2im"):
        return aten.col2im(input, [height, width], *sizes)
    batched = input.dim() == 3
    x = input if batched else input.unsqueeze(0)
    index, rows, cols = _block_index([height, width], *sizes)
    (ph, pw), area = sizes[2], sizes[0][0] * sizes[0][1]
    n, c = x.size(0), x.size(1) // area
    if rows * cols != x.size(2):
        raise RuntimeError(
            f"Given output_size={(height, width)}, kernel_size={tuple(sizes[0])}, "
            f"dilation={tuple(sizes[1])}, padding={tuple(sizes[2])}, stride={tuple(sizes[3])}, "
            f"expected size of input's dimension 2 to match the calculated number of sliding "
            f"blocks {rows} * {cols} = {rows * cols}, but got input.size(2)={x.size(2)}."
        )
    plane = (height + 2 * ph) * (width + 2 * pw)
    where = mindtorch.tensor(index, device=x.device, dtype=mindtorch.int64)
    zeros = mindtorch.zeros((n, c, plane), dtype=x.dtype, device=x.device)
    out = zeros.index_add(2, where, x.reshape(n, c, -1))
    out = out.reshape(n, c, height + 2 * ph, width + 2 * pw)
    out = out[:, :, ph : ph + height, pw : pw + width]
    return out if batched else out.squeeze(0)


def _block_index(
    space: list[int], kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]
) -> tuple[list[int], int, int]:
    """Flat positions in the padded plane, ordered (kH, kW, rows, cols); and rows, cols."""
    padded = [size + 2 * p for size, p in zip(space, padding, strict=True)]
    counts = [
        (size - d * (k - 1) - 1) // s + 1
        for size, d, k, s in zip(padded, dilation, kernel, stride, strict=True)
    ]
    index = [
        (row * stride[0] + i * dilation[0]) * padded[1] + col * stride[1] + j * dilation[1]
        for i in range(kernel[0])
        for j in range(kernel[1])
        for row in range(counts[0])
        for col in range(counts[1])
    ]
    return index, counts[0], counts[1]
