"""Rows of Fourier transforms over several dimensions: complex, real to complex, and back.

On cpu by scipy.fft (pocketfft); on npu by products with the matrices of the transform, split into
factors as Cooley and Tukey do ("An algorithm for the machine calculation of complex Fourier
series", 1965). `normalization` is torch's number: 0 none, 1 by the root of the size, 2 by the size.
"""

from __future__ import annotations

from math import isqrt, pi, prod

from ...words import *

DIRECT = 128  # the largest size whose matrix is used as it is


def _scale(normalization: int, count: int) -> float:
    if normalization not in (0, 1, 2):
        raise RuntimeError(f"Unsupported normalization type: {normalization}; expected 0, 1 or 2")
    return (1.0, 1.0 / max(count, 1) ** 0.5, 1.0 / max(count, 1))[normalization]


def _sizes(t: Array | Tensor, dim: Sequence[int]) -> int:
    return prod(t.shape[d] for d in dim)


def _c2c(self: Array, dim: Sequence[int], normalization: int, forward: bool) -> Array:
    from scipy import fft

    result = fft.fftn(self, axes=dim) if forward else fft.ifftn(self, axes=dim, norm="forward")
    return _scaled(result, _scale(normalization, _sizes(self, dim)))


def _scaled(result: Array, scale: float) -> Array:
    """By parts, so that -0 keeps its sign."""
    if scale == 1:
        return np.asarray(result)
    result = np.ascontiguousarray(result)
    return (result.view(result.real.dtype) * result.real.dtype.type(scale)).view(result.dtype)


def _r2c(self: Array, dim: Sequence[int], normalization: int, onesided: bool) -> Array:
    from scipy import fft

    if len(dim) > 1:
        result = fft.rfftn(self, axes=dim) if onesided else fft.fftn(self, axes=dim)
    else:
        result = np.moveaxis(np.asarray(fft.rfft(self, axis=dim[0])), dim[0], -1)
        n = self.shape[dim[0]]
        for at in {0, n // 2} if n % 2 == 0 else {0}:
            result.imag[..., at] = 0  # +0, where pocketfft leaves either
        if not onesided:
            result = np.concatenate([result, np.conj(result[..., (n - 1) // 2 : 0 : -1])], -1)
        result = np.moveaxis(result, -1, dim[0])
    return _scaled(result, _scale(normalization, _sizes(self, dim)))


def _c2r(self: Array, dim: Sequence[int], normalization: int, last_dim_size: int) -> Array:
    from scipy import fft

    sizes = [*(self.shape[d] for d in dim[:-1]), last_dim_size]
    result = fft.irfftn(self, s=sizes, axes=dim, norm="forward")
    return np.asarray(result * self.real.dtype.type(_scale(normalization, prod(sizes))))


def _turns(rows: int, columns: int, n: int, like: Tensor, sign: int) -> tuple[Tensor, Tensor]:
    """cos and `sign` sin of 2π r c / n for a matrix of rows and columns.

    In whole steps, 4 n to a turn, from which the nearest quarter is cut: zeros and ones are exact.
    """
    r = aten.arange(0, 4 * rows, 4, dtype=dt.int64, device=like.device)
    c = aten.arange(0, columns, dtype=dt.int64, device=like.device)
    quarter = n if sign < 0 else 3 * n
    ahead = aten.arange(0, 2 * quarter, quarter, dtype=dt.int64, device=like.device)
    steps = aten.unsqueeze(r, 1) * c + aten.reshape(ahead, (2, 1, 1))
    far = aten.abs(aten.remainder(steps, 4 * n) - 2 * n) - n
    both = aten.sin(aten.to(far, like.dtype) * (pi / (2 * n)))
    return aten.select(both, 0, 0), aten.select(both, 0, 1)


def _last(re: Tensor, im: Tensor | None, sign: int, count: int) -> tuple[Tensor, Tensor]:
    """The first `count` elements of the transform of the last dimension, of a tensor in two parts;
    a real one has no `im`."""
    n = re.shape[-1]
    divisor = next((d for d in range(isqrt(n), 1, -1) if n % d == 0), 1) if n > DIRECT else 1
    if divisor == 1:
        cos, sin = _turns(n, count, n, re, sign)
        if im is None:
            return re @ cos, re @ sin
        return re @ cos - im @ sin, re @ sin + im @ cos
    lead, other = tuple(re.shape[:-1]), n // divisor

    def columns(t: Tensor) -> Tensor:
        return aten.contiguous(aten.transpose(aten.reshape(t, (*lead, divisor, other)), -1, -2))

    re, im = _last(columns(re), None if im is None else columns(im), sign, divisor)
    cos, sin = _turns(other, divisor, n, re, sign)
    re, im = re * cos - im * sin, re * sin + im * cos
    re, im = (aten.contiguous(aten.transpose(t, -1, -2)) for t in (re, im))
    re, im = _last(re, im, sign, other)
    re, im = (
        aten.reshape(aten.contiguous(aten.transpose(t, -1, -2)), (*lead, n)) for t in (re, im)
    )
    return (
        (re, im) if count == n else (aten.narrow(re, -1, 0, count), aten.narrow(im, -1, 0, count))
    )


def _parts(
    re: Tensor, im: Tensor | None, dim: Sequence[int], forward: bool, scale: float
) -> tuple[Tensor, Tensor]:
    for d in dim:
        re, im = _along(re, im, d, forward, re.shape[d])
    assert im is not None
    return (re, im) if scale == 1 else (re * scale, im * scale)


def _along(
    re: Tensor, im: Tensor | None, d: int, forward: bool, count: int
) -> tuple[Tensor, Tensor]:
    """The first `count` elements of the transform of one dimension."""
    re = aten.contiguous(aten.transpose(re, d, -1))
    im = None if im is None else aten.contiguous(aten.transpose(im, d, -1))
    re, im = _last(re, im, -1 if forward else 1, count)
    return aten.transpose(re, d, -1), aten.transpose(im, d, -1)


def _joined(re: Tensor, im: Tensor) -> Tensor:
    return aten.complex(aten.contiguous(re), aten.contiguous(im))


def _split(t: Tensor) -> tuple[Tensor, Tensor]:
    both = aten.view_as_real(t)
    return aten.contiguous(aten.select(both, -1, 0)), aten.contiguous(aten.select(both, -1, 1))


def _order(self: Geometry, dim: Sequence[int], last: bool = False) -> list[int]:
    """All dimensions from the outermost in the result's memory: torch's library puts those that are
    transformed innermost, each kind by the input's strides; `last` keeps the last one's place."""
    dims = [d % self.ndim for d in dim]

    def stride(d: int) -> int:
        return -self.strides[d]

    batch = sorted((d for d in range(self.ndim) if d not in dims), key=stride)
    return batch + (sorted(dims[:-1], key=stride) + dims[-1:] if last else sorted(dims, key=stride))


def _strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def _in_order(result: Tensor, order: Sequence[int]) -> Tensor:
    """The same elements, with the dimensions in that order in memory."""
    if list(order) == sorted(order):
        return result
    back = [order.index(d) for d in range(len(order))]
    return aten.permute(aten.contiguous(aten.permute(result, order)), back)


def _c2c_lower(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    scale = _scale(normalization, _sizes(self, dim))
    result = _joined(*_parts(*_split(self), dim, forward, scale))
    return _in_order(result, _order(self._geom, dim))


def _r2c_lower(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    scale = _scale(normalization, _sizes(self, dim))
    size = self.shape[dim[-1]]
    re, im = _along(self, None, dim[-1], True, size // 2 + 1 if onesided else size)
    result = _joined(*_parts(re, im, dim[:-1], True, scale))
    return _in_order(result, _order(self._geom, dim, last=True))


def _c2r_lower(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    """Of the half that is given: the other half is its mirror, conjugated."""
    scale = _scale(normalization, _sizes(self, dim[:-1]) * last_dim_size)
    re, im = _parts(*_split(self), dim[:-1], False, scale)
    last, count = dim[-1], last_dim_size // 2 + 1
    re, im = (aten.narrow(t, last, 0, count) for t in (re, im))
    # The first element, and the middle of an even size, are taken as real.
    inner = aten.narrow(im, last, 1, (last_dim_size - 1) // 2)
    zero = aten.zeros_like(aten.narrow(im, last, 0, 1))
    middle = [zero] if last_dim_size % 2 == 0 else []
    im = aten.cat([zero, inner, *middle], last)
    tail = (last_dim_size - 1) // 2
    mirror = [aten.flip(aten.narrow(t, last, 1, tail), (last,)) for t in (re, im)]
    re, im = aten.cat([re, mirror[0]], last), aten.cat([im, -mirror[1]], last)
    result = _parts(re, im, (last,), False, 1.0)[0]
    return _in_order(result, _c2r_order(self._geom, dim))


def _c2r_order(self: Geometry, dim: Sequence[int]) -> list[int]:
    """As `_order`: all but the last dimension are transformed first, into memory of their own."""
    if len(dim) > 1:
        between = _strides(self.shape, _order(self, dim[:-1]))
        self = self.fresh(self.shape, self.dtype, between)
    return _order(self, dim[-1:])


def refuse_half(dtype: dt.dtype) -> None:
    """RuntimeError in torch's words: no transform is computed in 16 bits."""
    if dtype in (dt.float16, dt.bfloat16):
        name = "Half" if dtype is dt.float16 else "BFloat16"
        raise RuntimeError(f"Unsupported dtype {name}")


def _wrapped(self: Geometry, dim: Sequence[int]) -> tuple[int, ...]:
    return tuple(d % self.ndim for d in dim)


def _r2c_infer(self: Geometry, dim: Sequence[int], normalization: int, onesided: bool) -> Geometry:
    refuse_half(self.dtype)
    shape = list(self.shape)
    if onesided:
        shape[dim[-1]] = shape[dim[-1]] // 2 + 1
    strides = _strides(shape, _order(self, dim, last=True))
    return self.fresh(tuple(shape), self.dtype.to_complex(), strides)


def _c2r_infer(
    self: Geometry, dim: Sequence[int], normalization: int, last_dim_size: int
) -> Geometry:
    shape = list(self.shape)
    shape[dim[-1]] = last_dim_size
    return self.fresh(tuple(shape), self.dtype.to_real(), _strides(shape, _c2r_order(self, dim)))


def _r2c_grad(
    grad: Tensor, self_geom: Geometry, dim: Sequence[int], normalization: int, onesided: bool
) -> Tensor:
    if onesided:
        missing = self_geom.shape[dim[-1]] - grad.shape[dim[-1]]
        grad = padded(grad, dim[-1], missing)
    return aten.real(aten._fft_c2c(grad, dim, normalization, False))


def _c2r_grad(grad: Tensor, self_geom: Geometry, dim: Sequence[int], normalization: int) -> Tensor:
    result = aten._fft_r2c(grad, dim, normalization, True)
    last = dim[-1]
    twice = grad.shape[last] - result.shape[last]
    if twice > 0:
        cuts = (1, twice, result.shape[last] - 1 - twice)
        first, inner, rest = aten.split_with_sizes(result, cuts, last)
        result = aten.cat([first, inner * 2, rest], last)
    missing = self_geom.shape[last] - result.shape[last]
    return result if missing <= 0 else padded(result, last, missing)


def padded(t: Tensor, dim: int, missing: int) -> Tensor:
    """`t` with zeros at the end of a dimension; complex ones by their parts."""
    if not missing:
        return t
    shape = list(t.shape)
    shape[dim] = missing
    zeros = aten.zeros(tuple(shape), dtype=t.dtype, device=t.device)
    if t.is_complex():
        both = aten.cat([aten.view_as_real(t), aten.view_as_real(zeros)], dim % t.ndim)
        return aten.view_as_complex(both)
    return aten.cat([t, zeros], dim)


op(
    "_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor",
    infer=lambda self, dim, normalization, forward: self.fresh(
        self.shape, self.dtype, _strides(self.shape, _order(self, dim))
    ),
    cpu=_c2c,
    lower=_c2c_lower,
    grad={
        "self": lambda grad, dim, normalization, forward: aten._fft_c2c(
            grad, dim, normalization, not forward
        )
    },
    samples=calls((Arg((3, 4), "complex64"), (0, 1), 1, True),
                  (Arg((6,), "complex128"), (0,), 0, False)),
    tolerance="composite",
    surface="function",
    fixed_shape=True,
)  # fmt: skip
op(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    infer=_r2c_infer,
    cpu=_r2c,
    lower=_r2c_lower,
    grad={"self": _r2c_grad},
    samples=calls((Arg((3, 4)), (0, 1), 2, True), (Arg((5,)), (0,), 0, False)),
    tolerance="composite",
    surface="function",
    fixed_shape=True,
)
op(
    "_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor",
    infer=_c2r_infer,
    cpu=_c2r,
    lower=_c2r_lower,
    grad={"self": _c2r_grad},
    samples=calls((Arg((3, 3), "complex64"), (1,), 0, 4), (Arg((3,), "complex64"), (0,), 1, 5)),
    tolerance="composite",
    surface="function",
    fixed_shape=True,
)
