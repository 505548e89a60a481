"""Rows of the short-time Fourier transform and its inverse."""

from __future__ import annotations

from ...._compat.warn_once import warn, warn_once
from ...._tensor.dtype import FLOAT
from ...rules import type_name
from ...words import *

_NO_WINDOW = (
    "A window was not provided. A rectangular window will be applied{}To suppress this warning and"
    " use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
)
_LEAKAGE = (
    ",which is known to cause spectral leakage. Other windows such as torch.hann_window or"
    " torch.hamming_window are recommended to reduce spectral leakage."
)
_LOSSLESS = ".Please provide the same window used by stft to make the inversion lossless."


def _window(window: Tensor | None, n_fft: int, win_length: int, like: Tensor) -> Tensor:
    """The window in the middle of `n_fft` elements; ones where there is none."""
    if window is None:
        window = aten.ones((win_length,), dtype=like.dtype, device=like.device)
    left = (n_fft - win_length) // 2
    if win_length == n_fft:
        return window
    return aten.constant_pad_nd(window, (left, n_fft - win_length - left), 0)


def _called(name: str, self: Tensor, rows: Tensor, **settings: object) -> str:
    """A call as torch's errors repeat it: `stft(torch.FloatTensor[16], n_fft=8, …)`."""
    arguments = []
    for key, value in settings.items():
        if isinstance(value, Tensor):
            value = f"torch.{value.dtype.legacy}Tensor{{{list(value.shape)}}}"
        arguments.append(f"{key}={int(value) if isinstance(value, bool) else value}")
    return f"{name}({type_name(self.dtype)}{list(rows.shape)}, {', '.join(arguments)})"


def _fault(n_fft: int, length: int, hop: int, win: int, window: Tensor | None) -> str:
    """What torch says of the windows of a signal of that length, "" where they fit."""
    if not 0 < n_fft <= length:
        return f"expected 0 < n_fft < {length}, but got n_fft={n_fft}"
    if hop <= 0:
        return f"expected hop_length > 0, but got hop_length={hop}"
    if not 0 < win <= n_fft:
        return f"expected 0 < win_length <= n_fft, but got win_length={win}"
    if window is not None and tuple(window.shape) != (win,):
        return (
            f"expected a 1D window tensor of size equal to win_length={win}, but got window with"
            f" size {list(window.shape)}"
        )
    return ""


