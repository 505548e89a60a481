"""Rows of the short-time Fourier transform and its inverse."""

from __future__ import annotations

from ...._tensor.tensor import Tensor
from ...samples import Arg, Sample, calls
from ...spec import aten, composite


def _window(window: Tensor | None, n_fft: int, win_length: int, like: Tensor) -> Tensor:
    """The window in the middle of `n_fft` elements; ones where there is none."""
    if window is None:
        window = aten.ones((win_length,), dtype=like.dtype, device=like.device)
    left = (n_fft - win_length) // 2
    if win_length == n_fft:
        return window
    return aten.constant_pad_nd(window, (left, n_fft - win_length - left), 0)


def _checked(name: str, n_fft: int, hop: int, win: int, window: Tensor | None) -> None:
    if hop <= 0:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={win}")
    if window is not None and tuple(window.shape) != (win,):
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={win}, but got window"
            f" with size {list(window.shape)}"
        )


@composite(
    "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None,"
    " bool center=True, str pad_mode='reflect', bool normalized=False, bool? onesided=None,"
    " bool? return_complex=None, bool? align_to_window=None) -> Tensor",
    samples=calls(Sample((Arg((16,)), 4), {"return_complex": True, "window": Arg((4,))})),
    tolerance="composite",
)
def stft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The transforms of windows of a signal, `[…, frequency, frame]`."""
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    if return_complex is None and not (self.is_complex() or (window is not None
                                                             and window.is_complex())):  # fmt: skip
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further"
            " require that return_complex=True in a future PyTorch release."
        )
    if self.ndim not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {self.ndim}D tensor")
    rows = self if self.ndim == 2 else aten.unsqueeze(self, 0)
    if center:
        rows = _reflected(rows, n_fft // 2, pad_mode)
    length = rows.shape[1]
    if n_fft <= 0 or n_fft > length:
        raise RuntimeError(f"stft: expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    _checked("stft", n_fft, hop, win, window)
    frames = aten.unfold(rows, 1, n_fft, hop)
    if window is not None or win < n_fft:
        frames = frames * _window(window, n_fft, win, rows)
    half = not frames.is_complex() if onesided is None else onesided
    transform = aten.fft_rfft if half else aten.fft_fft
    built = transform(frames, None, -1, "ortho" if normalized else None)
    built = aten.transpose(built, 1, 2)
    built = built if self.ndim == 2 else aten.squeeze(built, 0)
    return built if return_complex is not False else aten.view_as_real(aten.contiguous(built))


def _reflected(rows: Tensor, n: int, mode: str) -> Tensor:
    if mode == "constant":
        return aten.constant_pad_nd(rows, (n, n), 0)
    from ..nn.pad import pad

    return pad(rows, (n, n), mode)


@composite(
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None,"
    " bool center=True, bool normalized=False, bool? onesided=None, int? length=None,"
    " bool return_complex=False) -> Tensor",
    samples=calls((Arg((3, 9), "complex64", grad=False), 4)),
    tolerance="composite",
)
def istft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of which `stft` gave the transforms: frames added, over the windows' squares."""
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    if not self.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with"
            " return_complex=True."
        )
    _checked("istft", n_fft, hop, win, window)
    if self.ndim not in (2, 3):  # torch counts one more, of real and imaginary part
        raise RuntimeError(
            f"istft: expected a tensor with 3 or 4 dimensions, but got {self.ndim + 1}"
        )
    spectra = aten.transpose(self if self.ndim == 3 else aten.unsqueeze(self, 0), 1, 2)
    half = spectra.shape[-1] != n_fft if onesided is None else onesided
    norm = "ortho" if normalized else None
    if return_complex:
        frames = aten.fft_ifft(spectra, None, -1, norm)
    else:
        if not half:
            spectra = aten.narrow(spectra, -1, 0, n_fft // 2 + 1)
        frames = aten.fft_irfft(spectra, n_fft, -1, norm)
    real = frames if not frames.is_complex() else aten.real(frames)
    shape = _window(window, n_fft, win, real)
    signal = _added(frames * shape, hop)
    envelope = _added(aten.expand(aten.unsqueeze(aten.unsqueeze(shape * shape, 0), 0),
                                  (1, frames.shape[1], n_fft)), hop)  # fmt: skip
    start = n_fft // 2 if center else 0
    whole = signal.shape[1]
    end = start + length if length is not None else whole - start if center else whole
    signal = aten.slice(signal, 1, start, min(end, whole))
    envelope = aten.slice(envelope, 1, start, min(end, whole))
    if envelope.device.type != "meta" and float(aten.amin(aten.abs(envelope)).item()) < 1e-11:
        raise RuntimeError("istft(CPUFloatType) window overlap add min: 1")
    signal = signal / envelope
    if end > whole:
        signal = aten.constant_pad_nd(signal, (0, end - whole), 0)
    return signal if self.ndim == 3 else aten.squeeze(signal, 0)


def _added(frames: Tensor, hop: int) -> Tensor:
    """Frames `[N, count, n]` laid `hop` apart and added: `[N, (count - 1) hop + n]`."""
    batch, count, n = frames.shape
    at = aten.unsqueeze(aten.arange(0, count, device=frames.device) * hop, 1)
    at = aten.reshape(at + aten.arange(0, n, device=frames.device), (-1,))
    zeros = aten.zeros((batch, (count - 1) * hop + n), dtype=frames.dtype, device=frames.device)
    return aten.index_add(zeros, 1, at, aten.reshape(frames, (batch, count * n)))
