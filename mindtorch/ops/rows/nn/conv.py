"""Rows of convolution in any number of dimensions, and of its gradient by the weight.

The gradient by the input is a transposed convolution, and the other way round, so three adjoint
maps close under differentiation: convolution, transposed convolution, weight gradient.
"""

from __future__ import annotations

from itertools import product
from math import prod

from ...._compat.unsupported_dtypes import kernel
from ...complex_parts import by_parts
from ...costs import convolution, weight_gradient
from ...rules import as_images, c_name, type_name
from ...spec import SHORT_FLOATS, in_dtypes
from ...words import *
from .conv_windows import by_windows, weight_by_windows

Sizes = tuple[int, ...]


def _space(size: int, k: int, stride: int, pad: int, dilation: int) -> int:
    return (size + 2 * pad - dilation * (k - 1) - 1) // stride + 1


def _check(
    input: Geometry, weight: Geometry, bias: Geometry | None, transposed: bool, groups: int
) -> None:
    if weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            f"got weight of size {list(weight.shape)} instead"
        )
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0,"
            f" but got weight of size [{list(weight.shape)}] instead"
        )
    expected = weight.shape[0] if transposed else weight.shape[1] * groups
    if input.shape[1] != expected:
        how = "transposed=1" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {how}, weight of size {list(weight.shape)}, expected input"
            f"{list(input.shape)} to have {expected} channels, but got {input.shape[1]} channels "
            "instead"
        )
    outputs = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and bias.shape != (outputs,):
        how = "transposed=1, " if transposed else ""
        raise RuntimeError(
            f"Given {how}weight of size {list(weight.shape)}, expected bias to be 1-dimensional "
            f"with {outputs} elements, but got bias of size {list(bias.shape)} instead"
        )


def bias_differs(args: Sequence[object]) -> bool:
    """Whether a bias is of another dtype than the input, which torch refuses first."""
    dtypes = [a.dtype for a in args if isinstance(a, Geometry)]
    return len(dtypes) > 2 and dtypes[2] is not dtypes[0]


def _is_of_onednn(
    input: Geometry, weight: Geometry, stride: Sizes, dilation: Sizes, groups: int
) -> bool:
    """Whether torch leaves the call to oneDNN (aten/src/ATen/native/Convolution.cpp)."""
    if input.dtype is not dt.float32 or input.device.type != "cpu":
        return False
    batch, kernel = input.shape[0], (1, *weight.shape[2:])[-2:]
    moved = any(n != 1 for n in (*stride, *dilation))
    plane = (*input.shape[:2], 1, input.shape[2]) if input.ndim == 3 else input.shape[:4]
    return (moved or batch >= 16 or kernel != (1, 1)) and (
        groups > 1 or min(kernel) > 3 or batch > 1 or prod(plane) > 20480
    )


def _check_dtypes(
    input: Geometry, weight: Geometry, bias: Geometry | None, stride: Sizes, dilation: Sizes,
    transposed: bool, groups: int,
) -> None:  # fmt: skip
    """RuntimeError in torch's words for operands of several dtypes."""
    if bias is not None and bias.dtype is not input.dtype and not transposed:
        raise RuntimeError(
            f"Input type ({c_name(input.dtype)}) and bias type ({c_name(bias.dtype)}) should be the"
            " same"
        )
    if _is_of_onednn(input, weight, stride, dilation, groups):
        for name, other in (("weight", weight), ("bias", bias)):
            if other is not None and other.dtype is not input.dtype:
                raise RuntimeError(
                    f"Input type ({type_name(input.dtype)}) and {name} type"
                    f" ({type_name(other.dtype)}) should be the same or input should be a MKLDNN"
                    f" tensor and {name} is a dense tensor"
                )
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(weight.dtype)}"
        )


def _placed(**sizes: Sizes) -> str:
    """Sizes as torch's kernels name them; those of a line are of a plane of one row."""
    axes = ("depth", "height", "width")
    parts = []
    for name, values in sizes.items():
        whole = (_UNIT[name], *values) if len(values) == 1 else values
        axis = zip(axes[-len(whole) :], whole, strict=True)
        parts += [f"{name}_{a}: {value}" for a, value in axis]
    return " ".join(parts)


_UNIT = {"output_padding": 0, "pad": 0, "stride": 1, "dilation": 1, "kernel": 1}


