"""Rows of torch.fft by name: sizes, dimensions and norms brought to the three transforms."""

from __future__ import annotations

from math import inf

from ...._tensor.device import DeviceLike
from ...rules import wrap_dims
from ...words import *
from .transforms import padded, refuse_half

_REAL, _COMPLEX = Arg((4, 3)), Arg((4, 3), "complex64")


def _number(norm: str | None, forward: bool) -> int:
    """torch's number of a norm: "backward" scales the inverse, "forward" the transform."""
    if norm in (None, "backward"):
        return 0 if forward else 2
    if norm == "forward":
        return 2 if forward else 0
    if norm == "ortho":
        return 1
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _ready(self: Tensor, kind: str, name: str) -> Tensor:
    """In a floating dtype, or complex where `kind` says so; RuntimeError in torch's words."""
    if kind == "real" and self.is_complex():
        if name == "ihfftn":
            raise RuntimeError(
                f"Only supports floating-point dtypes, but found: {self.dtype.legacy}"
            )
        kind = "real-valued" if name == "rfftn" else "real"
        raise RuntimeError(f"{name} expects a {kind} input tensor, but got {self.dtype.legacy}")
    refuse_half(self.dtype)
    if self.dtype.category < dt.FLOAT:
        self = aten.to(self, dt.get_default_dtype())
    if kind == "complex" and not self.is_complex():
        self = aten.complex(self, aten.zeros_like(self))
    return self


def _fitted(self: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Cut, or filled with zeros, to the sizes of some dimensions; -1 leaves a size."""
    for d, n in zip(dims, sizes, strict=True):
        have = self.shape[d]
        if n == -1 or n == have:
            continue
        self = aten.narrow(self, d, 0, n) if n < have else padded(self, d, n - have)
    return self


def _one(n: int | None, dim: int, ndim: int, have: int) -> int:
    size = have if n is None else n
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return size


def _line(dim: int, ndim: int) -> int:
    """A dimension from 0; IndexError in torch's words where there is none."""
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def _several(
    self: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None
) -> tuple[tuple[int, ...], list[int]]:
    """Dimensions and sizes as torch reads `s` and `dim`."""
    s = (s,) if isinstance(s, int) else s
    dim = (dim,) if isinstance(dim, int) else dim
    if dim is not None:
        if len(dim):
            _line(dim[0], self.ndim)
        try:
            dims = wrap_dims(dim, self.ndim) if len(dim) else ()
        except RuntimeError:
            raise RuntimeError("FFT dims must be unique") from None
    elif s is not None:
        if len(s) > self.ndim:
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {self.ndim} dimensions."
            )
        dims = tuple(range(self.ndim - len(s), self.ndim))
    else:
        dims = tuple(range(self.ndim))
    if s is None:
        return dims, [self.shape[d] for d in dims]
    if len(s) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    sizes = [self.shape[d] if n == -1 else n for d, n in zip(dims, s, strict=True)]
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dims, sizes


def _c2c(self: Tensor, dims: Sequence[int], norm: str | None, forward: bool) -> Tensor:
    return aten._fft_c2c(self, tuple(dims), _number(norm, forward), forward) if dims else self


