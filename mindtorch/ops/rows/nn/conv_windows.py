"""Owns convolutions as products of matrices: of numbers that CANN's convolution does not take.

Padding, windows (a view), a copy in rows, a product: what takes DOUBLE, as aclnnConstantPadNd does.
"""

from __future__ import annotations

from math import prod

from ...words import *

Sizes = tuple[int, ...]


def windows_of(input: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> Tensor:
    """Of each place of `out` what the kernel sees: `[N, C, *out, *kernel]`, a view."""
    input = aten.contiguous(input)
    n, c, *steps = input.stride()
    moves = [s * by for s, by in zip(steps, stride, strict=True)]
    within = [s * by for s, by in zip(steps, dilation, strict=True)]
    shape = (*input.shape[:2], *out, *kernel)
    return aten.as_strided(input, shape, (n, c, *moves, *within), input.storage_offset())


def padded(input: Tensor, before: Sequence[int], after: Sequence[int], fill: Number = 0) -> Tensor:
    """`[N, C, *]` with `fill` at both ends of the last dimensions."""
    pads = [p for pair in zip(reversed(before), reversed(after), strict=True) for p in pair]
    return aten.constant_pad_nd(input, pads, fill) if any(pads) else input


def _rows(seen: Tensor, dims: int, groups: int) -> Tensor:
    """Windows as rows of a matrix per group: `[G, N P, C/G K]`."""
    n, c, *rest = seen.shape
    out, kernel = rest[:dims], rest[dims:]
    split = aten.reshape(seen, (n, groups, c // groups, prod(out), prod(kernel)))
    flat = aten.permute(split, (1, 0, 3, 2, 4))
    return aten.reshape(flat, (groups, n * prod(out), c // groups * prod(kernel)))


def by_windows(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes,
    dilation: Sizes, transposed: bool, output_padding: Sizes, groups: int,
) -> Tensor:  # fmt: skip
    """torch's convolution of `[N, C, *]`, or of `[C, *]`."""
    dims = len(stride)
    if input.ndim == dims + 1:
        args = (weight, bias, stride, padding, dilation, transposed, output_padding, groups)
        return aten.squeeze(by_windows(aten.unsqueeze(input, 0), *args), 0)
    after: Sequence[int] = padding
    if transposed:
        input, weight = _spread(input, stride), _plain_weight(weight, groups)
        reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
        padding = tuple(r - p for r, p in zip(reach, padding, strict=True))
        after = [p + extra for p, extra in zip(padding, output_padding, strict=True)]
        stride = (1,) * dims
    input = padded(input, padding, after)
    kernel = weight.shape[2:]
    out = tuple(
        (size - d * (k - 1) - 1) // s + 1
        for size, k, s, d in zip(input.shape[2:], kernel, stride, dilation, strict=True)
    )
    rows = _rows(windows_of(input, kernel, stride, dilation, out), dims, groups)
    per = weight.shape[0] // groups
    product = rows @ aten.transpose(aten.reshape(weight, (groups, per, rows.shape[-1])), 1, 2)
    product = aten.reshape(product, (groups, input.shape[0], prod(out), per))
    by_example = aten.contiguous(aten.permute(product, (1, 0, 3, 2)))
    result = aten.reshape(by_example, (input.shape[0], weight.shape[0], *out))
    return result if bias is None else result + aten.reshape(bias, (-1, *(1,) * dims))


def _spread(input: Tensor, stride: Sizes) -> Tensor:
    """The elements `stride` apart, with zeros between them."""
    if all(s == 1 for s in stride):
        return input
    sizes = [(size - 1) * s + 1 for size, s in zip(input.shape[2:], stride, strict=True)]
    whole = aten.zeros((*input.shape[:2], *sizes), dtype=input.dtype, device=input.device)
    n, c, *steps = whole.stride()
    moves = (n, c, *(step * s for step, s in zip(steps, stride, strict=True)))
    aten.as_strided(whole, input.shape, moves).copy_(input)
    return whole


def _plain_weight(weight: Tensor, groups: int) -> Tensor:
    """`[C, O/G, *]` of a transposed convolution as a plain one's `[O, C/G, *]`, kernels turned."""
    c, per, *kernel = weight.shape
    flipped = aten.flip(weight, tuple(range(2, weight.ndim)))
    split = aten.transpose(aten.reshape(flipped, (groups, c // groups, per, *kernel)), 1, 2)
    return aten.reshape(split, (groups * per, c // groups, *kernel))


def weight_by_windows(
    grad: Tensor, input: Tensor, weight: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes,
    groups: int,
) -> Tensor:  # fmt: skip
    """The gradient by the weight of a convolution that is not transposed."""
    seen = windows_of(
        padded(input, padding, padding), weight.shape[2:], stride, dilation, grad.shape[2:]
    )
    rows = _rows(seen, len(stride), groups)
    n, o, *out = grad.shape
    flows = aten.reshape(grad, (n, groups, o // groups, prod(out)))
    flows = aten.reshape(aten.permute(flows, (1, 2, 0, 3)), (groups, o // groups, n * prod(out)))
    return aten.reshape(flows @ rows, weight.shape)