def _check_settings(
    kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, extra: Sizes, groups: int,
    transposed: bool,
) -> None:  # fmt: skip
    """RuntimeError in torch's words for settings that no convolution has."""
    n = len(kernel)
    if n < 1:
        raise RuntimeError("weight should have at least three dimensions")
    for name, sizes in (("stride", stride), ("padding", padding), ("dilation", dilation)):
        if len(sizes) != n:
            raise RuntimeError(f"expected {name} to be a single integer value or a list of {n}"
                               f" values to match the convolution dimensions, but got {name}="
                               f"{list(sizes)}")  # fmt: skip
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    for name, sizes, least in (("padding", padding, 0), ("output_padding", extra, 0),
                               ("stride", stride, 1), ("dilation", dilation, 1)):  # fmt: skip
        if any(size < least for size in sizes):
            kind = "non-positive" if least else "negative"
            if name == "dilation":
                problem = _dilations(sizes, transposed) if min(sizes) == 0 else ""
                raise RuntimeError("dilation should be greater than zero" + problem)
            raise RuntimeError(f"{kind} {name} is not supported")
        if any(size > _LARGEST for size in sizes):
            raise RuntimeError(f"{name} {list(sizes)} is larger than any input can use")
    if any(k <= 0 for k in kernel):
        raise RuntimeError(
            f"kernel size should be greater than zero, but got {_placed(kernel=kernel)}"
        )
    if any(e and e >= s and e >= d for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got "
            + _placed(output_padding=extra, stride=stride, dilation=dilation)
        )


def _dilations(sizes: Sizes, transposed: bool) -> str:
    """The end of torch's sentence about a dilation of zero; lines are planes of one row."""
    if len(sizes) == 3:
        return ""
    plane = [1, *sizes] if len(sizes) == 1 else list(sizes)
    if not transposed:
        return f", but got {plane}"
    return f", but got dilation_height: {plane[0]}, dilation_width: {plane[1]}"


_LARGEST = (1 << 62) - 1  # so that twice as much is an int64


def _rule(
    input: Geometry,
    weight: Geometry,
    bias: Geometry | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
) -> Geometry:
    _check_settings(weight.shape[2:], stride, padding, dilation, output_padding, groups,
                    transposed)  # fmt: skip
    if input.ndim != weight.ndim:
        raise RuntimeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight "
            f"{list(weight.shape)}, but got {input.ndim}-dimensional input of size"
            f" {list(input.shape)} instead"
        )
    if input.dtype.category == dt.COMPLEX and input.dtype is not weight.dtype:
        raise RuntimeError(
            f"Input type ({type_name(input.dtype)}) and weight type ({type_name(weight.dtype)})"
            " should be the same"
        )
    _check(input, weight, bias, transposed, groups)
    kernel, space = weight.shape[2:], input.shape[2:]
    if transposed:
        spatial = tuple(
            (n - 1) * s - 2 * p + d * (k - 1) + extra + 1
            for n, k, s, p, d, extra in zip(
                space, kernel, stride, padding, dilation, output_padding, strict=True
            )
        )
        if any(size < 1 for size in spatial):
            one = "1 x " * (len(space) == 1)  # a line is a plane of one row
            raise RuntimeError(
                f"Given input size per channel: ({one}{_by(space)}). Calculated output size per"
                f" channel: ({one}{_by(spatial)}). Output size is too small"
            )
        _check_dtypes(input, weight, bias, stride, dilation, transposed, groups)
        return _as_images((input.shape[0], weight.shape[1] * groups, *spatial), input, weight)
    padded = [n + 2 * p for n, p in zip(space, padding, strict=True)]
    if any(n < d * (k - 1) + 1 for n, k, d in zip(padded, kernel, dilation, strict=True)):
        reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_by(padded)}). Kernel size: "
            f"({_by(reach)}). Kernel size can't be greater than actual input size"
        )
    _check_dtypes(input, weight, bias, stride, dilation, transposed, groups)
    spatial = tuple(
        _space(n, k, s, p, d)
        for n, k, s, p, d in zip(space, kernel, stride, padding, dilation, strict=True)
    )
    return _as_images((input.shape[0], weight.shape[0], *spatial), input, weight)


