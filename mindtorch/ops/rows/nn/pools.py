"""Rows of poolings as layers call them; 1-d ones are 2-d ones with a unit dimension."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TypeAlias

from ...._tensor.dtype import int64
from ...._tensor.settings import alert_not_deterministic
from ...rules import as_images
from ...sizes import _list_with_default, _ntuple
from ...words import *
from .adaptive_pool import refuse_empty
from .pool_sizes import extent_of
from .shuffle import in_format_of

# One size for all dimensions of space, or one for each.
Sizes: TypeAlias = int | tuple[int, ...]
_LINE, _PLANE, _SPACE = Arg((2, 3, 8)), Arg((1, 2, 6, 5)), Arg((1, 2, 4, 4, 4))


_COUNTS = {1: "one int", 2: "two ints", 3: "three ints"}


_OMITTED = {"stride": "either be omitted, a single int", "dilation": "be either a single int"}


def _sizes(value: object, n: int, pool: str, name: str) -> tuple[int, ...]:
    """One size per dimension of space; RuntimeError in torch's words for another count."""
    sizes = _ntuple(n)(value)
    if len(sizes) not in (1, n):
        raise RuntimeError(_miscounted(len(sizes), n, pool, name))
    return sizes * n if len(sizes) == 1 else sizes


def _miscounted(count: int, n: int, pool: str, name: str) -> str:
    if pool == "max_pool1d":
        none = "None, " * (name == "stride")
        comma = "," * (name in ("stride", "padding"))
        return (
            f"{pool}() {name} must be {none}an int, list of ints{comma} or tuple of ints of size 1"
            f" but got size {count}"
        )
    if n == 1:
        return f"{pool}() argument '{name}' should contain one int (got {count})"
    expected = _OMITTED.get(name, "either be a single int")
    if pool == "avg_pool3d":
        expected = expected.replace("either ", "")
    return f"{pool}: {name} must {expected}, or a tuple of {_COUNTS[n]}"


def _stride(stride: object, kernel: tuple[int, ...], n: int, pool: str) -> tuple[int, ...]:
    if stride is None or stride == [] or stride == ():
        left_out = n > 1 and pool != "" and aten._watched()
        return () if left_out else kernel  # as a mode sees it of planes and more
    return _sizes(stride, n, pool, "stride")


def _spread(value: object, shape: Sequence[int], n: int) -> tuple[int, ...]:
    sizes: tuple[int, ...] = _ntuple(n)(_list_with_default(value, list(shape)))
    return sizes


def _all_sizes(value: object, shape: Sequence[int], n: int, pool: str) -> tuple[int, ...]:
    """Sizes of an adaptive pool's result: one for all, or each, None where it is the input's."""
    whole = value if isinstance(value, tuple | list) and len(value) != n else None
    sizes = tuple(whole or ()) if whole is not None else _spread(value, shape, n)
    if len(sizes) != n:
        how = "(): internal error: output_size.size()" if "max" in pool else ": output_size"
        raise RuntimeError(f"{pool}{how} must be {n}")
    return sizes


def _refuse_negative(shape: tuple[int, ...]) -> None:
    """What torch says where it makes the result of a pool to maxima."""
    bad = next((size for size in shape if size < 0), None)
    if bad is not None:
        raise RuntimeError(f"Trying to create tensor with negative dimension {bad}: {list(shape)}")


def _is_line(pool: str, input: Tensor) -> None:
    """RuntimeError in torch's words for what is no batch of lines or one of them."""
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.dim()}-dimensional tensor for argument #1"
            f" 'self' (while checking arguments for {pool})"
        )


def _max_line(input: Tensor, window: tuple[int, ...], ceil_mode: bool) -> None:
    """What torch's pool of lines to maxima refuses, in its words and order."""
    k, s, p, d = window
    shape, name = input.shape, "max_pool1d()"
    if len(shape) not in (2, 3) or not all(shape[-2:]):
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for"
            f" input, but got:{list(shape)}"
        )
    for what, size in (("kernel_size", k), ("stride", s)):
        if size < 1:
            raise RuntimeError(f"{name} {what} must be greater than zero, but got {size}")
    if p < 0:
        raise RuntimeError(f"{name} padding must be non-negative, but got {p}")
    if p > k // 2:
        raise RuntimeError(
            f"{name} padding should be at most half of kernel size, but got padding={p} and"
            f" kernel_size={k}"
        )
    if d < 1:
        raise RuntimeError(f"{name} dilation must be greater than zero, but got {d}")
    extent = extent_of(shape[-1], k, s, p, d, ceil_mode)
    if extent < 1:
        raise RuntimeError(f"{name} Invalid computed output size: {extent}")


