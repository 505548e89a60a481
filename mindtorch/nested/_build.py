"""Makers of nested tensors (torch.nested.*): from lists, packed values, ranges and masks."""

from __future__ import annotations

from collections.abc import Sequence

import mindtorch

from .._functional.queries import jagged, strided
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ._strided import join
from ._tensor import BOUNDS, SYMBOLS, NestedTensor, make, offsets_of


def _is_jagged(layout: object) -> bool:
    """Whether that layout is asked for; RuntimeError for what is none of the two."""
    if layout not in (None, strided, jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout is jagged


def _packed(samples: Sequence[Tensor]) -> NestedTensor:
    """Samples [*outer, n, *rest] as one nested tensor; they differ in `n` alone."""
    if not samples:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    if len({s.dim() for s in samples}) > 1:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the same dim"
        )
    if samples[0].dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    sizes = zip(*(s.shape for s in samples), strict=True)
    ragged = [dim for dim, column in enumerate(sizes) if len(set(column)) > 1]
    if len(ragged) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note"
            " that the jagged layout only allows for a single ragged dimension. For example:"
            " (B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    dim = ragged[0] if ragged else 0
    offsets = offsets_of([int(s.shape[dim]) for s in samples], samples[0].device)
    return make(mindtorch.cat(list(samples), dim), offsets, ragged_idx=dim + 1)


def nested_tensor(
    tensor_list: Sequence[object], *, dtype: Dtype | None = None, layout: object = None,
    device: object = None, requires_grad: bool = False, pin_memory: bool = False,
) -> NestedTensor:  # fmt: skip
    """A leaf of samples [n_i, *rest], copied (torch.nested.nested_tensor)."""
    if not (isinstance(tensor_list, list) or _is_jagged(layout)):
        raise TypeError(
            "Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor"
        )
    samples = [_detached(s, dtype, device) for s in tensor_list]
    if len({s.dtype for s in samples}) > 1:
        samples = [s.to(samples[0].dtype) for s in samples]
    packed = _packed(samples) if _is_jagged(layout) else join(samples)
    return packed.requires_grad_() if requires_grad else packed


def _detached(sample: object, dtype: Dtype | None, device: object) -> Tensor:
    if isinstance(sample, Tensor):
        return sample.detach().to(device=device or sample.device, dtype=dtype or sample.dtype)
    return mindtorch.tensor(sample, dtype=dtype, device=device)


def as_nested_tensor(
    ts: object, dtype: Dtype | None = None, device: object = None, layout: object = None
) -> NestedTensor:
    """Samples, or a batch [B, n, *rest], as a nested tensor that gradients go through."""
    if isinstance(ts, NestedTensor):
        return ts
    if not isinstance(ts, Tensor) and not (
        isinstance(ts, list | tuple) and all(isinstance(t, Tensor) for t in ts)
    ):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of"
            " tensors "
        )
    if not _is_jagged(layout):
        return join([t.to(device=device or t.device, dtype=dtype or t.dtype) for t in ts])
    if isinstance(ts, Tensor):
        batch = ts.to(device=device or ts.device, dtype=dtype or ts.dtype)
        lengths = [int(batch.shape[1])] * int(batch.shape[0])
        return make(batch.flatten(0, 1), offsets_of(lengths, batch.device))
    return _packed([t.to(device=device or t.device, dtype=dtype or t.dtype) for t in ts])


def nested_tensor_from_jagged(
    values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None,
    jagged_dim: int | None = None, min_seqlen: int | None = None, max_seqlen: int | None = None,
) -> NestedTensor:  # fmt: skip
    """A view of packed values [*outer, total, *inner]; offsets [B + 1], or lengths [B], or both."""
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
            )
        offsets, lengths = offsets_of(lengths.tolist(), lengths.device), None
    if max_seqlen is not None or offsets not in SYMBOLS:
        BOUNDS[offsets] = max_seqlen
    return make(values, offsets, lengths, jagged_dim or 1)


def _each(value: Tensor | int, batch: Tensor) -> Sequence[int]:
    return value.tolist() if isinstance(value, Tensor) else [value] * len(batch)


def narrow(
    tensor: Tensor,
    dim: int,
    start: Tensor | int,
    length: Tensor | int,
    layout: object = mindtorch.strided,
) -> NestedTensor:
    """Row i of a batch [B, n, *rest] from start[i], length[i] long: a view of the batch."""
    if not _is_jagged(layout):
        places = zip(_each(start, tensor), _each(length, tensor), strict=True)
        spans = [(int(at), int(size)) for at, size in places]
        rows = zip(tensor, spans, strict=True)
        return join([row.narrow(dim - 1, *span) for row, span in rows])
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    if not tensor.is_contiguous():
        raise RuntimeError("jagged layout requires a contiguous tensor")
    batch, size = int(tensor.shape[0]), int(tensor.shape[1])
    starts = start.tolist() if isinstance(start, Tensor) else [start] * batch
    lengths = length.tolist() if isinstance(length, Tensor) else [length] * batch
    begins = [row * size + at for row, at in enumerate(starts)]
    ends = [*begins, (batch - 1) * size + starts[-1] + lengths[-1]]
    offsets = mindtorch.tensor(ends, dtype=mindtorch.int64, device=tensor.device)
    sizes = mindtorch.tensor(lengths, dtype=mindtorch.int64, device=tensor.device)
    return make(tensor.flatten(0, 1), offsets, sizes)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """What a mask [B, n] chooses of each row of a batch [B, n]."""
    if tensor.layout is not mindtorch.strided:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}"
        )
    whole_mask = mask.expand(tensor.shape) if mask.shape != tensor.shape else mask
    lengths = whole_mask.flatten(1).sum(-1).tolist()
    offsets = offsets_of(lengths, tensor.device)
    BOUNDS[offsets] = None
    return make(mindtorch.masked_select(tensor, whole_mask), offsets)


def to_padded_tensor(
    input: NestedTensor, padding: float, output_size: Sequence[int] | None = None
) -> Tensor:
    """The batch [B, *outer, longest, *inner], filled up with `padding`."""
    padded: Tensor = input.to_padded_tensor(padding, output_size)
    return padded
