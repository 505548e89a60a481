"""Owns torch.signal.windows: vectors of `M` weights, symmetric, or periodic with `sym=False`.

Formulas: Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform"
(1978); Nuttall, "Some windows with very good sidelobe behavior" (1981).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, signature
from math import pi
from typing import Any

from .._functional.creation import row_entry
from .._functional.queries import strided
from .._tensor import dtype as dt
from .._tensor.device import DeviceLike, device as Device, resolve
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

    @property
    def period(self) -> int:
        """In how many steps the window ends."""
        return self.count - 1 if self.sym else self.count

    @property
    def middle(self) -> float:
        """Where the window is symmetric; that of one element at its only one."""
        return (self.count - (self.sym or self.count <= 1)) / 2.0

    def points(self, start: float, end: float) -> Tensor:
        return aten.linspace(start, end, self.count, dtype=self.dtype, device=self.device)

    def ones(self) -> Tensor:
        """The window of no or one element."""
        return row_entry("ones")((self.count,), dtype=self.dtype, device=resolve(self.device))


def _window(formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The window of a formula over a grid; what the formula takes more are keywords."""
    name = formula.__name__

    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: Dtype | None = None,
        layout: Any = strided,
        device: Device | str | None = None,
        requires_grad: bool = False,
        **parameters: Any,
    ) -> Tensor:
        result = formula(_Grid(name, M, sym, dtype, layout, device), **parameters)
        return result.requires_grad_() if requires_grad else result

    common, extra = (list(signature(f).parameters.values()) for f in (window, formula))
    order = [common[0], *extra[1:], *(p for p in common[1:] if p.kind is not Parameter.VAR_KEYWORD)]
    window.__dict__["__signature__"] = signature(window).replace(parameters=order)
    window.__name__ = window.__qualname__ = name
    window.__doc__ = formula.__doc__
    return window


@_window
def general_cosine(grid: _Grid, *, a: Iterable[float]) -> Tensor:
    """Σ (-1)^k a_k cos(2π k n / (M - 1))."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    return _cosine_sum(grid, weights)


def _cosine_sum(grid: _Grid, weights: Sequence[float]) -> Tensor:
    if grid.count <= 1:
        return grid.ones()
    k = grid.points(0, (grid.count - 1) * 2 * pi / grid.period)
    total: Any = None
    for i, weight in enumerate(weights):
        part = aten.cos(k * i) * ((-1) ** i * weight)
        total = part if total is None else total + part
    return total


@_window
def general_hamming(grid: _Grid, *, alpha: float = 0.54) -> Tensor:
    """alpha - (1 - alpha) cos(2π n / (M - 1))."""
    return _cosine_sum(grid, [alpha, 1.0 - alpha])


def _cosines(name: str, a: list[float], what: str) -> Callable[..., Tensor]:
    def formula(grid: _Grid) -> Tensor:
        return _cosine_sum(grid, a)

    formula.__name__, formula.__doc__ = name, f"The {what}: a sum of cosines."
    return _window(formula)


hann = _cosines("hann", [0.5, 0.5], "Hann window")
hamming = _cosines("hamming", [0.54, 0.46], "Hamming window")
blackman = _cosines("blackman", [0.42, 0.5, 0.08], "Blackman window")
nuttall = _cosines(
    "nuttall", [0.3635819, 0.4891775, 0.1365995, 0.0106411], "Nuttall window of 98 dB"
)


@_window
def exponential(grid: _Grid, *, center: float | None = None, tau: float = 1.0) -> Tensor:
    """exp(-|n - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if grid.sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = grid.middle if center is None else center
    k = grid.points(-middle / tau, (-middle + (grid.count - 1)) / tau)
    return aten.exp(-aten.abs(k))


@_window
def cosine(grid: _Grid) -> Tensor:
    """sin(π (n + 1/2) / M)."""
    if not grid.count:
        return grid.ones()
    step = pi / (2 * grid.middle + 1)
    return aten.sin(grid.points(0.5 * step, (0.5 + grid.count - 1) * step))


@_window
def gaussian(grid: _Grid, *, std: float = 1.0) -> Tensor:
    """exp(-(n / (2 std))²), n from the middle."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    scale = 1 / (std * 2**0.5)
    k = grid.points(-grid.middle * scale, (-grid.middle + (grid.count - 1)) * scale)
    return aten.exp(-(k * k))


@_window
def kaiser(grid: _Grid, *, beta: float = 12.0) -> Tensor:
    """I₀(beta √(1 - (2n / (M - 1))²)) / I₀(beta)."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if grid.count <= 1:
        return grid.ones()
    b = aten.full((), beta, dtype=grid.dtype, device=grid.device)
    k = grid.points(-beta, -beta + (grid.count - 1) * (2.0 * beta / grid.period))
    k = aten.clamp(k, -beta, beta)
    return aten.i0(aten.sqrt(b * b - k * k)) / aten.i0(b)


@_window
def bartlett(grid: _Grid) -> Tensor:
    """1 - |2n / (M - 1) - 1|."""
    if grid.count <= 1:
        return grid.ones()
    return 1 - aten.abs(grid.points(-1, -1 + (grid.count - 1) * (2 / grid.period)))
