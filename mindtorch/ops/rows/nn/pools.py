"""Rows of poolings as layers call them; 1-d ones are 2-d ones with a unit dimension."""

from __future__ import annotations

from typing import Any

from ...._tensor.tensor import Tensor
from ...samples import Arg, Sample, calls
from ...sizes import _list_with_default, _ntuple
from ...spec import aten, composite


def _sizes(value: object, n: int) -> tuple[int, ...]:
    sizes = _ntuple(n)(value)
    return sizes * n if len(sizes) == 1 else sizes


def _stride(stride: object, kernel: tuple[int, ...], n: int) -> tuple[int, ...]:
    return kernel if stride is None or stride == [] or stride == () else _sizes(stride, n)


def _checked(name: str, input: Tensor, n: int) -> None:
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"{name}() Expected {n + 1}D or {n + 2}D input, but got a tensor of size "
            f"{list(input.shape)}"
        )


@composite(
    "max_pool1d(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, int[] "
    "dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor",
    surface="nn function",
    samples=calls(
        (Arg((2, 3, 8)), 2), (Arg((2, 3, 8)), 3, 2, 1), Sample((Arg((3,)), 2), error=True)
    ),
    tolerance="exact",
)
def max_pool1d(
    input: Tensor,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...] | None = None,
    padding: object = 0,
    dilation: object = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor] | Tensor:
    """Largest element of each window of `[N, C, L]`."""
    _checked("max_pool1d", input, 1)
    kernel = _sizes(kernel_size, 1)
    out, indices = aten.max_pool2d_with_indices(
        input.unsqueeze(-2),
        (1, *kernel),
        (1, *_stride(stride, kernel, 1)),
        (0, *_sizes(padding, 1)),
        (1, *_sizes(dilation, 1)),
        ceil_mode,
    )
    return (out.squeeze(-2), indices.squeeze(-2)) if return_indices else out.squeeze(-2)


@composite(
    "max_pool2d(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, int[] "
    "dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor",
    surface="nn function",
    samples=calls(
        (Arg((1, 2, 6, 5)), 2), (Arg((1, 2, 6, 5)), 3, 2, 1), Sample((Arg((3,)), 2), error=True)
    ),
    tolerance="exact",
)
def max_pool2d(
    input: Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int = 0,
    dilation: int = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, ...]:
    """Largest element of each window of `[N, C, H, W]`; indices are into the flat H W plane."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@composite(
    "max_pool3d(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, int[] "
    "dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor",
    surface="nn function",
    samples=calls(
        (Arg((1, 2, 4, 4, 4)), 2),
        (Arg((1, 2, 4, 4, 4)), 3, 2, 1),
        Sample((Arg((3,)), 2), error=True),
    ),
    tolerance="exact",
)
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Largest element of each window of `[N, C, D, H, W]`."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _max_pool(
    n: int,
    input: Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | tuple[int, ...] | None,
    padding: int,
    dilation: int,
    ceil_mode: bool,
    return_indices: bool,
) -> Tensor | tuple[Tensor, ...]:
    kernel = _sizes(kernel_size, n)
    row = getattr(aten, f"max_pool{n}d_with_indices")
    strides = _stride(stride, kernel, n)
    pads, dilations = _sizes(padding, n), _sizes(dilation, n)
    out, indices = row(input, kernel, strides, pads, dilations, ceil_mode)
    return (out, indices) if return_indices else out


@composite(
    "avg_pool1d(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, bool "
    "ceil_mode=False, bool count_include_pad=True) -> Tensor",
    surface="nn function",
    samples=calls((Arg((2, 3, 8)), 2), (Arg((2, 3, 8)), 3, 2, 1, True, False)),
    tolerance="accumulated",
)
def avg_pool1d(
    input: Tensor,
    kernel_size: int | tuple[int, ...],
    stride: tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean of each window of `[N, C, L]`."""
    _checked("avg_pool1d", input, 1)
    kernel = _sizes(kernel_size, 1)
    out = aten.avg_pool2d(
        input.unsqueeze(-2),
        (1, *kernel),
        (1, *_stride(stride, kernel, 1)),
        (0, *_sizes(padding, 1)),
        ceil_mode,
        count_include_pad,
    )
    return out.squeeze(-2)


