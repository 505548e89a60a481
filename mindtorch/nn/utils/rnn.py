"""Owns packing of sequences of different lengths, and the padding that stands beside it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import mindtorch

from ..._compat.class_names import class_name
from ..._tensor.tensor import Tensor
from ...ops.rules import broadcast_in_place

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
    "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class PackedSequence_(NamedTuple):  # noqa: N801, torch's name
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences cut by time step, longest first: data `[sum of
    lengths, *]`, batch_sizes `[T]` on the CPU."""

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:  # data is the pair of both, as old programs gave it
            if not isinstance(data, list | tuple) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence and "
                "pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves or casts the data; indices follow to the device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self

        def follow(index: Tensor | None) -> Tensor | None:
            return None if index is None else index.to(data.device)

        moved = follow(self.sorted_indices), follow(self.unsorted_indices)
        return type(self)(data, self.batch_sizes, *moved)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves to a CUDA device."""
        return self.to(*args, device="cuda", **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves to the CPU, and casts by the other arguments of `to`."""
        if isinstance(next(iter(args), None), str | mindtorch.device):
            args = args[1:]
        return self.to(*args, **(kwargs | {"device": "cpu"}))

    @property
    def is_cuda(self) -> bool:
        """Says whether the data is on a CUDA device."""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Says whether the data is in pinned memory."""
        return bool(self.data.is_pinned())

    def pin_memory(self) -> PackedSequence:
        """The same with its tensors in pinned memory."""

        def pinned(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.pin_memory()

        return type(self)(self.data.pin_memory(), *map(pinned, self[1:]))


def _casting(name: str) -> Any:
    dtype = getattr(mindtorch, name)

    def cast(self: PackedSequence) -> PackedSequence:
        return self.to(dtype)

    cast.__name__, cast.__qualname__ = name, f"PackedSequence.{name}"
    cast.__doc__ = f"Casts the data to {dtype}."
    return cast


for _name in ("double", "float", "half", "long", "int", "short", "char", "byte"):
    setattr(PackedSequence, _name, _casting({"char": "int8", "byte": "uint8"}.get(_name, _name)))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Gives the permutation that undoes this one."""
    if permutation is None:
        return None
    places = mindtorch.arange(permutation.numel(), device=permutation.device)
    return mindtorch.empty_like(permutation).scatter_(0, permutation, places)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs `[T, N, *]` (`[N, T, *]` with batch_first) by the true length of each sequence."""
    if isinstance(lengths, Tensor) and lengths.dim() != 1 and input.numel():
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D"
            f" {lengths.device} Long tensor"
        )
    sizes = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    if not isinstance(input, Tensor):
        raise TypeError(
            "_pack_padded_sequence(): argument 'input' (position 1) must be Tensor, not"
            f" {class_name(input)}"
        )
    batch = input.size(0 if batch_first else 1)
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if enforce_sorted and len(sizes) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)}"
            f" (batch_size={batch})"
        )
    order = None
    if not enforce_sorted:
        ranked = sorted(range(len(sizes)), key=lambda i: -sizes[i])
        sizes = [sizes[i] for i in ranked]
        order = mindtorch.tensor(ranked, device=input.device)
        input = input.index_select(0 if batch_first else 1, order)
    elif any(a < b for a, b in itertools.pairwise(sizes)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if sizes and sizes[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    steps = input.transpose(0, 1) if batch_first else input
    counts = [sum(size > t for size in sizes) for t in range(sizes[0])]
    data = mindtorch.cat([steps[t][:n] for t, n in enumerate(counts[: len(steps)])])
    if data._fn is not None:
        data._fn.label = "PackPaddedSequenceBackward0"
    return PackedSequence(data, mindtorch.tensor(counts, device="cpu"), order, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:
    """Gives (padded sequences, lengths int64 on the CPU): the inverse of pack_padded_sequence."""
    batch = [int(n) for n in sequence.batch_sizes.tolist()]
    longest = len(batch)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in "
                f"input, but got total_length={total_length} and max sequence length being "
                f"{longest}"
            )
        longest = total_length
    rows, tail = [], list(sequence.data.shape[1:])
    for part in sequence.data.split(batch):
        missing = batch[0] - part.size(0)
        if missing:
            fill = _filled(sequence.data, (missing, *tail), padding_value)
            part = mindtorch.cat([part, fill])
        rows.append(part)
    if longest > len(batch):
        rows += [_filled(sequence.data, (batch[0], *tail), padding_value)] * (longest - len(batch))
    padded = mindtorch.stack(rows)
    if padded._fn is not None:
        padded._fn.label = "CopySlices"  # torch fills a tensor step by step
    lengths = mindtorch.tensor([sum(n > i for n in batch) for i in range(batch[0])], device="cpu")
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths.index_select(0, sequence.unsorted_indices.cpu())
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def _filled(like: Tensor, shape: tuple[int, ...], value: float) -> Tensor:
    return mindtorch.full(shape, value, dtype=like.dtype, device=like.device)


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stacks tensors `[L_i, *]` to `[T, N, *]` (`[N, T, *]`), padded to the longest."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    settings: tuple[tuple[str, object, Any, str], ...] = (
        ("batch_first", batch_first, bool, "bool"),
        ("padding_value", padding_value, (int, float, Tensor), "float"),
        ("padding_side", padding_side, str, "str"),
    )
    for at, (name, value, kinds, kind) in enumerate(settings, 2):
        if not isinstance(value, kinds):
            raise TypeError(
                f"pad_sequence(): argument '{name}' (position {at}) must be {kind}, not"
                f" {class_name(value)}"
            )
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    items = list(sequences.unbind(0) if isinstance(sequences, Tensor) else sequences)
    if not items:
        raise RuntimeError("received an empty list of sequences")
    for at, item in enumerate(items):
        if not isinstance(item, Tensor):
            raise TypeError(
                f"expected Tensor as element {at} in argument 0, but got {class_name(item)}"
            )
    if items[0].ndim == 0:
        raise RuntimeError("ArrayRef: invalid slice, N = 1; size = 0")
    longest, first = max(item.size(0) for item in items), items[0]
    rows = []
    for item in items:
        if item.shape[1:] != first.shape[1:]:  # a row of the first's shape takes what expands to it
            place = (item.size(0), *first.shape[1:])
            broadcast_in_place(place, item.shape)
            item = item.expand(place)
        item = item.to(first.dtype)
        missing = longest - item.size(0)
        if missing:
            fill = _filled(item, (missing, *item.shape[1:]), padding_value)
            item = mindtorch.cat([item, fill] if padding_side == "right" else [fill, item])
        rows.append(item)
    return mindtorch.stack(rows, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Any]:
    """Cuts padded sequences back to their lengths."""
    rows: Any = padded_sequences
    if not isinstance(rows, mindtorch.Tensor):
        lacks = "shape" if batch_first else "transpose_"
        raise AttributeError(f"{type(rows).__name__!r} object has no attribute '{lacks}'")
    if not isinstance(lengths, mindtorch.Tensor):
        raise AttributeError(f"{type(lengths).__name__!r} object has no attribute 'device'")
    rows = rows if batch_first else rows.transpose(0, 1)
    return [rows[i][: int(n)] for i, n in enumerate(lengths.tolist())]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of tensors `[L_i, *]`."""
    lengths = [item.size(0) for item in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """Gives back the list of tensors."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