@composite(
    "max_pool1d(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, int[] "
    "dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor",
    unsupported={"bool whole complex": "max_pool1d_impl"},
    surface="nn function",
    samples=calls(
        (Arg((2, 3, 8)), 2), (Arg((2, 3, 8)), 3, 2, 1), Sample((Arg((3,)), 2), error=True)
    ),
    tolerance="exact",
)
def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor] | Tensor:
    """Largest element of each window of `[N, C, L]`."""
    name = "max_pool1d"
    kernel = _sizes(kernel_size, 1, name, "kernel_size")
    strides = _stride(stride, kernel, 1, name)
    pads, dilations = (
        _sizes(value, 1, name, what)
        for value, what in ((padding, "padding"), (dilation, "dilation"))
    )
    if not return_indices:  # torch's own pool of lines; with indices it is that of planes
        _max_line(input, (*kernel, *strides, *pads, *dilations), ceil_mode)
    out, indices = aten.max_pool2d_with_indices(
        input.unsqueeze(-2), (1, *kernel), (1, *strides), (0, *pads), (1, *dilations), ceil_mode
    )
    return (out.squeeze(-2), indices.squeeze(-2)) if return_indices else out.squeeze(-2)


def _with_indices(
    pool: Callable[..., Tensor | tuple[Tensor, Tensor]],
) -> Callable[..., Tensor | tuple[Tensor, Tensor]]:
    def run(
        input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
        dilation: Sizes = 1, ceil_mode: bool = False, return_indices: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
        return pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices=True)

    return run


