"""Owns the sizes of pooling: of results, of padding, of what each window has inside."""

from __future__ import annotations

from ...words import *

Sizes = tuple[int, ...]


def expanded(value: Sizes | int, n: int, default: Sizes = ()) -> Sizes:
    """One size per dimension; an empty list means the default."""
    value = (value,) if isinstance(value, int) else value or default
    return value * n if len(value) == 1 else value


def refuse_windows(kernel: Sizes, stride: Sizes, dilation: Sizes) -> None:
    """RuntimeError in torch's words for windows that have no elements or do not move."""
    if any(abs(n) >= 1 << 31 for n in (*kernel, *stride, *dilation)):
        raise RuntimeError("value cannot be converted to type int without overflow")
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    named = (
        ("kernel size", "k", kernel),
        ("stride", "d", stride),
        ("dilation", "dilation", dilation),
    )
    for name, short, sizes in named:
        if any(size < 1 for size in sizes):
            axes = zip("THW"[-len(sizes) :], sizes, strict=True)
            settings = " ".join(f"{short}{axis}: {size}" for axis, size in axes)
            raise RuntimeError(f"{name} should be greater than zero, but got {settings}")


def extent_of(size: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    span = size + 2 * p - d * (k - 1) - 1
    extent = (-(-span // s) if ceil_mode else span // s) + 1
    # The last window has to start inside the input or its left padding.
    return extent - 1 if ceil_mode and (extent - 1) * s >= size + p else extent


def _require_positive(shape: Sizes, n: int, name: str) -> None:
    """Nothing but the batch may be empty."""
    if len(shape) in (n + 1, n + 2) and all(shape[-n - 1 :]):
        return
    if n == 2 and name != "max_pool2d":
        wrap_dim(-3, len(shape))  # IndexError
    if n == 2 and len(shape) not in (3, 4) and name == "max_pool2d":
        raise RuntimeError("non-empty 3D or 4D (batch mode) tensor expected for input")
    if n == 2:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but"
            f" got:{list(shape)}"
        )
    raise RuntimeError(
        f"{_KERNELS[name]}(): Expected input's non-batch dimensions to have positive length, but"
        f" input has a shape of {list(shape)} and non-batch dimension 0 has length zero!"
    )


# What torch's kernels call themselves where they refuse empty inputs.
_KERNELS = {"max_pool3d": "max_pool3d_with_indices_out_cpu_template", "avg_pool3d": "avg_pool3d"}


def _refuse_pads(kernel: Sizes, padding: Sizes, dilation: Sizes) -> None:
    for p, k, d in zip(padding, kernel, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > k // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={p}, kernel_size={k} and dilation={d}"
            )


def _too_small(name: str, shape: Sizes, kernel: Sizes, out: Sizes) -> str:
    n = len(kernel)
    if name == "avg_pool3d":
        image, window = (
            " ".join(f"{short}{axis}: {size}" for axis, size in zip("THW", sizes, strict=True))
            for short, sizes in (("", shape[-n:]), ("k", kernel))
        )
        return f"input image ({image}) smaller than kernel size ({window})"
    before, after = ("x".join(map(str, (shape[-n - 1], *s))) for s in (shape[-n:], out))
    return (
        f"Given input size: ({before}). Calculated output size: ({after}). Output size is too small"
    )


def pooled(
    name: str,
    self: Geometry,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> Sizes:
    n = len(kernel)
    if n == 3 and self.ndim not in (4, 5):
        raise RuntimeError("non-empty 4D or 5D (batch mode) tensor expected for input")
    if name == "avg_pool2d":
        wrap_dim(-3, self.ndim)
    refuse_windows(kernel, stride, dilation)
    _refuse_pads(kernel, padding, dilation)
    _require_positive(self.shape, n, name)
    out_sizes = tuple(
        extent_of(*sizes, ceil_mode)
        for sizes in zip(self.shape[-n:], kernel, stride, padding, dilation, strict=True)
    )
    if any(size < 1 for size in out_sizes):
        raise RuntimeError(_too_small(name, self.shape, kernel, out_sizes))
    return (*self.shape[:-n], *out_sizes)


def covered(space: Sizes, out: Sizes, k: Sizes, s: Sizes, p: Sizes, d: Sizes) -> list[Any]:
    """Padding at both ends of each dimension, so that every window has its elements."""
    return [
        (p_, max(p_, (m - 1) * s_ + d_ * (k_ - 1) + 1 - n - p_))
        for n, m, k_, s_, p_, d_ in zip(space, out, k, s, p, d, strict=True)
    ]


def counts_of(
    space: Sizes, out: Sizes, k: Sizes, s: Sizes, p: Sizes, include: bool, override: int | None
) -> Array:
    """What each window's sum is divided by, [*out]."""
    if override is not None:
        return np.asarray(float(override))
    total: Any = np.ones(())
    for n, m, k_, s_, p_ in zip(space, out, k, s, p, strict=True):
        start = np.arange(m) * s_ - p_
        end = np.minimum(start + k_, n + p_)
        counts = end - start if include else np.minimum(end, n) - np.maximum(start, 0)
        total = total[..., None] * counts
    return total
