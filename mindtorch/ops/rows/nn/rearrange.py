"""Rows of constant padding, and of sliding blocks to columns and back."""

from __future__ import annotations

from ...complex_parts import below_double
from ...limits import converted
from ...rules import as_images
from ...words import *
from .conv import scatter_windows, windows
from .pool_sizes import expanded
from .pool_windows import columns, from_columns

Sizes = tuple[int, ...]


def _pad_rule(self: Geometry, pad: Sizes, value: Number = 0) -> Geometry:
    shape = list(self.shape)
    if len(pad) % 2 or len(pad) // 2 > self.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. "
            f"Pad length is {len(pad)} while the input has {self.ndim} dimensions."
        )
    for i in range(len(pad) // 2):
        at = self.ndim - 1 - i
        left, right = pad[2 * i], pad[2 * i + 1]
        if shape[at] + min(left, 0) + min(right, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        shape[at] += left + right
    return as_images(tuple(shape), self)


def _pad(self: Array, pad: Sizes, value: Number, *, out: Geometry) -> Array:
    shape, kind = out.shape, self.dtype
    padded = np.full(shape, value, kind) if value else np.zeros(shape, kind)
    source, target = [slice(None)] * self.ndim, [slice(None)] * self.ndim
    for i in range(len(pad) // 2):
        at, left, right = self.ndim - 1 - i, pad[2 * i], pad[2 * i + 1]
        size = self.shape[at]
        source[at] = slice(max(-left, 0), size - max(-right, 0))
        target[at] = slice(max(left, 0), out.shape[at] - max(right, 0))
    padded[tuple(target)] = self[tuple(source)]
    return padded


op(
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
    summary="`self` with `value` added at the ends of its last dimensions.",
    infer=_pad_rule,
    cpu=_pad,
    compute="raw",
    aclnn=call("aclnnConstantPadNd"),
    refuses=converted(2),
    grad={
        "self": lambda grad, pad: aten.constant_pad_nd(grad, tuple(-p for p in pad), 0),
    },
    samples=lambda: [
        *(Sample((Arg((2, 3), d), (1, 2), 1.5)) for d in ("float32", "float64", "bfloat16")),
        Sample((Arg((2, 3), "int64"), (1, 0, 0, 2), 7)),
        Sample((Arg((2, 3, 4)), (-1, 2, 1, -1), 0.5)),
        Sample((Arg((2, 3)), (1, 1, 1, 1, 1, 1)), error=True),
    ],
    tolerance="exact",
    surface="function",
)


def _columns(space: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Sizes:
    for name, sizes in (("kernel", kernel), ("dilation", dilation), ("stride", stride)):
        if any(size < 1 for size in sizes):
            what = name + " size" * (name == "kernel")
            raise RuntimeError(f"{what} should be greater than zero, but got {_sides(name, sizes)}")
    if any(size < 0 for size in padding):
        raise RuntimeError(f"padding should be non-negative, but got {_sides('pad', padding)}")
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(space, kernel, dilation, padding, stride, strict=True)
    )


def _sides(name: str, sizes: Sizes) -> str:
    return f"{name}_height: {sizes[0]} {name}_width: {sizes[1]}"


def _two(**values: Sizes) -> list[Sizes]:
    for name, value in values.items():
        if len(value) not in (1, 2):
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return [expanded(value, 2) for value in values.values()]


def _im2col_rule(
    self: Geometry, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> Geometry:
    if self.ndim < 3:
        wrap_dim(1 if self.ndim < 2 else 2, self.ndim)  # IndexError
    if self.ndim > 4:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(self.shape)}"
        )
    k, d, p, s = _two(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    rows, cols = _columns(self.shape[-2:], k, d, p, s)
    if rows < 1 or cols < 1:
        raise RuntimeError(
            f"Given input with spatial size ({self.shape[-2]}, {self.shape[-1]}), kernel_size="
            f"({k[0]}, {k[1]}), dilation=({d[0]}, {d[1]}), padding=({p[0]}, {p[1]}), calculated"
            f" shape of the array of sliding blocks as ({rows}, {cols}), but its components must"
            " be at least one."
        )
    return self.fresh((*self.shape[:-3], self.shape[-3] * k[0] * k[1], rows * cols))


def _im2col(
    self: Array,
    kernel_size: Sizes,
    dilation: Sizes,
    padding: Sizes,
    stride: Sizes,
    *,
    out: Geometry,
) -> Array:
    k, d, p, s = (expanded(v, 2) for v in (kernel_size, dilation, padding, stride))
    x = self if self.ndim == 4 else self[None]
    seen = windows(x, k, s, p, d, _columns(x.shape[2:], k, d, p, s))
    return seen.transpose(0, 1, 4, 5, 2, 3).reshape(out.shape)


def _col2im_rule(
    self: Geometry,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes,
    padding: Sizes,
    stride: Sizes,
) -> Geometry:
    size, k, d, p, s = _two(
        output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding,
        stride=stride,
    )  # fmt: skip
    if self.ndim not in (2, 3) or not self.shape[-1] or not self.shape[-2]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {list(self.shape)}"
        )
    if min(k) <= 0:
        raise RuntimeError(
            "kernel size should be greater than zero, but got kernel_height: "
            f"{k[0]} kernel_width: {k[1]}"
        )
    if self.shape[-2] % (k[0] * k[1]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={self.shape[-2]} and kernel_size=({k[0]}, {k[1]})."
        )
    rows, cols = _columns(size, k, d, p, s)
    if rows < 1 or cols < 1:
        raise RuntimeError(
            f"Given output_size=({size[0]}, {size[1]}), kernel_size=({k[0]}, {k[1]}), dilation="
            f"({d[0]}, {d[1]}), padding=({p[0]}, {p[1]}), stride=({s[0]}, {s[1]}), calculated shape"
            f" of the array of sliding blocks as ({rows}, {cols}), which is too small"
            " (non-positive)"
        )
    if self.shape[-1] != rows * cols:
        raise RuntimeError(
            f"Given output_size=({size[0]}, {size[1]}), kernel_size=({k[0]}, {k[1]}), dilation="
            f"({d[0]}, {d[1]}), padding=({p[0]}, {p[1]}), stride=({s[0]}, {s[1]}), expected size "
            f"of input's dimension {self.ndim - 1} to match the calculated number of sliding "
            f"blocks {rows} * {cols} = {rows * cols}, but got input.size({self.ndim - 1})="
            f"{self.shape[-1]}."
        )
    return self.fresh((*self.shape[:-2], self.shape[-2] // (k[0] * k[1]), *size))


def _col2im(
    self: Array,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes,
    padding: Sizes,
    stride: Sizes,
    *,
    out: Geometry,
) -> Array:
    sizes = (output_size, kernel_size, dilation, padding, stride)
    size, k, d, p, s = (expanded(v, 2) for v in sizes)
    rows, cols = _columns(size, k, d, p, s)
    x = self if self.ndim == 3 else self[None]
    parts = x.reshape((x.shape[0], out.shape[-3], *k, rows, cols)).transpose(0, 1, 4, 5, 2, 3)
    return scatter_windows(parts, s, p, d, k, size).reshape(out.shape)


_BLOCKS = ("kernel_size", "dilation", "padding", "stride")


def _pair(name: str) -> Callable[..., Any]:
    return lambda args: expanded(args[name], 2)


op(
    "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride)"
    " -> Tensor",
    infer=_im2col_rule,
    cpu=_im2col,
    aclnn=call(
        "aclnnIm2col", "self", *(_pair(name) for name in _BLOCKS), "out", when=below_double("self")
    ),
    lower=columns,
    grad={
        "self": lambda grad, self_geom, kernel_size, dilation, padding, stride: aten.col2im(
            grad, tuple(self_geom.shape[-2:]), kernel_size, dilation, padding, stride
        )
    },
    unsupported={"whole": "im2col_out_cpu"},
    samples=lambda: [
        Sample((Arg((2, 3, 5, 6), d), (2, 3), (1, 2), (1, 0), (2, 1)))
        for d in ("float32", "float64")
    ],
    oracle=lambda torch: torch.ops.aten.im2col,
    tolerance="exact",
    surface="none",
)
op(
    "col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding,"
    " int[2] stride) -> Tensor",
    infer=_col2im_rule,
    cpu=_col2im,
    aclnn=call(
        "aclnnIm2colBackward",
        "self",
        _pair("output_size"),
        *(_pair(name) for name in _BLOCKS),
        "out",
        when=below_double("self"),
    ),
    lower=from_columns,
    grad={
        "self": lambda grad, kernel_size, dilation, padding, stride: aten.im2col(
            grad, kernel_size, dilation, padding, stride
        )
    },
    unsupported={"whole": "col2im_out_cpu"},
    samples=lambda: [
        Sample((Arg((2, 18, 6), d), (5, 6), (2, 3), (1, 2), (1, 0), (2, 1))) for d in ("float64",)
    ],
    oracle=lambda torch: torch.ops.aten.col2im,
    tolerance="accumulated",
    surface="none",
)
