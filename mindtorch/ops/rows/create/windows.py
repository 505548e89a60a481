"""Rows of the window functions of signal processing, as torch has them at its top level.

Formulas: Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform"
(1978); Kaiser and Schafer, "On the use of the I₀-sinh window for spectrum analysis" (1980).
"""

from __future__ import annotations

from math import pi

from ...._tensor.device import CPU, device as Device
from ...rules import c_name
from ...words import *

Formula = Callable[[Tensor, float], Tensor]


def _window(
    name: str, formula: Formula, length: int, periodic: bool,
    dtype: Dtype | None, device: Device | None,
) -> Tensor:  # fmt: skip
    """`formula(n, N - 1)` for n = 0 … N-1; a periodic window is the longer one without its end."""
    kind = dtype or dt.get_default_dtype()
    if not (kind.is_floating_point or kind.is_complex):
        dtype_name = "unsigned char" if kind is dt.uint8 else c_name(kind)
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={dtype_name}, device="
            f"{device or CPU}, layout=Strided (default), requires_grad=false (default),"
            " pinned_memory=false, memory_format=(nullopt))"
        )
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    if length < 2:
        return aten.ones((length,), dtype=kind, device=device)
    points = aten.arange(0, length, dtype=kind, device=device)
    return formula(points, length - (not periodic))


def _cosines(*weights: float) -> Formula:
    """Σ weights[k] cos(2π k n / last)."""

    def formula(n: Tensor, last: float) -> Tensor:
        if len(weights) == 3:  # torch multiplies its points by π / last first, and adds backwards
            turns = n * (pi / last)
            far, near = (aten.cos(turns * (2 * k)) * weights[k] for k in (2, 1))
            return far + near + weights[0]
        terms = [aten.cos(n * (2 * pi * k / last)) * w for k, w in enumerate(weights) if k]
        return sum(terms, start=aten.full_like(n, weights[0]))

    return formula


def _triangle(n: Tensor, last: float) -> Tensor:
    return 1 - aten.abs(n * (2 / last) - 1)


def _bessel(beta: float) -> Formula:
    def formula(n: Tensor, last: float) -> Tensor:
        x = n * (2 / last) - 1
        top = aten.special_i0(beta * aten.sqrt(aten.clamp(1 - x * x, min=0.0)))
        return top / aten.special_i0(aten.full_like(n, beta))

    return formula


_TAIL = "*, ScalarType? dtype=None, Device? device=None) -> Tensor"


@composite(
    f"hann_window(int window_length, bool periodic=True, {_TAIL}",
    samples=calls((5,), (6, False), (1,), (0,)),
)
def hann_window(
    window_length: int, periodic: bool = True, dtype: Dtype | None = None,
    device: Device | None = None,
) -> Tensor:  # fmt: skip
    """½ - ½ cos(2πn / N): `[window_length]`."""
    return _window("hann_window", _cosines(0.5, -0.5), window_length, periodic, dtype, device)


@composite(
    f"hamming_window(int window_length, bool periodic=True, float alpha=0.54, float beta=0.46,"
    f" {_TAIL}",
    samples=calls((5,), (6, False), (4, True, 0.5, 0.4)),
)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46,
    dtype: Dtype | None = None, device: Device | None = None,
) -> Tensor:  # fmt: skip
    """alpha - beta cos(2πn / N): `[window_length]`."""
    formula = _cosines(alpha, -beta)
    return _window("hamming_window", formula, window_length, periodic, dtype, device)


@composite(
    f"blackman_window(int window_length, bool periodic=True, {_TAIL}",
    samples=calls((5,), (6, False)),
)
def blackman_window(
    window_length: int, periodic: bool = True, dtype: Dtype | None = None,
    device: Device | None = None,
) -> Tensor:  # fmt: skip
    """0.42 - ½ cos(2πn / N) + 0.08 cos(4πn / N): `[window_length]`."""
    formula = _cosines(0.42, -0.5, 0.08)
    return _window("blackman_window", formula, window_length, periodic, dtype, device)


@composite(
    f"bartlett_window(int window_length, bool periodic=True, {_TAIL}",
    samples=calls((5,), (6, False)),
)
def bartlett_window(
    window_length: int, periodic: bool = True, dtype: Dtype | None = None,
    device: Device | None = None,
) -> Tensor:  # fmt: skip
    """1 - |2n / N - 1|: `[window_length]`."""
    return _window("bartlett_window", _triangle, window_length, periodic, dtype, device)


@composite(
    f"kaiser_window(int window_length, bool periodic=True, float beta=12.0, {_TAIL}",
    samples=calls((5,), (6, False), (4, True, 3.0)),
)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0,
    dtype: Dtype | None = None, device: Device | None = None,
) -> Tensor:  # fmt: skip
    """I₀(beta √(1 - (2n / N - 1)²)) / I₀(beta): `[window_length]`."""
    return _window("kaiser_window", _bessel(beta), window_length, periodic, dtype, device)