def _max_pool(n: int, x: Arg, where: str) -> Callable[..., Tensor | tuple[Tensor, Tensor]]:
    """The row of `max_pool{n}d`."""

    def max_pool(
        input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
        dilation: Sizes = 1, ceil_mode: bool = False, return_indices: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
        name = f"max_pool{n}d"
        kernel = _sizes(kernel_size, n, name, "kernel_size")
        row = getattr(aten, f"{name}_with_indices")
        strides, pads = _stride(stride, kernel, n, name), _sizes(padding, n, name, "padding")
        dilations = _sizes(dilation, n, name, "dilation")
        out, indices = row(input, kernel, strides, pads, dilations, ceil_mode)
        return (out, indices) if return_indices else out

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{n}d"
    max_pool.__doc__ = f"Largest element of each window of {where}."
    composite(
        f"max_pool{n}d(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0,"
        " int[] dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor",
        max_pool,
        unsupported={"bool complex": f"max_pool{n}d"},
        surface="nn function",
        samples=calls((x, 2), (x, 3, 2, 1), Sample((Arg((3,)), 2), error=True)),
        tolerance="exact",
    )
    composite(
        f"max_pool{n}d_with_indices.nn(Tensor input, int[] kernel_size, int[]? stride=None,"
        " int[] padding=0, int[] dilation=1, bool ceil_mode=False, bool return_indices=False)"
        " -> (Tensor out, Tensor indices)",
        _with_indices(max_pool),
        unsupported={"bool complex": f"max_pool{n}d"},
        surface="nn",
        samples=calls((x, 2), (x, 3, 2, 1)),
        tolerance="exact",
    )
    return max_pool


max_pool2d = _max_pool(2, _PLANE, "`[N, C, H, W]`; indices are into the flat H W plane")
max_pool3d = _max_pool(3, _SPACE, "`[N, C, D, H, W]`")


@composite(
    "avg_pool1d(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, bool "
    "ceil_mode=False, bool count_include_pad=True) -> Tensor",
    unsupported={"bool narrow complex": "avg_pool2d"},
    surface="nn function",
    samples=calls((Arg((2, 3, 8)), 2), (Arg((2, 3, 8)), 3, 2, 1, True, False)),
    tolerance="accumulated",
)
def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean of each window of `[N, C, L]`."""
    name = "avg_pool1d"
    _is_line(name, input)
    kernel = _sizes(kernel_size, 1, name, "kernel_size")
    out = aten.avg_pool2d(
        input.unsqueeze(-2),
        (1, *kernel),
        (1, *_stride(stride, kernel, 1, name)),
        (0, *_sizes(padding, 1, name, "padding")),
        ceil_mode,
        count_include_pad,
    )
    return out.squeeze(-2)


def _avg_pool(n: int, x: Arg, where: str) -> Callable[..., Tensor]:
    """The row of `avg_pool{n}d`."""

    def avg_pool(
        input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
        ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:  # fmt: skip
        name = f"avg_pool{n}d"
        kernel = _sizes(kernel_size, n, name, "kernel_size")
        strides, pads = _stride(stride, kernel, n, name), _sizes(padding, n, name, "padding")
        row = getattr(aten, name)
        return row(input, kernel, strides, pads, ceil_mode, count_include_pad, divisor_override)

    avg_pool.__name__ = avg_pool.__qualname__ = f"avg_pool{n}d"
    avg_pool.__doc__ = f"Mean of each window of {where}."
    composite(
        f"avg_pool{n}d.nn(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0,"
        " bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        avg_pool,
        surface="nn",
        samples=calls((x, 2), (x, 3, 2, 1, True, False)),
        tolerance="accumulated",
    )
    return avg_pool


avg_pool2d = _avg_pool(2, _PLANE, "`[N, C, H, W]`")
avg_pool3d = _avg_pool(3, _SPACE, "`[N, C, D, H, W]`")


@composite(
    "adaptive_avg_pool1d(Tensor input, int[] output_size) -> Tensor",
    unsupported={"bool whole complex": "adaptive_avg_pool2d"},
    surface="nn function",
    samples=calls((Arg((2, 3, 8)), 2), (Arg((2, 3, 8)), 1)),
    tolerance="accumulated",
)
def adaptive_avg_pool1d(input: Tensor, output_size: Sizes) -> Tensor:
    """Mean over windows that divide `[N, C, L]` into `output_size` outputs."""
    _is_line("adaptive_avg_pool1d", input)
    size = _sizes(output_size, 1, "adaptive_avg_pool1d", "output_size")
    return aten._adaptive_avg_pool2d(input.unsqueeze(-2), (1, *size)).squeeze(-2)


def _adaptive_avg_pool(n: int, x: Arg, where: str) -> Callable[..., Tensor]:
    """The row of `adaptive_avg_pool{n}d`."""

    def adaptive_avg_pool(input: Tensor, output_size: Sizes) -> Tensor:
        size = _all_sizes(output_size, input.shape, n, f"adaptive_avg_pool{n}d")
        if size == (1,) * n and input.dim() in (n + 1, n + 2):
            mean = input.mean(tuple(range(-1, -n - 1, -1)), keepdim=True)
            batch, channels = mean.shape[:2]
            geom = as_images(mean.shape, input._geom)
            if n == 2 and geom.strides != mean.stride():
                mean.as_strided_((batch, channels, 1, 1), (channels, 1, channels, channels))
            return mean
        return getattr(aten, f"_adaptive_avg_pool{n}d")(input, size)

    adaptive_avg_pool.__name__ = adaptive_avg_pool.__qualname__ = f"adaptive_avg_pool{n}d"
    adaptive_avg_pool.__doc__ = f"Mean over windows that divide {where}."
    composite(
        f"adaptive_avg_pool{n}d(Tensor input, int[] output_size) -> Tensor",
        adaptive_avg_pool,
        unsupported={"bool whole complex": f"adaptive_avg_pool{n}d" + "_cpu" * (n == 3)},
        surface="nn",
        samples=calls((x, 2), (x, 1)),
        tolerance="accumulated",
    )
    return adaptive_avg_pool


adaptive_avg_pool2d = _adaptive_avg_pool(
    2, _PLANE, "H and W; None keeps a size; size 1 is a plain mean"
)
adaptive_avg_pool3d = _adaptive_avg_pool(3, _SPACE, "D, H and W")


@composite(
    "adaptive_max_pool1d(Tensor input, int[] output_size, bool return_indices=False) -> Tensor",
    unsupported={"bool whole complex": "adaptive_max_pool2d"},
    surface="nn function",
    samples=calls((Arg((2, 3, 8)), 2)),
    tolerance="exact",
)
def adaptive_max_pool1d(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor] | Tensor:
    """Maximum over windows that divide L."""
    name = "adaptive_max_pool1d"
    _is_line(name, input)
    size = _sizes(output_size, 1, name, "output_size")
    refuse_empty(name, input.shape, 1)
    _refuse_negative((*input.shape[:-1], 1, *size))
    out, indices = aten.adaptive_max_pool2d(input.unsqueeze(-2), (1, *size))
    return (out.squeeze(-2), indices.squeeze(-2)) if return_indices else out.squeeze(-2)


def _adaptive_max_pool(n: int, x: Arg, where: str) -> Callable[..., Tensor | tuple[Tensor, Tensor]]:
    """The row of `adaptive_max_pool{n}d`."""

    def adaptive_max_pool(
        input: Tensor, output_size: Sizes, return_indices: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        size = _all_sizes(output_size, input.shape, n, f"adaptive_max_pool{n}d")
        out, indices = getattr(aten, f"adaptive_max_pool{n}d")(input, size)
        return (out, indices) if return_indices else out

    adaptive_max_pool.__name__ = adaptive_max_pool.__qualname__ = f"adaptive_max_pool{n}d"
    adaptive_max_pool.__doc__ = f"Maximum over windows that divide {where}."
    composite(
        f"adaptive_max_pool{n}d.nn(Tensor input, int[] output_size, bool return_indices=False)"
        " -> Tensor",
        adaptive_max_pool,
        surface="nn",
        samples=calls((x, 2)),
        tolerance="exact",
    )
    return adaptive_max_pool


adaptive_max_pool2d = _adaptive_max_pool(2, _PLANE, "H and W")
adaptive_max_pool3d = _adaptive_max_pool(3, _SPACE, "D, H and W")


def _lp_pool(n: int, x: Arg, where: str) -> Callable[..., Tensor]:
    """The row of `lp_pool{n}d`."""
    mean = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}[n]

    def lp_pool(
        input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> Tensor:  # fmt: skip
        kernel = _ntuple(n)(kernel_size)
        if len(kernel) != n:
            raise ValueError(f"not enough values to unpack (expected {n}, got {len(kernel)})")
        pooled = mean(input.pow(norm_type), kernel, stride, 0, ceil_mode)
        sums = aten.sign(pooled) * aten.relu(aten.abs(pooled)) * prod(kernel)
        return sums.pow(1.0 / norm_type)

    lp_pool.__name__ = lp_pool.__qualname__ = f"lp_pool{n}d"
    lp_pool.__doc__ = f"p-th root of the sum of p-th powers over windows of {where}."
    composite(
        f"lp_pool{n}d(Tensor input, float norm_type, int[] kernel_size, int[]? stride=None,"
        " bool ceil_mode=False) -> Tensor",
        lp_pool,
        surface="nn",
        samples=calls((replace(x, low=0.1), 2.0, 2)),
        tolerance="accumulated",
    )
    return lp_pool


lp_pool1d = _lp_pool(1, _LINE, "L")
lp_pool2d = _lp_pool(2, _PLANE, "H, W")
lp_pool3d = _lp_pool(3, _SPACE, "D, H, W")


def _unpooled(target: Sequence[int], usual: list[int], strides: tuple[int, ...]) -> list[int]:
    """The sizes that are asked for; ValueError in torch's words where no pool has left them."""
    n, message = len(usual), tuple(target)
    sizes = message[-n:] if len(message) == n + 2 else message
    if len(sizes) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a"
            f" length of '{len(sizes)}'"
        )
    for d, (size, around, step) in enumerate(zip(sizes, usual, strides, strict=True)):
        if not around - step < size < around + step:
            raise ValueError(
                f'invalid output_size "{target}" (dim {d} must be between {around - step} and'
                f" {around + step})"
            )
    return list(sizes)


