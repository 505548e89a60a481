"""Owns torch.signal.windows: vectors of `M` weights, symmetric, or periodic with `sym=False`.

Formulas: Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform"
(1978); Nuttall, "Some windows with very good sidelobe behavior" (1981).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import pi
from typing import Any

from .._functional.creation import row_entry
from .._functional.queries import strided
from .._tensor import dtype as dt
from .._tensor.device import DeviceLike, resolve
from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.loading import load
from .._tensor.tensor import Tensor
from ..ops.spec import aten

__path__: list[str] = []  # what is below is in absent_modules.py
__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip

load()


class _Grid:
    """What all windows share: their checks, and the points at which a formula is taken."""

    def __init__(
        self,
        name: str,
        M: int,
        sym: bool,
        dtype: Dtype | None,
        layout: Any,
        device: DeviceLike | None,
    ):
        if name in ("hamming", "hann", "nuttall"):
            name = "general_cosine"  # that torch makes them of
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not None and str(layout) != "torch.strided":
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        self.dtype = dtype or dt.get_default_dtype()
        if self.dtype not in (dt.float32, dt.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {self.dtype}")
        self.count, self.sym, self.device = M, sym, device

    def points(self, start: float, end: float) -> Tensor:
        return aten.linspace(start, end, self.count, dtype=self.dtype, device=self.device)

    def finish(self, window: Tensor, requires_grad: bool) -> Tensor:
        return window.requires_grad_() if requires_grad else window

    def short(self, requires_grad: bool) -> Tensor | None:
        """The window of no or one element."""
        if self.count > 1:
            return None
        ones = row_entry("ones")((self.count,), dtype=self.dtype, device=resolve(self.device))
        return self.finish(ones, requires_grad)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Σ (-1)^k a_k cos(2π k n / (M - 1))."""
    grid = _Grid("general_cosine", M, sym, dtype, layout, device)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    return _cosine_sum(grid, weights, requires_grad)


def _cosine_sum(grid: _Grid, weights: Sequence[float], requires_grad: bool) -> Tensor:
    short = grid.short(requires_grad)
    if short is not None:
        return short
    last = grid.count - 1
    k = grid.points(0, last * 2 * pi / (last if grid.sym else grid.count))
    total: Any = None
    for i, weight in enumerate(weights):
        part = aten.cos(k * i) * ((-1) ** i * weight)
        total = part if total is None else total + part
    return grid.finish(total, requires_grad)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """alpha - (1 - alpha) cos(2π n / (M - 1))."""
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
        requires_grad=requires_grad,
    )  # fmt: skip


def _cosines(name: str, a: list[float], what: str) -> Callable[..., Tensor]:
    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: Dtype | None = None,
        layout: Any = strided,
        device: Device | str | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return _cosine_sum(_Grid(name, M, sym, dtype, layout, device), a, requires_grad)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"The {what}: a sum of cosines."
    return window


hann = _cosines("hann", [0.5, 0.5], "Hann window")
hamming = _cosines("hamming", [0.54, 0.46], "Hamming window")
blackman = _cosines("blackman", [0.42, 0.5, 0.08], "Blackman window")
nuttall = _cosines(
    "nuttall", [0.3635819, 0.4891775, 0.1365995, 0.0106411], "Nuttall window of 98 dB"
)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-|n - center| / tau)."""
    grid = _Grid("exponential", M, sym, dtype, layout, device)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    short = grid.short(requires_grad)
    if M == 0 and short is not None:
        return short
    middle = (M if not sym and M > 1 else M - 1) / 2.0 if center is None else center
    k = grid.points(-middle / tau, (-middle + (M - 1)) / tau)
    return grid.finish(aten.exp(-aten.abs(k)), requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """sin(π (n + 1/2) / M)."""
    grid = _Grid("cosine", M, sym, dtype, layout, device)
    short = grid.short(requires_grad)
    if M == 0 and short is not None:
        return short
    step = pi / (M + 1 if not sym and M > 1 else M)
    return grid.finish(aten.sin(grid.points(0.5 * step, (0.5 + M - 1) * step)), requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-(n / (2 std))²), n from the middle."""
    grid = _Grid("gaussian", M, sym, dtype, layout, device)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    short = grid.short(requires_grad)
    if M == 0 and short is not None:
        return short
    start = -(M if not sym and M > 1 else M - 1) / 2.0
    scale = 1 / (std * 2**0.5)
    k = grid.points(start * scale, (start + (M - 1)) * scale)
    return grid.finish(aten.exp(-(k * k)), requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """I₀(beta √(1 - (2n / (M - 1))²)) / I₀(beta)."""
    grid = _Grid("kaiser", M, sym, dtype, layout, device)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    short = grid.short(requires_grad)
    if short is not None:
        return short
    b = aten.full((), beta, dtype=grid.dtype, device=device)
    start = -beta
    step = 2.0 * beta / (M if not sym else M - 1)
    k = grid.points(start, start + (M - 1) * step)
    k = aten.clamp(k, -beta, beta)
    return grid.finish(aten.i0(aten.sqrt(b * b - k * k)) / aten.i0(b), requires_grad)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """1 - |2n / (M - 1) - 1|."""
    grid = _Grid("bartlett", M, sym, dtype, layout, device)
    short = grid.short(requires_grad)
    if short is not None:
        return short
    step = 2 / (M if not sym else M - 1)
    return grid.finish(1 - aten.abs(grid.points(-1, -1 + (M - 1) * step)), requires_grad)
