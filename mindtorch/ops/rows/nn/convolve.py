"""Rows of convolutions as layers call them; the arithmetic is convolution's."""

from __future__ import annotations

from typing import TypeAlias

from ...._compat.unsupported_dtypes import kernel
from ...._compat.warn_once import warn_once
from ...costs import convolution, time_first_convolution, transposed_convolution
from ...sizes import _ntuple
from ...words import *
from .conv import bias_differs
from .pad import pad as pad_input

# One size for all dimensions of space, or one for each.
Sizes: TypeAlias = int | tuple[int, ...]


def _sizes(value: Sizes, n: int, name: str) -> tuple[int, ...]:
    sizes = _ntuple(n)(value)
    if len(sizes) == 1 and n > 1:
        sizes = sizes * n
    if len(sizes) != n:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values to match the "
            f"convolution dimensions, but got {name}={list(sizes)}"
        )
    return tuple(int(size) for size in sizes)


def _refuse_operands(name: str, values: tuple[Any, ...]) -> None:
    """TypeError in torch's words for an input, weight or bias that is no tensor."""
    kinds = (Tensor, Tensor, Tensor | None)
    if not all(isinstance(v, kind) for v, kind in zip(values, kinds, strict=False)):
        while isinstance(values[-1], int | None) and len(values) > 3:
            values = values[:-1]
        types = ", ".join(type(v).__name__ for v in values)
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({types}), but expected"
            " one of:\n * (Tensor input, Tensor weight, Tensor bias = None, …)"
        )


def _same(
    input: Tensor, weight: Tensor, dilation: tuple[int, ...], stride: tuple[int, ...]
) -> tuple[Any, tuple[int, ...]]:
    """The padding that keeps sizes; where it is odd, the end is padded by one more first."""
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if any(total % 2 for total in totals):
        warn_once(
            "Using padding='same' with even kernel lengths and odd dilation may require a"
            " zero-padded copy of the input be created"
        )
        extra = [side for total in reversed(totals) for side in (0, total % 2)]
        input = pad_input(input, extra)
    return input, tuple(total // 2 for total in totals)


def _conv(
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    _refuse_operands(f"conv{n}d", (input, weight, bias, stride, padding, dilation, groups))
    batched = _batched(f"conv{n}d", n, input)
    x = input if batched else input.unsqueeze(0)
    if weight.dim() != n + 2:
        settings = _by_rank(weight, n, stride, padding, dilation, groups)
        return aten.convolution(x, weight, bias, *settings)
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


def _by_rank(
    weight: Tensor, n: int, stride: Sizes, padding: Any, dilation: Sizes, groups: int
) -> tuple[Any, ...]:
    """A convolution's settings where the weight is of other dimensions: lists of one follow it."""
    rank = max(weight.dim() - 2, 0)
    values = (stride, 0 if isinstance(padding, str) else padding, dilation)
    sizes = [tuple(v) if isinstance(v, tuple | list) else (v,) * n for v in values]
    return (*(v * rank if len(v) == 1 else v for v in sizes), False, (0,) * rank, groups)


def _batched(name: str, n: int, input: Tensor) -> bool:
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, "
            f"but got input of size: {list(input.shape)}"
        )
    return bool(input.dim() == n + 2)


# Space as shapes spell it, by its number of dimensions.
_SPACES = {1: "L", 2: "H, W", 3: "D, H, W"}
_KERNELS = {1: "k", 2: "kH, kW", 3: "kD, kH, kW"}


def _shapes(n: int, weight: str) -> str:
    out = ", ".join(size + "'" for size in _SPACES[n].split(", "))
    return f"input `[N, C, {_SPACES[n]}]`, weight `[{weight}, {_KERNELS[n]}]` → `[N, O, {out}]`."


def _convolution(n: int, x: Arg, weight: Arg, bias: Arg) -> Callable[..., Tensor]:
    """The row of `conv{n}d`."""

    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1,
        padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        return _conv(n, input, weight, bias, stride, padding, dilation, groups)

    conv.__name__ = conv.__qualname__ = f"conv{n}d"
    conv.__doc__ = _shapes(n, "O, C / groups")
    composite(
        f"conv{n}d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1,"
        " int[] padding=0, int[] dilation=1, int groups=1) -> Tensor",
        conv,
        unsupported={
            "bool": kernel(
                "compute_columns3d" if n == 3 else "slow_conv2d_cpu", unless=bias_differs
            )
        },
        surface="nn function",
        samples=calls(
            (x, weight, bias, 2, 1),
            (x, weight, None, 1, "valid"),
            Sample((Arg((3,)), weight), error=True),
        ),
        tolerance="accumulated",
        cost=convolution,
        fixed_shape=True,
    )
    return conv


conv1d = _convolution(1, Arg((2, 3, 8)), Arg((4, 3, 3)), Arg((4,)))
conv2d = _convolution(2, Arg((2, 3, 6, 5)), Arg((4, 3, 3, 2)), Arg((4,)))
conv3d = _convolution(3, Arg((1, 2, 4, 4, 4)), Arg((3, 2, 2, 2, 2)), Arg((3,)))


def _conv_transpose(
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
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


def _transposed(n: int, x: Arg, weight: Arg, bias: Arg) -> Callable[..., Tensor]:
    """The row of `conv_transpose{n}d`."""

    def conv_transpose(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1,
        padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1,
    ) -> Tensor:  # fmt: skip
        return _conv_transpose(
            n, input, weight, bias, stride, padding, output_padding, groups, dilation
        )

    conv_transpose.__name__ = conv_transpose.__qualname__ = f"conv_transpose{n}d"
    conv_transpose.__doc__ = _shapes(n, "C, O / groups")
    composite(
        f"conv_transpose{n}d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1,"
        " int[] padding=0, int[] output_padding=0, int groups=1, int[] dilation=1) -> Tensor",
        conv_transpose,
        unsupported={"bool narrow": f"slow_conv_transpose{max(n, 2)}d_out_cpu"},
        surface="nn function",
        samples=calls((x, weight, bias, 2, 1, 1)),
        tolerance="accumulated",
        cost=transposed_convolution,
        fixed_shape=True,
    )
    return conv_transpose


conv_transpose1d = _transposed(1, Arg((2, 3, 5)), Arg((3, 4, 3)), Arg((4,)))
conv_transpose2d = _transposed(2, Arg((2, 3, 4, 3)), Arg((3, 2, 3, 2)), Arg((2,)))
conv_transpose3d = _transposed(3, Arg((1, 2, 3, 3, 3)), Arg((2, 3, 2, 2, 2)), Arg((3,)))


@composite(
    "conv_tbc(Tensor input, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    surface="nn function",
    samples=calls((Arg((5, 2, 3)), Arg((2, 3, 4)), Arg((4,)), 1)),
    tolerance="accumulated",
    cost=time_first_convolution,
    fixed_shape=True,
)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d along the first dimension: input `[T, N, C]`, weight `[K, C, O]` → `[T', N, O]`."""
    moved = aten.permute(input, (1, 2, 0)), aten.permute(weight, (2, 1, 0))
    return aten.permute(conv1d(*moved, bias, padding=pad), (2, 0, 1)).contiguous()