def _refuse_unpool(input: Tensor, indices: Tensor, n: int) -> None:
    """What torch's kernels refuse; a line is a plane with a unit dimension behind it."""
    m = max(n, 2)
    if indices.dtype is not int64:
        named = f" but got: {scalar_name(indices.dtype)}" * (m == 2)
        raise RuntimeError(f"elements in indices should be type int64{named}")
    tail = [1] * (n == 1)
    shape, other = [*input.shape, *tail], [*indices.shape, *tail]
    if len(shape) not in (m + 1, m + 2):
        raise RuntimeError(
            f"Input to max_unpooling{m}d should be a {m + 1}d or {m + 2}d Tensor, but got a tensor"
            f" with {len(shape)} dim{'ensions' if m == 2 else 's'}."
        )
    if shape != other:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({shape}) but got"
            f" indices tensor with shape: {other}"
        )
    empty = [d for d, size in enumerate(shape) if d >= len(shape) - m - 1 and not size]
    if empty:
        raise RuntimeError(
            f"max_unpooling{m}d_forward_out_cpu(): Expected input to have non-zero size for"
            f" non-batch dimensions, but got {shape} with dimension {empty[0]} being empty."
        )


def _outside(places: Tensor, space: Sequence[int]) -> RuntimeError | None:
    """What torch says of a place that is not in the result; None where all are in it."""
    bad = [i for i in places.reshape(-1).tolist() if not 0 <= i < prod(space)]
    if not bad:
        return None
    sizes = "x".join(map(str, space))
    return RuntimeError(
        f"Found an invalid max index: {bad[-1]} (output volumes are of size {sizes})"
    )


def _max_unpool(n: int, x: Arg, indices: Arg) -> None:
    """The row of `max_unpool{n}d`."""

    def max_unpool(
        input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None,
        padding: Sizes = 0, output_size: tuple[int, ...] | None = None,
    ) -> Tensor:  # fmt: skip
        name = f"max_pool{n}d"
        kernel = _sizes(kernel_size, n, name, "kernel_size")
        strides = _stride(stride, kernel, n, "" if stride is None else name)
        pads = _sizes(padding, n, name, "padding")
        pairs = zip(input.shape[-n:], strides, pads, kernel, strict=True)
        space = [(size - 1) * s - 2 * p + k for size, s, p, k in pairs]
        if output_size is not None:
            space = _unpooled(output_size, space, strides)
        alert_not_deterministic(f"max_unpooling{max(n, 2)}d_forward_out")
        _refuse_unpool(input, indices, n)
        if n == 3 and min(strides) <= 0:
            raise RuntimeError(
                f"strides should be greater than zero, but got stride: {list(strides)}"
            )
        lead = list(input.shape[:-n])
        plane = aten.zeros([*lead, prod(space)], dtype=input.dtype, device=input.device)
        places = indices.reshape([*lead, -1])
        try:
            flat = plane.scatter(-1, places, input.reshape([*lead, -1]))
        except RuntimeError as error:
            raise (_outside(places, [*space, 1] if n == 1 else space) or error) from None
        whole = flat.reshape([*lead, *space])
        return in_format_of(whole, input) if n == 2 else whole

    max_unpool.__name__ = max_unpool.__qualname__ = f"max_unpool{n}d"
    max_unpool.__doc__ = f"Inverse of max_pool{n}d where it kept values; zero elsewhere."
    composite(
        f"max_unpool{n}d(Tensor input, Tensor indices, int[] kernel_size, int[]? stride=None,"
        " int[] padding=0, int[]? output_size=None) -> Tensor",
        max_unpool,
        unsupported={"bool whole complex": f"max_unpool{max(n, 2)}d"},
        surface="nn",
        samples=calls((x, indices, 2)),
        tolerance="exact",
        fixed_shape=True,
    )


_max_unpool(1, Arg((1, 2, 3)), Arg((1, 2, 3), "int64", values=(((0, 2, 5), (1, 3, 4)),)))
_max_unpool(2, Arg((1, 1, 2, 2)), Arg((1, 1, 2, 2), "int64", values=((((0, 2), (9, 15)),),)))
_max_unpool(
    3, Arg((1, 1, 1, 2, 2)), Arg((1, 1, 1, 2, 2), "int64", values=(((((0, 2), (9, 31)),),),))
)
