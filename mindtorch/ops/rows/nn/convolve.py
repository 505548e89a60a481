"""Rows of convolutions as layers call them; the arithmetic is convolution's."""

from __future__ import annotations

from typing import Any

from ...._tensor.tensor import Tensor
from ...samples import Arg, Sample, calls
from ...sizes import _ntuple
from ...spec import aten, composite
from .pad import pad as pad_input


def _sizes(value: int | tuple[int, ...], n: int, name: str) -> tuple[int, ...]:
    sizes = _ntuple(n)(value)
    if len(sizes) == 1 and n > 1:
        sizes = sizes * n
    if len(sizes) != n:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values to match the "
            f"convolution dimensions, but got {name}={list(sizes)}"
        )
    return tuple(int(size) for size in sizes)


def _same(
    input: Tensor, weight: Tensor, dilation: tuple[int, ...], stride: tuple[int, ...]
) -> tuple[Any, tuple[int, ...]]:
    """The padding that keeps sizes; where it is odd, the end is padded by one more first."""
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if any(total % 2 for total in totals):
        extra = [side for total in reversed(totals) for side in (0, total % 2)]
        input = pad_input(input, extra)
    return input, tuple(total // 2 for total in totals)


def _conv(
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: int | tuple[int, ...],
    padding: int | str | tuple[int, ...],
    dilation: int | tuple[int, ...],
    groups: int,
) -> Tensor:
    batched = _batched(f"conv{n}d", n, input)
    x = input if batched else input.unsqueeze(0)
    strides, dilations = _sizes(stride, n, "stride"), _sizes(dilation, n, "dilation")
    if isinstance(padding, str):
        if padding == "same":
            x, padding = _same(x, weight, dilations, strides)
        elif padding == "valid":
            padding = 0
        else:
            raise RuntimeError(f"Invalid padding string: '{padding}'")
    pads = _sizes(padding, n, "padding")
    out = aten.convolution(x, weight, bias, strides, pads, dilations, False, (0,) * n, groups)
    return out if batched else out.squeeze(0)


def _batched(name: str, n: int, input: Tensor) -> bool:
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, "
            f"but got input of size: {list(input.shape)}"
        )
    return bool(input.dim() == n + 2)


@composite(
    "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, "
    "int[] dilation=1, int groups=1) -> Tensor",
    surface="nn function",
    samples=calls(
        (Arg((2, 3, 8)), Arg((4, 3, 3)), Arg((4,)), 2, 1),
        (Arg((2, 3, 8)), Arg((4, 3, 3)), None, 1, "valid"),
        Sample((Arg((3,)), Arg((4, 3, 3))), error=True),
    ),
    tolerance="accumulated",
    fixed_shape=True,
)
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """input `[N, C, L]`, weight `[O, C / groups, k]` → `[N, O, L']`."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


@composite(
    "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, "
    "int[] dilation=1, int groups=1) -> Tensor",
    surface="nn function",
    samples=calls(
        (Arg((2, 3, 6, 5)), Arg((4, 3, 3, 2)), Arg((4,)), 2, 1),
        (Arg((2, 3, 6, 5)), Arg((4, 3, 3, 2)), None, 1, "valid"),
        Sample((Arg((3,)), Arg((4, 3, 3, 2))), error=True),
    ),
    tolerance="accumulated",
    fixed_shape=True,
)
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | str | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor:
    """input `[N, C, H, W]`, weight `[O, C / groups, kH, kW]` → `[N, O, H', W']`."""
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


@composite(
    "conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, "
    "int[] dilation=1, int groups=1) -> Tensor",
    surface="nn function",
    samples=calls(
        (Arg((1, 2, 4, 4, 4)), Arg((3, 2, 2, 2, 2)), Arg((3,)), 2, 1),
        (Arg((1, 2, 4, 4, 4)), Arg((3, 2, 2, 2, 2)), None, 1, "valid"),
        Sample((Arg((3,)), Arg((3, 2, 2, 2, 2))), error=True),
    ),
    tolerance="accumulated",
    fixed_shape=True,
)
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | str | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor:
    """input `[N, C, D, H, W]`, weight `[O, C / groups, kD, kH, kW]` → `[N, O, D', H', W']`."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: int | tuple[int, ...],
    padding: int | tuple[int, ...],
    output_padding: int | tuple[int, ...],
    groups: int,
    dilation: int | tuple[int, ...],
) -> Tensor:
    batched = _batched(f"conv_transpose{n}d", n, input)
    x = input if batched else input.unsqueeze(0)
    out = aten.convolution(
        x,
        weight,
        bias,
        _sizes(stride, n, "stride"),
        _sizes(padding, n, "padding"),
        _sizes(dilation, n, "dilation"),
        True,
        _sizes(output_padding, n, "output_padding"),
        groups,
    )
    return out if batched else out.squeeze(0)


@composite(
    "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] "
    "padding=0, int[] output_padding=0, int groups=1, int[] dilation=1) -> Tensor",
    surface="nn function",
    samples=calls((Arg((2, 3, 5)), Arg((3, 4, 3)), Arg((4,)), 2, 1, 1)),
    tolerance="accumulated",
    fixed_shape=True,
)
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    output_padding: int | tuple[int, ...] = 0,
    groups: int = 1,
    dilation: int | tuple[int, ...] = 1,
) -> Tensor:
    """input `[N, C, L]`, weight `[C, O / groups, k]` → `[N, O, L']`."""
    return _conv_transpose(
        1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@composite(
    "conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] "
    "padding=0, int[] output_padding=0, int groups=1, int[] dilation=1) -> Tensor",
    surface="nn function",
    samples=calls((Arg((2, 3, 4, 3)), Arg((3, 2, 3, 2)), Arg((2,)), 2, 1, 1)),
    tolerance="accumulated",
    fixed_shape=True,
)
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """input `[N, C, H, W]`, weight `[C, O / groups, kH, kW]` → `[N, O, H', W']`."""
    return _conv_transpose(
        2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@composite(
    "conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] "
    "padding=0, int[] output_padding=0, int groups=1, int[] dilation=1) -> Tensor",
    surface="nn function",
    samples=calls((Arg((1, 2, 3, 3, 3)), Arg((2, 3, 2, 2, 2)), Arg((3,)), 2, 1, 1)),
    tolerance="accumulated",
    fixed_shape=True,
)
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """input `[N, C, D, H, W]`, weight `[C, O / groups, kD, kH, kW]` → `[N, O, D', H', W']`."""
    return _conv_transpose(
        3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )
