"""Rows of padding by constant, reflection, replication and wrapping."""

from __future__ import annotations

from collections.abc import Sequence

from ...._tensor.tensor import Tensor
from ...limits import reserve
from ...samples import Arg, Sample, calls
from ...spec import aten, composite


@composite(
    "pad(Tensor input, int[] pad, str mode='constant', float? value=None) -> Tensor",
    surface="nn",
    samples=calls(
        (Arg((2, 3)), (1, 2), "constant", 1.5),
        *((Arg((1, 2, 4)), (2, 1), mode) for mode in ("reflect", "replicate", "circular")),
        Sample((Arg((2, 3)), (1, 1, 1)), error=True),
    ),
    tolerance="accumulated",
)
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Pads by (left, right) pairs, last dimension first; modes
    constant, reflect, replicate, circular."""
    sizes = tuple(int(size) for size in pad)
    if len(sizes) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(sizes) // 2 > input.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(sizes)} and input of dimension {input.dim()}"
        )
    if mode == "constant":
        return aten.constant_pad_nd(input, sizes, 0.0 if value is None else _as_float(value))
    if mode not in _INDEX:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if (len(sizes), input.dim()) not in _SHAPES:
        raise NotImplementedError(
            f"Padding size {len(sizes)} is not supported for {input.dim()}D input tensor."
        )
    for i in range(len(sizes) // 2):
        input = _extended(input, input.dim() - 1 - i, sizes[2 * i], sizes[2 * i + 1], mode)
    return input


def _as_float(value: float) -> float:
    """The value as torch's parser hands it on; TypeError in its words for what is none."""
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, complex) or not isinstance(value, int | float):
        kind = type(value).__name__
        raise TypeError(f"pad(): argument 'value' (position 4) must be float, not {kind}")
    return float(value)


_SHAPES = {(2, 2), (2, 3), (4, 3), (4, 4), (6, 4), (6, 5)}


def _extended(input: Tensor, dim: int, left: int, right: int, mode: str) -> Tensor:
    size = input.size(dim)
    if mode == "reflect" and not (left < size and right < size):
        raise RuntimeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, "
            f"but got: padding ({left}, {right}) at dimension {dim} of input {list(input.shape)}"
        )
    if mode == "circular" and not (left <= size and right <= size):
        raise RuntimeError("Padding value causes wrapping around more than once.")
    if left == 0 and right == 0:
        return input
    if mode == "circular" and min(left, right) < 0:
        input = input.narrow(dim, max(-left, 0), size + min(left, 0) + min(right, 0))
        return _extended(input, dim, max(left, 0), max(right, 0), mode)
    reserve((*input.shape[:dim], size + left + right, *input.shape[dim + 1 :]), input)
    places = [_INDEX[mode](i, size) for i in range(-left, size + right)]
    return input.index_select(dim, aten.tensor(places, device=input.device))


def _reflect(i: int, size: int) -> int:
    i = abs(i)
    return i if i < size else 2 * (size - 1) - i


def _replicate(i: int, size: int) -> int:
    return min(max(i, 0), size - 1)


def _circular(i: int, size: int) -> int:
    return i % size


_INDEX = {"reflect": _reflect, "replicate": _replicate, "circular": _circular}