def _as_images(shape: Sizes, input: Geometry, weight: Geometry) -> Geometry:
    """Channels last where either is; volumes in the usual order, as in torch."""
    return as_images(shape, input, weight) if len(shape) == 4 else input.fresh(shape)


def _by(sizes: Any) -> str:
    return " x ".join(str(size) for size in sizes)


def windows(
    x: Array,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    out: Sizes,
    fill: int = 0,
) -> Array:
    """A view [N, C, *out, *kernel] of the padded input; each window's elements are last."""
    if any(padding):
        edges = [(0, 0), (0, 0), *((p, p) for p in padding)]
        x = np.pad(x, edges, constant_values=fill)
    steps = x.strides[2:]
    strides = (
        *x.strides[:2],
        *(s * step for s, step in zip(stride, steps, strict=True)),
        *(d * step for d, step in zip(dilation, steps, strict=True)),
    )
    shape = (*x.shape[:2], *out, *kernel)
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)


def _lane(values: Array, n: int) -> Array:
    """One value per channel, as it meets [N, C, *space]: a depthwise convolution's weight."""
    return values.reshape((1, -1, *([1] * n)))


def _columns(seen: Array, n: int) -> Array:
    """Windows [N, C, *out, *kernel] as [N, C * kernel, out]: whole rows of planes are copied, and
    what a product with weights gives lies as a result does."""
    order = (0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n))
    sizes = seen.shape[1] * prod(seen.shape[2 + n :]), prod(seen.shape[2 : 2 + n])
    return seen.transpose(order).reshape(len(seen), *sizes)


def _forward(
    x: Array, weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, out: Sizes
) -> Array:
    n, kernel = len(out), weight.shape[2:]
    seen = windows(x, kernel, stride, padding, dilation, out)
    per_in, per_out = weight.shape[1], weight.shape[0] // groups
    result = np.zeros((x.shape[0], weight.shape[0], *out), x.dtype)
    if groups > 1 and per_in == per_out == 1:
        for at in np.ndindex(*kernel):
            result += seen[(..., *at)] * _lane(weight[(slice(None), 0, *at)], n)
        return result
    for g in range(groups):
        part = _columns(seen[:, g * per_in : (g + 1) * per_in], n)
        rows = weight[g * per_out : (g + 1) * per_out].reshape(per_out, part.shape[1])
        result[:, g * per_out : (g + 1) * per_out] = (rows @ part).reshape(len(x), per_out, *out)
    return result


def scatter_windows(
    parts: Any, stride: Sizes, padding: Sizes, dilation: Sizes, kernel: Sizes, space: Sizes
) -> Array:
    """Adds parts [N, C, *out, *kernel] into [N, C, *space]: the adjoint of `windows`."""
    out = parts.shape[2 : 2 + len(space)]
    reach = [
        max(n + 2 * p, (m - 1) * s + d * (k - 1) + 1)
        for n, p, m, s, d, k in zip(space, padding, out, stride, dilation, kernel, strict=True)
    ]
    whole = np.zeros((*parts.shape[:2], *reach), parts.dtype)
    every = (slice(None), slice(None))
    for at in product(*(range(k) for k in kernel)):
        where = tuple(
            slice(i * d, i * d + (m - 1) * s + 1, s)
            for i, d, m, s in zip(at, dilation, out, stride, strict=True)
        )
        whole[every + where] += parts[(..., *at)]
    inner = tuple(slice(p, p + n) for p, n in zip(padding, space, strict=True))
    return np.ascontiguousarray(whole[every + inner])


def _backward(
    x: Array, weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, out: Sizes
) -> Array:
    """The transposed convolution: x [N, C, *in], weight [C, O / groups, *k] → [N, O, *out]."""
    n, kernel = len(out), weight.shape[2:]
    per_in, per_out = weight.shape[0] // groups, weight.shape[1]
    if groups > 1 and per_in == per_out == 1:
        lanes = x.reshape((*x.shape, *([1] * n))) * weight.reshape((1, groups, *([1] * n), *kernel))
        return scatter_windows(lanes, stride, padding, dilation, kernel, out)
    result = np.empty((x.shape[0], per_out * groups, *out), x.dtype)
    for g in range(groups):
        part = x[:, g * per_in : (g + 1) * per_in]
        rows = weight[g * per_in : (g + 1) * per_in]
        flat = rows.reshape(per_in, per_out * prod(kernel)).T
        product = flat @ part.reshape(len(x), per_in, prod(x.shape[2:]))
        product = product.reshape(len(x), per_out, *kernel, *x.shape[2:])
        product = product.transpose(0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n))
        result[:, g * per_out : (g + 1) * per_out] = scatter_windows(
            product, stride, padding, dilation, kernel, out
        )
    return result


