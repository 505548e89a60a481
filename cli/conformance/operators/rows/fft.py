"""Fourier transforms."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import spec, t, take

_SIGNAL: Final[dict[str, Any]] = {
    "tolerance": "gradient", "specials": False, "dtypes": ("float32",),
    "source": "numpy's document of fft.rfft; torch's documents of stft and fft.rfft",
}  # fmt: skip
_NORMS: Final = ("backward", "forward", "ortho")


@spec("aclRfft1D", "out:self", **_SIGNAL, samples=[
    take(self=t(2, 7, 3), n=n, dim=d, norm=k) for n, d, k in ((7, 1, 1), (5, 1, 2), (4, 2, 3))],
      )  # fmt: skip
def real_transform(self: Array, n: int, dim: int, norm: int) -> Array:
    y = np.fft.rfft(self, n, dim, _NORMS[norm - 1])
    return np.stack([y.real, y.imag], -1)


@spec("aclStft", "out:self",
      uncovered="returnComplex",
      **_SIGNAL, samples=[
    take(self=t(*shape), windowOptional=w, nFft=n, hopLength=h, winLength=length, normalized=unit,
         onesided=o, returnComplex=False)
    for shape, w, n, h, length, unit, o in (
        ((2, 20), t(6, low=0.1), 8, 3, 6, False, True), ((25,), None, 8, 3, 6, True, True),
        ((2, 21), t(5, low=0.1), 6, 4, 5, True, False),
        ((230,), t(90, low=0.1), 100, 33, 90, False, True))])  # fmt: skip
def short_time(
    self: Array, windowOptional: Array | None, nFft: int, hopLength: int, winLength: int,
    normalized: bool, onesided: bool,
) -> Array:  # fmt: skip
    """Frames of nFft samples, hopLength apart, under a window in their middle."""
    window, left = np.zeros(nFft), (nFft - winLength) // 2
    window[left : left + winLength] = 1 if windowOptional is None else windowOptional
    count = (self.shape[-1] - nFft) // hopLength + 1
    frames = np.stack([self[..., k * hopLength : k * hopLength + nFft] for k in range(count)], -1)
    angle = np.outer(np.arange(nFft // 2 + 1 if onesided else nFft), np.arange(nFft)) / nFft
    y = np.exp(-2j * np.pi * angle) @ (frames * window[:, None])
    y = y / np.sqrt(nFft) if normalized else y
    return np.stack([y.real, y.imag], -1)