def _along(name: str, forward: bool) -> Callable[..., Tensor]:
    def body(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        self = _ready(self, "any", name)
        d = _line(dim, self.ndim)
        self = _fitted(self, (d,), (_one(n, d, self.ndim, self.shape[d]),))
        if not self.is_complex() and forward:
            return aten._fft_r2c(self, (d,), _number(norm, True), False)
        if not self.is_complex():
            return aten.conj(aten._fft_r2c(self, (d,), _number(norm, False), False))
        return _c2c(self, (d,), norm, forward)

    return body


def _over(name: str, forward: bool) -> Callable[..., Tensor]:
    def body(
        self: Tensor,
        s: Sequence[int] | None = None,
        dim: int | Sequence[int] | None = None,
        norm: str | None = None,
    ) -> Tensor:
        self = _ready(self, "complex", name)
        dims, sizes = _several(self, s, dim)
        return _c2c(_fitted(self, dims, sizes), dims, norm, forward)

    return body


def rfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Half of the transform of a real signal."""
    self = _ready(self, "real", "rfft")
    d = _line(dim, self.ndim)
    self = _fitted(self, (d,), (_one(n, d, self.ndim, self.shape[d]),))
    return aten._fft_r2c(self, (d,), _number(norm, True), True)


def irfft(
    self: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    forward: bool = False,
) -> Tensor:
    """The real signal of half a transform; `n` is its size."""
    self = _ready(self, "complex", "irfft")
    d = _line(dim, self.ndim)
    size = 2 * (self.shape[d] - 1) if n is None else n
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    self = _fitted(self, (d,), (size // 2 + 1,))
    return aten._fft_c2r(self, (d,), _number(norm, forward), size)


def hfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform of a signal that is its own mirror, which is real."""
    return irfft(aten.conj_of(_ready(self, "complex", "hfft")), n, dim, norm, True)


def ihfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Half of the inverse transform of a real signal."""
    self = _ready(self, "real", "ihfft")
    d = _line(dim, self.ndim)
    self = _fitted(self, (d,), (_one(n, d, self.ndim, self.shape[d]),))
    return aten.conj_of(aten._fft_r2c(self, (d,), _number(norm, False), True))


def _last_of(dims: Sequence[int], name: str) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def rfftn(
    self: Tensor,
    s: Sequence[int] | None = None,
    dim: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:
    """Half of the transform of a real tensor: the last dimension's."""
    self = _ready(self, "real", "rfftn")
    dims, sizes = _several(self, s, dim)
    _last_of(dims, "rfftn")
    return aten._fft_r2c(_fitted(self, dims, sizes), dims, _number(norm, True), True)


def _half_sizes(
    self: Tensor, s: Sequence[int] | None, dims: Sequence[int], sizes: list[int]
) -> tuple[list[int], int]:
    """Sizes to fit the input to, and the size of the last dimension of the result."""
    target = s[-1] if s is not None and not isinstance(s, int) else s
    last = sizes[-1] if target not in (None, -1) else 2 * (self.shape[dims[-1]] - 1)
    if last < 1:
        raise RuntimeError(f"Invalid number of data points ({last}) specified")
    return [*sizes[:-1], last // 2 + 1], last


def irfftn(
    self: Tensor,
    s: Sequence[int] | None = None,
    dim: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:
    """The real tensor of half a transform."""
    self = _ready(self, "complex", "irfftn")
    dims, sizes = _several(self, s, dim)
    _last_of(dims, "irfftn")
    sizes, last = _half_sizes(self, s, dims, sizes)
    return aten._fft_c2r(_fitted(self, dims, sizes), dims, _number(norm, False), last)


def hfftn(
    self: Tensor,
    s: Sequence[int] | None = None,
    dim: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:
    """The real transform of a tensor whose last dimension is half of a mirror."""
    self = _ready(self, "complex", "hfftn")
    dims, sizes = _several(self, s, dim)
    _last_of(dims, "hfftn")
    sizes, last = _half_sizes(self, s, dims, sizes)
    self = _c2c(_fitted(self, dims, sizes), dims[:-1], norm, True)
    return hfft(self, last, dims[-1], norm)


def ihfftn(
    self: Tensor,
    s: Sequence[int] | None = None,
    dim: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:
    """Half of the inverse transform of a real tensor."""
    self = _ready(self, "real", "ihfftn")
    dims, sizes = _several(self, s, dim)
    _last_of(dims, "ihfftn")
    half = ihfft(_fitted(self, dims, sizes), None, dims[-1], norm)
    return _c2c(half, dims[:-1], norm, False)


_ALONG = "Tensor self, int? n=None, int dim=-1, str? norm=None"
_OVER = "Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None"
_PLANE = "Tensor self, int[1]? s=None, int[1]? dim=[-2, -1], str? norm=None"


def _row(
    name: str, params: str, body: Callable[..., Tensor], sample: Arg, size: int | tuple[int, int]
) -> None:
    composite(
        f"fft_{name}({params}) -> Tensor",
        body,
        samples=calls((sample,), (sample, size)),
        tolerance="composite",
        out="spectrum",
        autocast="float32 on cpu",
    )


def _plane(body: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda self, s=None, dim=(-2, -1), norm=None: body(self, s, dim, norm)


for _name, _body, _sample in (
    ("fft", _along("fft", True), _REAL), ("ifft", _along("ifft", False), _COMPLEX),
    ("rfft", rfft, _REAL), ("irfft", lambda self, n=None, dim=-1, norm=None:
                            irfft(self, n, dim, norm), _COMPLEX),
    ("hfft", hfft, _COMPLEX), ("ihfft", ihfft, _REAL),
):  # fmt: skip
    _row(_name, _ALONG, _body, _sample, 5)
for _name, _body, _sample in (
    ("fft", _over("fftn", True), _REAL), ("ifft", _over("ifftn", False), _COMPLEX),
    ("rfft", rfftn, _REAL), ("irfft", irfftn, _COMPLEX), ("hfft", hfftn, _COMPLEX),
    ("ihfft", ihfftn, _REAL),
):  # fmt: skip
    _row(_name + "n", _OVER, _body, _sample, (2, 5))
    _row(_name + "2", _PLANE, _plane(_body), _sample, (2, 5))


def _shifted(inverse: bool) -> Callable[..., Tensor]:
    def body(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
        if not self.ndim:
            raise RuntimeError("`shifts` required")
        dims = wrap_dims((dim,) if isinstance(dim, int) else dim, self.ndim)
        sizes = [self.shape[d] for d in dims]
        return aten.roll(self, tuple((n + inverse) // 2 for n in sizes), dims)

    return body


for _name, _inverse in (("fftshift", False), ("ifftshift", True)):
    composite(
        f"fft_{_name}(Tensor self, int[1]? dim=None) -> Tensor",
        _shifted(_inverse),
        samples=calls((_REAL,), (Arg((5,)), 0)),
        tolerance="exact",
    )


def _steps(
    name: str, n: int, d: float, dtype: Dtype | None, device: DeviceLike | None, low: int, high: int
) -> Tensor:
    dtype = dtype or dt.get_default_dtype()
    if dtype.category < dt.FLOAT:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    scale = 1.0 / (n * d) if n * d else inf
    return aten.arange(low, high, dtype=dtype, device=device) * scale


@composite(
    "fft_fftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    samples=calls((5,), (4, 0.5)),
)
def fftfreq(
    n: int, d: float = 1.0, dtype: Dtype | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The frequencies of a transform's elements, in cycles per unit of `d`."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    return fft_order(_steps("fftfreq", n, d, dtype, device, -(n // 2), (n + 1) // 2))


def fft_order(t: Tensor) -> Tensor:
    """From rising order to that of a transform: zero first."""
    return aten.roll(t, ((t.shape[0] + 1) // 2,), (0,)) if t.shape[0] else t


@composite(
    "fft_rfftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    samples=calls((5,), (4, 0.5)),
)
def rfftfreq(
    n: int, d: float = 1.0, dtype: Dtype | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The frequencies of half a transform's elements."""
    return _steps("rfftfreq", n, d, dtype, device, 0, n // 2 + 1)