def _convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    *,
    out: Geometry,
) -> Array:
    run = _backward if transposed else _forward
    result = run(input, weight, stride, padding, dilation, groups, out.shape[2:])
    if bias is not None:
        result += bias.reshape((1, -1, *([1] * (result.ndim - 2))))
    return result


def _dense(grad: Tensor) -> Tensor:
    """A gradient that is expanded, as that of a sum, as elements that native kernels read."""
    return aten.contiguous(grad) if 0 in grad.stride() else grad


def _by_input(
    grad: Tensor,
    input_geom: Geometry,
    weight: Tensor,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
) -> Tensor:
    extra = (0,) * len(stride)
    if not transposed:
        extra = tuple(
            n - ((m - 1) * s - 2 * p + d * (k - 1) + 1)
            for n, m, s, p, d, k in zip(
                input_geom.shape[2:],
                grad.shape[2:],
                stride,
                padding,
                dilation,
                weight.shape[2:],
                strict=True,
            )
        )
    flow = _dense(grad)
    result = aten.convolution(
        flow, aten.conj_of(weight), None, stride, padding, dilation, not transposed, extra, groups
    )
    for d, size in enumerate(input_geom.shape[2:], 2):
        # An output padding of a stride and more leaves windows that no input made.
        if result.shape[d] != size:
            result = aten.narrow(result, d, 0, size)
    return result


