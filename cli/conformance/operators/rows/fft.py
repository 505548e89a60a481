"""Fourier transforms."""

from __future__ import annotations

from ....spec import *
from ._along import WHOLE, along
from ._words import *

_SIGNAL: Final = Rule("gradient", "numpy's document of fft.rfft; torch's documents of stft and "
                      "fft.rfft", specials=False)  # fmt: skip
_NORMS: Final = ("backward", "forward", "ortho")


@spec("aclRfft1D", _SIGNAL, along("*B A *N", A=row(7, 1, 2, 8, 33, 130)),
      self=tensor(WHOLE, "f32"), n=number("A", 1, 2, 5, "A + 3", "2*A", "ceil(A, 2)"),
      dim=axis("A", WHOLE), norm=choice(1, 2, 3), out=out("self"))  # fmt: skip
def real_transform(self: Array, n: int, dim: int, norm: int) -> Array:
    y = np.fft.rfft(self, n, dim, _NORMS[norm - 1])
    return np.stack([y.real, y.imag], -1)


@spec("aclStft", _SIGNAL, sizes(L=row(20, 21, 33, 230)),
      require("0 < winLength <= nFft", "nFft <= L"),
      self=forms(batch=tensor("B L", "f32"), one=tensor("L", "f32")),
      windowOptional=optional(tensor("winLength", "self", 0.1, 2)),
      out=by("returnComplex", {False: out("f32"), True: out("c64")}),
      nFft=number(8, 6, 7, 16, 1, 100), hopLength=number(3, 1, 2, 8, 33),
      winLength=number(6, 1, 5, "nFft", "nFft - 1"), normalized=flag(), onesided=flag(True),
      returnComplex=flag())  # fmt: skip
def short_time(
    self: Array, windowOptional: Array | None, nFft: int, hopLength: int, winLength: int,
    normalized: bool, onesided: bool, returnComplex: bool,
) -> Array:  # fmt: skip
    """Frames of nFft samples, hopLength apart, under a window in their middle."""
    window, left = np.zeros(nFft), (nFft - winLength) // 2
    window[left : left + winLength] = 1 if windowOptional is None else windowOptional
    count = (self.shape[-1] - nFft) // hopLength + 1
    frames = np.stack([self[..., k * hopLength : k * hopLength + nFft] for k in range(count)], -1)
    angle = np.outer(np.arange(nFft // 2 + 1 if onesided else nFft), np.arange(nFft)) / nFft
    y = np.exp(-2j * np.pi * angle) @ (frames * window[:, None])
    y = y / np.sqrt(nFft) if normalized else y
    return y if returnComplex else np.stack([y.real, y.imag], -1)
