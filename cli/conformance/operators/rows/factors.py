"""Factors of matrices, whose signs are free; transforms of signals; resizing; moves of indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import mindtorch.nn.functional as F

from ....judge.precision import Array
from ..formulas import words
from ..spec import given, spec, t, take

_GOLUB: Final[dict[str, Any]] = {
    "family": "linalg", "tolerance": "gradient", "specials": False,
    "dtypes": ("float32", "float64", "complex64", "complex128"),
    "source": "Golub, Van Loan: Matrix Computations, 5.2 and 2.4; torch's documents of linalg.qr "
    "and linalg.svd",
}  # fmt: skip


def _turned(basis: Array, got: Array, known: int) -> tuple[Array, Array]:
    """The basis [m, n] with its first `known` columns turned to where `got`'s point, and by what;
    the others, which span what those leave, as near to `got`'s as such a basis can be."""
    got = got.astype(basis.dtype)
    turn = (basis[:, :known].conj() * got[:, :known]).sum(0)
    turn = np.where(turn == 0, 1, turn / np.where(turn == 0, 1, np.abs(turn)))
    rest = basis[:, known:]
    u, _, vh = np.linalg.svd(rest.conj().T @ got[:, known:])
    return np.concatenate([basis[:, :known] * turn, rest @ (u @ vh)], 1), turn


def _known(sizes: Array) -> int:
    """How many of a matrix's pivots or singular values are not zero."""
    sizes = np.abs(sizes)
    return int((sizes > 1e-9 * sizes.max(initial=0)).sum())


def _stacked(values: Sequence[Array]) -> tuple[tuple[int, ...], list[Array]]:
    return values[-1].shape[:-2], [np.array(v) for v in values]


def same_triangle(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """A column of Q and the row of R that meets it change their sign together."""
    batch, (q, r) = _stacked(values)
    for at in np.ndindex(batch):
        known = _known(np.diagonal(r[at]))
        q[at], turn = _turned(q[at], got[0][at], known)
        r[at][:known] *= turn.conj()[:, None]
    return [q, r]


def same_vectors(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """A pair of singular vectors changes its sign together."""
    batch, (sigma, u, v) = _stacked(values)
    for at in np.ndindex(batch):
        known = _known(sigma[at])
        u[at], turn = _turned(u[at], got[1][at], known)
        v[at] = _turned(v[at], got[2][at], known)[0]
        # A pair turns as its first vector does.
        v[at][:, :known] = values[2][at][:, :known] * turn
    return [sigma, u, v]


_SHAPES: Final = ((4, 4), (2, 5, 3), (3, 5))


@spec("aclnnQr", "Q:self R:self", **_GOLUB, nearest=same_triangle, samples=[
    take(self=t(*s), some=f) for s in _SHAPES for f in (True, False)])  # fmt: skip
def qr(self: Array, some: bool) -> tuple[Array, Array]:
    q, r = np.linalg.qr(self, "reduced" if some else "complete")
    return q, r


@spec("aclnnLinalgQr", "Q:self R:self", **_GOLUB, nearest=same_triangle, samples=[
    take(self=t(*s), mode=m) for s in _SHAPES for m in (0, 1)])  # fmt: skip
def linalg_qr(self: Array, mode: int) -> tuple[Array, Array]:
    return qr(self, mode == 0)


@spec("aclnnSvd", "sigma:input u:input v:input", **{**_GOLUB, "dtypes": ("float32", "float64")},
      nearest=same_vectors, samples=[
          take(input=t(*s), fullMatrices=f, computeUV=True)
          for s in ((4, 4), (2, 5, 3), (3, 5)) for f in (False, True)])  # fmt: skip
def svd(input: Array, fullMatrices: bool) -> tuple[Array, Array, Array]:
    u, s, vh = np.linalg.svd(input, fullMatrices)
    return s, u, vh.swapaxes(-1, -2)


_SIGNAL: Final[dict[str, Any]] = {
    "family": "signal", "tolerance": "gradient", "specials": False, "dtypes": ("float32",),
    "source": "numpy's document of fft.rfft; torch's documents of stft and fft.rfft",
}  # fmt: skip
_NORMS: Final = ("backward", "forward", "ortho")


@spec("aclRfft1D", "out:self", **_SIGNAL, samples=[
    take(self=t(2, 7, 3), n=n, dim=d, norm=k) for n, d, k in ((7, 1, 1), (5, 1, 2), (4, 2, 3))],
      )  # fmt: skip
def real_transform(self: Array, n: int, dim: int, norm: int) -> Array:
    y = np.fft.rfft(self, n, dim, _NORMS[norm - 1])
    return np.stack([y.real, y.imag], -1)


@spec("aclStft", "out:self", **_SIGNAL, samples=[
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


@spec("aclnnResize", "out:self", family="resize", tolerance="gradient", sparse=True,
      dtypes=("float32", "float16"), source="torch 2.13, document of F.interpolate", samples=[
          take(self=t(1, 3, 4, 6), scales=given_, mode=m) for m in ("nearest", "bilinear")
          for given_ in ((1.0, 1.0, 2.0, 1.5), (1.0, 1.0, 0.5, 0.5))])  # fmt: skip
def resize(self: Array, scales: Sequence[float], mode: str) -> Any:
    size = tuple(int(n * s) for n, s in zip(self.shape[2:], scales[2:], strict=True))
    align = None if mode == "nearest" else False
    return words(lambda x: F.interpolate(x, size, mode=mode, align_corners=align))(x=self)


@spec("aclnnExpandIntoJaggedPermute", "outputPermuteOut:permute", family="index",
      tolerance="exact", source="FBGEMM's document of expand_into_jagged_permute", samples=[
          take(permute=given(p, "int32"), inputOffset=given(i, "int32"),
               outputOffset=given(o, "int32"), outputSize=o[-1])
          for p, i, o in (([1, 0, 2], [0, 2, 5, 6], [0, 3, 5, 6]),
                          ([2, 0, 1], [0, 4, 4, 7], [0, 3, 7, 7]))])  # fmt: skip
def jagged_permute(permute: Array, inputOffset: Array, outputOffset: Array) -> Array:
    """Segment k of the result counts on from where segment permute[k] of the input begins."""
    return np.concatenate([
        inputOffset[p] + np.arange(outputOffset[k + 1] - outputOffset[k])
        for k, p in enumerate(permute)])  # fmt: skip


@spec("aclnnConvertWeightToINT4Pack", "weightInt4Pack:int32", family="quantisation",
      tolerance="exact", source="op-plugin document npu_convert_weight_to_int4pack and its test",
      samples=[take(weight=t(*s, dtype="int32", low=-8, high=6)) for s in ((4, 16), (16, 64))],
      )  # fmt: skip
def eight_to_a_word(weight: Array) -> Array:
    """Eight neighbours share a word, the first in its low bits."""
    codes = (weight.astype(np.int64) & 15).reshape(*weight.shape[:-1], -1, 8)
    total = (codes << (4 * np.arange(8))).sum(-1)
    return total.astype(np.uint32).view(np.int32)


def _advance(requests: int, drafts: int) -> dict[str, Any]:
    each = 1 + drafts
    count = np.arange(requests * each)
    tokens = np.full((requests, each), -1)
    for r in range(requests):
        tokens[r, : r % each + 1] = 20 + 3 * r + np.arange(r % each + 1)
    return {
        "inputTokens": given(count, "int64"), "sampledTokenIds": given(tokens, "int64"),
        "inputPositions": given(count % 5 + 2, "int64"), "seqLens": given(count, "int64"),
        "slotMapping": given(count, "int64"), "numSeqs": requests, "numQueries": requests,
        "blockTables": given(np.arange(requests * 6).reshape(requests, 6) * 7 % 31, "int64"),
        "specToken": given(50 + np.arange(requests * drafts).reshape(requests, drafts), "int64"),
        "acceptedNum": given(np.arange(requests) % each, "int64"),
    }  # fmt: skip


@spec("aclnnAdvanceStepV2", "inputTokens:inputTokens inputPositions:inputPositions seqLens:seqLens "
      "slotMapping:slotMapping", family="cache", tolerance="exact",
      source="op-plugin document npu_advance_step_flashattn, speculative case, and the golden of "
      "its test", samples=[
          take(**_advance(r, d), blockSize=b) for r, d, b in ((3, 2, 4), (5, 1, 8))])  # fmt: skip
def advance_drafts(
    inputTokens: Array, sampledTokenIds: Array, inputPositions: Array, seqLens: Array,
    slotMapping: Array, blockTables: Array, specToken: Array, acceptedNum: Array, blockSize: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """A request goes on by what was accepted and one; its last valid token leads, drafts follow."""
    requests, drafts = specToken.shape
    valid = np.array([row[row >= 0][-1] for row in sampledTokenIds])
    tokens = np.column_stack([valid, specToken])
    at = inputPositions.reshape(requests, 1 + drafts) + acceptedNum[:, None] + 1
    block = np.take_along_axis(blockTables, at // blockSize, 1)
    slot = block * blockSize + at % blockSize
    return tokens.ravel(), at.ravel(), at.ravel() + 1, slot.ravel()