def _fault_of_inverse(
    self: Tensor, n_fft: int, hop: int, win: int, window: Tensor | None, onesided: bool | None
) -> str:
    """What torch says of spectra and windows that do not fit each other, "" where they do."""
    if not self.numel():
        return "input tensor cannot be empty."
    if self.ndim not in (2, 3):  # torch counts one more, of real and imaginary part
        return f"expected a tensor with 3 or 4 dimensions, but got {self.ndim + 1}"
    rows = self.shape[-2]
    half = rows != n_fft if onesided is None else onesided
    if rows != (n_fft // 2 + 1 if half else n_fft):
        expected = "n_fft / 2 + 1 when onesided=True" if half else "n_fft when onesided=False"
        return (
            "expected the frequency dimension (3rd to the last) of the input tensor to match"
            f" {expected}, but got {rows}"
        )
    if not 0 < hop <= win:
        return "expected 0 < hop_length <= win_length"
    if not 0 < win <= n_fft:
        return "expected 0 < win_length <= n_fft"
    if window is not None and tuple(window.shape) != (win,):
        return "Invalid window shape. window has to be 1D and length of `win_length`"
    return ""


@composite(
    "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None,"
    " bool center=True, str pad_mode='reflect', bool normalized=False, bool? onesided=None,"
    " bool? return_complex=None, bool? align_to_window=None) -> Tensor",
    autocast="float32 on cpu",
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
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    signal = _padded(self, n_fft // 2, pad_mode) if center else self
    rows = aten.unsqueeze(signal, 0) if signal.ndim == 1 else signal
    if window is None:
        warn_once(_NO_WINDOW.format(_LEAKAGE))
    if return_complex is None and not (self.is_complex() or (window is not None
                                                             and window.is_complex())):  # fmt: skip
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further"
            " require that return_complex=True in a future PyTorch release."
        )
    if return_complex is False:
        warn_once(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will"
            " return complex tensors for all inputs, and return_complex=False will raise an"
            " error.\nNote: you can still call torch.view_as_real on the complex output to recover"
            " the old return format."
        )
    fault = "expected a 1D or 2D tensor" if signal.ndim not in (1, 2) else ""
    if self.dtype.category < FLOAT:
        fault = "expected a tensor of floating point or complex values"
    fault = fault or _fault(n_fft, rows.shape[1], hop, win, window)
    if fault:
        call = _called(
            "stft", self, signal, n_fft=n_fft, hop_length=hop,
            win_length=win, window=window, normalized=normalized, onesided=onesided,
            return_complex=return_complex, align_to_window=align_to_window,
        )  # fmt: skip
        raise RuntimeError(f"{call} : {fault}")
    if onesided and (self.is_complex() or (window is not None and window.is_complex())):
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frames = aten.unfold(rows, 1, n_fft, hop)
    if window is not None or win < n_fft:
        frames = frames * _window(window, n_fft, win, rows)
    half = not frames.is_complex() if onesided is None else onesided
    transform = aten.fft_rfft if half else aten.fft_fft
    built = transform(frames, None, -1, "ortho" if normalized else None)
    built = aten.transpose(built, 1, 2)
    built = built if self.ndim == 2 else aten.squeeze(built, 0)
    return built if return_complex is not False else aten.view_as_real(aten.contiguous(built))


def _padded(signal: Tensor, n: int, mode: str) -> Tensor:
    """A signal with `n` more at each end; its lines are the channels of one image."""
    from ..nn.pad import pad

    shape = (*[1] * (3 - signal.ndim), *signal.shape)
    padded = pad(aten.view(signal, shape), (n, n), mode)
    return aten.view(padded, padded.shape[-signal.ndim :])


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
    if window is None:
        warn_once(_NO_WINDOW.format(_LOSSLESS))
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    if not self.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with"
            " return_complex=True."
        )
    wrap_dim(-2, self.ndim)
    call = _called(
        "istft", self, self, n_fft=n_fft, hop_length=hop, win_length=win, window=window,
        center=center, normalized=normalized, onesided=onesided, length=length,
        return_complex=return_complex,
    )  # fmt: skip
    if fault := _fault_of_inverse(self, n_fft, hop, win, window, onesided):
        raise RuntimeError(f"{call} : {fault}")
    if window is not None and window.is_complex() and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if return_complex and (self.shape[-2] != n_fft if onesided is None else onesided):
        raise RuntimeError("Cannot have onesided output if window or input is complex")
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
        raise RuntimeError(f"{call} window overlap add min: 1\n[ CPUBoolType{{}} ]")
    signal = signal / envelope
    if end > whole:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded with"
            " zeros in the tail. Please check your center and hop_length settings.",
        )
        signal = aten.constant_pad_nd(signal, (0, end - whole), 0)
    return signal if self.ndim == 3 else aten.squeeze(signal, 0)


def _added(frames: Tensor, hop: int) -> Tensor:
    """Frames `[N, count, n]` laid `hop` apart and added: `[N, (count - 1) hop + n]`."""
    batch, count, n = frames.shape
    at = aten.unsqueeze(aten.arange(0, count, device=frames.device) * hop, 1)
    at = aten.reshape(at + aten.arange(0, n, device=frames.device), (-1,))
    zeros = aten.zeros((batch, (count - 1) * hop + n), dtype=frames.dtype, device=frames.device)
    return aten.index_add(zeros, 1, at, aten.reshape(frames, (batch, count * n)))