@composite(
    "avg_pool2d.nn(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, bool "
    "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    surface="nn",
    samples=calls((Arg((1, 2, 6, 5)), 2), (Arg((1, 2, 6, 5)), 3, 2, 1, True, False)),
    tolerance="accumulated",
)
def avg_pool2d(
    input: Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | None = None,
    padding: int = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean of each window of `[N, C, H, W]`."""
    kernel = _sizes(kernel_size, 2)
    strides, pads = _stride(stride, kernel, 2), _sizes(padding, 2)
    return aten.avg_pool2d(
        input, kernel, strides, pads, ceil_mode, count_include_pad, divisor_override
    )


@composite(
    "avg_pool3d.nn(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, bool "
    "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    surface="nn",
    samples=calls((Arg((1, 2, 4, 4, 4)), 2), (Arg((1, 2, 4, 4, 4)), 3, 2, 1, True, False)),
    tolerance="accumulated",
)
def avg_pool3d(
    input: Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | None = None,
    padding: int = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean of each window of `[N, C, D, H, W]`."""
    kernel = _sizes(kernel_size, 3)
    strides, pads = _stride(stride, kernel, 3), _sizes(padding, 3)
    return aten.avg_pool3d(
        input, kernel, strides, pads, ceil_mode, count_include_pad, divisor_override
    )


@composite(
    "adaptive_avg_pool1d(Tensor input, int[] output_size) -> Tensor",
    surface="nn function",
    samples=calls((Arg((2, 3, 8)), 2), (Arg((2, 3, 8)), 1)),
    tolerance="accumulated",
)
def adaptive_avg_pool1d(input: Tensor, output_size: tuple[int, ...]) -> Tensor:
    """Mean over windows that divide `[N, C, L]` into `output_size` outputs."""
    _checked("adaptive_avg_pool1d", input, 1)
    size = _sizes(output_size, 1)
    return aten._adaptive_avg_pool2d(input.unsqueeze(-2), (1, *size)).squeeze(-2)


@composite(
    "adaptive_avg_pool2d(Tensor input, int[] output_size) -> Tensor",
    surface="nn",
    samples=calls((Arg((1, 2, 6, 5)), 2), (Arg((1, 2, 6, 5)), 1)),
    tolerance="accumulated",
)
def adaptive_avg_pool2d(input: Tensor, output_size: tuple[int, ...]) -> Tensor:
    """Mean over windows that divide H and W; None keeps a size; size 1 is a plain mean."""
    size = _sizes(_list_with_default(output_size, list(input.size())), 2)
    if size == (1, 1) and input.dim() in (3, 4):
        return input.mean((-1, -2), keepdim=True)
    return aten._adaptive_avg_pool2d(input, size)


@composite(
    "adaptive_avg_pool3d(Tensor input, int[] output_size) -> Tensor",
    surface="nn",
    samples=calls((Arg((1, 2, 4, 4, 4)), 2), (Arg((1, 2, 4, 4, 4)), 1)),
    tolerance="accumulated",
)
def adaptive_avg_pool3d(input: Tensor, output_size: tuple[int, ...]) -> Tensor:
    """Mean over windows that divide D, H and W."""
    size = _sizes(_list_with_default(output_size, list(input.size())), 3)
    if size == (1, 1, 1) and input.dim() in (4, 5):
        return input.mean((-1, -2, -3), keepdim=True)
    return aten._adaptive_avg_pool3d(input, size)


@composite(
    "adaptive_max_pool1d(Tensor input, int[] output_size, bool return_indices=False) -> Tensor",
    surface="nn function",
    samples=calls((Arg((2, 3, 8)), 2)),
    tolerance="exact",
)
def adaptive_max_pool1d(
    input: Tensor, output_size: tuple[int, ...], return_indices: bool = False
) -> tuple[Tensor, Tensor] | Tensor:
    """Maximum over windows that divide L."""
    _checked("adaptive_max_pool1d", input, 1)
    size = _sizes(output_size, 1)
    out, indices = aten.adaptive_max_pool2d(input.unsqueeze(-2), (1, *size))
    return (out.squeeze(-2), indices.squeeze(-2)) if return_indices else out.squeeze(-2)


@composite(
    "adaptive_max_pool2d.nn(Tensor input, int[] output_size, bool return_indices=False) -> Tensor",
    surface="nn",
    samples=calls((Arg((1, 2, 6, 5)), 2)),
    tolerance="exact",
)
def adaptive_max_pool2d(
    input: Tensor, output_size: tuple[int, ...], return_indices: bool = False
) -> tuple[Tensor, Tensor] | Tensor:
    """Maximum over windows that divide H and W."""
    size = _sizes(_list_with_default(output_size, list(input.size())), 2)
    out, indices = aten.adaptive_max_pool2d(input, size)
    return (out, indices) if return_indices else out


@composite(
    "adaptive_max_pool3d.nn(Tensor input, int[] output_size, bool return_indices=False) -> Tensor",
    surface="nn",
    samples=calls((Arg((1, 2, 4, 4, 4)), 2)),
    tolerance="exact",
)
def adaptive_max_pool3d(
    input: Tensor, output_size: tuple[int, ...], return_indices: bool = False
) -> tuple[Tensor, Tensor] | Tensor:
    """Maximum over windows that divide D, H and W."""
    size = _sizes(_list_with_default(output_size, list(input.size())), 3)
    out, indices = aten.adaptive_max_pool3d(input, size)
    return (out, indices) if return_indices else out


def _lp(pooled: Tensor, norm_type: float, area: int) -> Tensor:
    return (aten.sign(pooled) * aten.relu(aten.abs(pooled)) * area).pow(1.0 / norm_type)


@composite(
    "lp_pool1d(Tensor input, float norm_type, int[] kernel_size, int[]? stride=None, bool "
    "ceil_mode=False) -> Tensor",
    surface="nn",
    samples=calls((Arg((2, 3, 8), low=0.1), 2.0, 2)),
    tolerance="accumulated",
)
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """p-th root of the sum of p-th powers over windows of L."""
    kernel = _sizes(kernel_size, 1)
    pooled = avg_pool1d(input.pow(norm_type), kernel, stride, 0, ceil_mode)
    return _lp(pooled, norm_type, kernel[0])


@composite(
    "lp_pool2d(Tensor input, float norm_type, int[] kernel_size, int[]? stride=None, bool "
    "ceil_mode=False) -> Tensor",
    surface="nn",
    samples=calls((Arg((1, 2, 6, 5), low=0.1), 2.0, 2)),
    tolerance="accumulated",
)
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: int,
    stride: int | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """p-th root of the sum of p-th powers over windows of H, W."""
    kernel = _sizes(kernel_size, 2)
    pooled = avg_pool2d(input.pow(norm_type), kernel, stride, 0, ceil_mode)
    return _lp(pooled, norm_type, kernel[0] * kernel[1])


@composite(
    "lp_pool3d(Tensor input, float norm_type, int[] kernel_size, int[]? stride=None, bool "
    "ceil_mode=False) -> Tensor",
    surface="nn",
    samples=calls((Arg((1, 2, 4, 4, 4), low=0.1), 2.0, 2)),
    tolerance="accumulated",
)
def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """p-th root of the sum of p-th powers over windows of D, H, W."""
    kernel = _sizes(kernel_size, 3)
    pooled = avg_pool3d(input.pow(norm_type), kernel, stride, 0, ceil_mode)
    return _lp(pooled, norm_type, kernel[0] * kernel[1] * kernel[2])


def _max_unpool(
    n: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: int,
    stride: tuple[int, ...] | None,
    padding: int,
    output_size: tuple[int, ...] | None,
) -> Tensor:
    """Puts each value at its index of a zero plane; the size is the pooling's inverse or given."""
    kernel = _sizes(kernel_size, n)
    strides, pads = _stride(stride, kernel, n), _sizes(padding, n)
    if output_size is None:
        pairs = zip(input.shape[-n:], strides, pads, kernel, strict=True)
        space = [(size - 1) * s - 2 * p + k for size, s, p, k in pairs]
    else:
        space = [int(size) for size in list(output_size)[-n:]]
    lead = list(input.shape[:-n])
    area = 1
    for size in space:
        area *= size
    plane = aten.zeros([*lead, area], dtype=input.dtype, device=input.device)
    flat = plane.scatter(-1, indices.reshape([*lead, -1]), input.reshape([*lead, -1]))
    return flat.reshape([*lead, *space])


@composite(
    "max_unpool1d(Tensor input, Tensor indices, int[] kernel_size, int[]? stride=None, int[] "
    "padding=0, int[]? output_size=None) -> Tensor",
    surface="nn",
    samples=calls((Arg((1, 2, 3)), Arg((1, 2, 3), "int64", values=(((0, 2, 5), (1, 3, 4)),)), 2)),
    tolerance="exact",
    fixed_shape=True,
)
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int,
    stride: tuple[int, ...] | None = None,
    padding: int = 0,
    output_size: tuple[int, ...] | None = None,
) -> Tensor:
    """Inverse of max_pool1d where it kept values; zero elsewhere."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@composite(
    "max_unpool2d(Tensor input, Tensor indices, int[] kernel_size, int[]? stride=None, int[] "
    "padding=0, int[]? output_size=None) -> Tensor",
    surface="nn",
    samples=calls(
        (Arg((1, 1, 2, 2)), Arg((1, 1, 2, 2), "int64", values=((((0, 2), (9, 15)),),)), 2)
    ),
    tolerance="exact",
    fixed_shape=True,
)
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int,
    stride: tuple[int, ...] | None = None,
    padding: int = 0,
    output_size: tuple[int, ...] | None = None,
) -> Tensor:
    """Inverse of max_pool2d where it kept values; zero elsewhere."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@composite(
    "max_unpool3d(Tensor input, Tensor indices, int[] kernel_size, int[]? stride=None, int[] "
    "padding=0, int[]? output_size=None) -> Tensor",
    surface="nn",
    samples=calls(
        (Arg((1, 1, 1, 2, 2)), Arg((1, 1, 1, 2, 2), "int64", values=(((((0, 2), (9, 31)),),),)), 2)
    ),
    tolerance="exact",
    fixed_shape=True,
)
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int,
    stride: tuple[int, ...] | None = None,
    padding: int = 0,
    output_size: tuple[int, ...] | None = None,
) -> Tensor:
    """Inverse of max_pool3d where it kept values; zero elsewhere."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)