def _by_weight(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
) -> Tensor:
    if transposed:
        # An output padding of a stride and more leaves windows that no input made.
        padded: list[int] = []
        sizes = zip(grad.shape[2:], input.shape[2:], weight.shape[2:], stride, padding, dilation,
                    strict=True)  # fmt: skip
        for n, m, k, s, p, d in sizes:
            padded = [0, (n + 2 * p - d * (k - 1) - 1) // s + 1 - m, *padded]
        if any(padded):
            input = aten.constant_pad_nd(input, padded)
    input = aten.conj_of(input)
    pair = (input, _dense(grad)) if transposed else (_dense(grad), input)
    return aten._convolution_weight_grad(*pair, weight, stride, padding, dilation, groups)


def _of_parts(input: Tensor, weight: Tensor, bias: Tensor | None, *rest: Any) -> Tensor:
    """Of complex64, by four convolutions of reals; of wider numbers and integers, by windows."""
    if input.dtype is not dt.complex64:
        return by_windows(input, weight, bias, *rest)
    result = by_parts(lambda a, b: aten.convolution(a, b, None, *rest))(input, weight)
    return result if bias is None else result + aten.reshape(bias, (-1, *(1,) * (input.ndim - 2)))


def _weight_grad_of_parts(grad_output: Tensor, input: Tensor, weight: Tensor, *rest: Any) -> Tensor:
    if input.dtype is not dt.complex64:
        return weight_by_windows(grad_output, input, weight, *rest)
    like = aten.real(weight)
    product = lambda a, b: aten._convolution_weight_grad(a, b, like, *rest)  # noqa: E731
    return by_parts(product)(grad_output, input)


def _by_bias(grad: Tensor) -> Tensor:
    return aten.sum(grad, (0, *range(2, grad.ndim)))


def _samples() -> list[Sample]:
    def sample(x: Sizes, w: Sizes, bias: int, *rest: Any, dtype: str = "float64") -> Sample:
        b = Arg((bias,), dtype) if bias else None
        return Sample((Arg(x, dtype), Arg(w, dtype, high=1.5), b, *rest))

    one, two = (1, 1), (2, 2)
    zero = (0, 0)
    return [
        sample((2, 3, 5), (4, 3, 2), 4, (1,), (0,), (1,), False, (0,), 1),
        sample((2, 3, 5, 6), (4, 3, 3, 2), 4, one, zero, one, False, zero, 1, dtype="float32"),
        sample((2, 4, 5, 6), (6, 2, 2, 3), 0, (2, 1), (1, 2), (1, 2), False, zero, 2),
        sample((1, 4, 4, 4), (4, 1, 3, 3), 4, one, one, one, False, zero, 4),
        sample((1, 2, 3, 4, 3), (3, 2, 2, 2, 2), 3, *((n,) * 3 for n in (1, 1, 1)), False,
               (0, 0, 0), 1),
        sample((2, 4, 3, 3), (4, 3, 3, 2), 6, two, one, one, True, (1, 0), 2),
        sample((2, 3, 4), (3, 2, 3), 2, (2,), (0,), (2,), True, (0,), 1),
    ]  # fmt: skip


op(
    "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding,"
    " int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
    summary="Convolution of `[N, C, *]` with `weight` `[O, C / groups, *]`.",
    infer=_rule,
    cpu=_convolution,
    aclnn=call(
        "aclnnConvolution",
        "input",
        "weight",
        "bias",
        "stride",
        "padding",
        "dilation",
        "transposed",
        "output_padding",
        "groups",
        "out",
        "conv_math_type",
        when=in_dtypes("input", *SHORT_FLOATS),
    ),
    lower=_of_parts,
    grad={"input": _by_input, "weight": _by_weight, "bias": _by_bias},
    unsupported={"bool": kernel("slow_conv2d_cpu", unless=bias_differs)},
    samples=_samples,
    tolerance="composite",
    cost=convolution,
    surface="function",
    autocast="lower",
)


def _weight_grad(
    grad: Array,
    input: Array,
    weight: Array,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Array:
    n, kernel = len(stride), weight.shape[2:]
    out = grad.shape[2:]
    seen = windows(input, kernel, stride, padding, dilation, out)
    per_in, per_out = weight.shape[1], weight.shape[0] // groups
    result = np.empty(weight.shape, grad.dtype)
    if groups > 1 and per_in == per_out == 1:
        for at in np.ndindex(*kernel):
            both = grad * seen[(..., *at)]
            result[(slice(None), 0, *at)] = both.sum(axis=(0, *range(2, 2 + n)))
        return result
    result[...] = 0
    for g in range(groups):
        part = _columns(seen[:, g * per_in : (g + 1) * per_in], n)
        flow = grad[:, g * per_out : (g + 1) * per_out].reshape(len(grad), per_out, part.shape[2])
        target = result[g * per_out : (g + 1) * per_out]
        for one, columns in zip(flow, part, strict=True):  # no products of each example at once
            target += (one @ columns.T).reshape(target.shape)
    return result


def _weight_grad_by_grad(
    grad: Tensor, input: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Tensor:
    extra = (0,) * len(stride)
    return aten.convolution(input, grad, None, stride, padding, dilation, False, extra, groups)


def _weight_grad_by_input(
    grad: Tensor,
    grad_output: Tensor,
    input_geom: Geometry,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    extra = (0,) * len(stride)
    return _by_input(grad_output, input_geom, grad, stride, padding, dilation, False, extra, groups)


# The part of torch's convolution_backward that is no convolution; `weight` gives its shape.
op(
    "_convolution_weight_grad(Tensor grad_output, Tensor input, Tensor weight, int[] stride,"
    " int[] padding, int[] dilation, int groups) -> Tensor",
    infer=lambda grad_output, input, weight, stride, padding, dilation, groups: weight.fresh(),
    cpu=_weight_grad,
    aclnn=call(
        "aclnnConvolutionBackward",
        "grad_output",
        "input",
        "weight",
        lambda a: (a["weight"].shape[0],),
        "stride",
        "padding",
        "dilation",
        False,
        lambda a: (0,) * len(a["stride"]),
        "groups",
        (False, True, False),
        "conv_math_type",
        None,
        "out",
        None,
        when=in_dtypes("input", *SHORT_FLOATS),
    ),
    lower=_weight_grad_of_parts,
    grad={"grad_output": _weight_grad_by_grad, "input": _weight_grad_by_input},
    unsupported={"bool": kernel("slow_conv2d_cpu", unless=bias_differs)},
    tolerance="accumulated",
    cost=weight_gradient,
    samples=calls(
        (Arg((2, 4, 3, 3)), Arg((2, 3, 5, 5)), Arg((4, 3, 3, 3)), (1, 1), (0, 0), (1, 1), 1)
    ),
    fixed_shape=True,
)
