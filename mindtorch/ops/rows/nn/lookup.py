"""Rows of embeddings as layers call them, their bags, and one-hot codes."""

from __future__ import annotations

import math

from ...._compat.warn_once import warn
from ...._tensor.host_values import host_values
from ...._tensor.recording import unrepeatable
from ...complex_parts import below_double
from ...rules import preserved, type_name
from ...words import *


@composite(
    "embedding.nn(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, "
    "float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    samples=calls(
        (Arg((2, 3), "int64", 0, 4), Arg((5, 4))),
        (Arg((3,), "int64", values=(0, 2, 4)), Arg((5, 4)), 1),
        Sample((Arg((4,), "int64", 0, 4), Arg((5, 4)), 7), error=True),
    ),
    tolerance="exact",
)
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of weight `[n, d]` at the indices; `max_norm` renormalizes those rows in place first."""
    if weight.ndim != 2 and max_norm is None:
        raise RuntimeError("'weight' must be 2-D")
    padding_idx = _padding_index(padding_idx, weight.size(0))
    if max_norm is not None:
        weight.detach().embedding_renorm_(input, max_norm, norm_type)
    return aten.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _padding_index(index: int | None, count: int) -> int:
    if index is None:
        return -1
    if not -count <= index < count:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return index + count if index < 0 else index


def _renorm_rule(self: Geometry, indices: Geometry, max_norm: float, norm_type: float) -> Geometry:
    if indices.dtype not in (dt.int32, dt.int64):
        raise RuntimeError(
            "Expected tensor for argument #2 'indices' to have one of the following scalar types:"
            f" Long, Int; but got {indices.dtype.legacy} instead (while checking arguments for"
            " embedding_renorm_)"
        )
    if self.ndim != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {self.ndim}-dimensional tensor for argument #1"
            " 'self' (while checking arguments for embedding_renorm_)"
        )
    return preserved(self)


def _renormed(self: Array, indices: Array, max_norm: float, norm_type: float) -> Array:
    table, rows = self.copy(), np.unique(indices)
    for row in rows[(rows < -len(self)) | (rows >= len(self))]:
        raise IndexError(f"select(): index {row} out of range for tensor of size"
                         f" {list(self.shape)} at dimension 0")  # fmt: skip
    norms = np.linalg.norm(self[rows], norm_type, axis=1, keepdims=True)
    # torch divides by norm + 1e-7, so that a row at the bound stays below it.
    table[rows] *= np.where(norms > max_norm, max_norm / (norms + 1e-7), 1).astype(self.dtype)
    return table


def _bounded(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    rows = aten.reshape(indices, (-1,))
    picked = aten.index_select(self, 0, rows)
    norms = aten.linalg_vector_norm(picked, norm_type, (1,), True)
    factors = aten.where(norms > max_norm, max_norm / (norms + 1e-7), aten.ones_like(norms))
    return aten.index_copy(self, 0, rows, picked * factors)


op(
    "embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
    infer=_renorm_rule,
    cpu=_renormed,
    aclnn=call(
        "aclnnEmbeddingRenorm", "self", "indices", "max_norm", "norm_type", inplace=True,
        when=below_double(),
    ),
    lower=_bounded,
    samples=calls(
        (Arg((5, 4)), Arg((2, 3), "int64", 0, 4), 1.0, 2.0),
        (Arg((5, 4), "float64"), Arg((3,), "int64", values=(0, 2, 2)), 0.5, 1.0),
        (Arg((5, 4)), Arg((3,), "int64", values=(4, 0, 2)), 0.25, math.inf),
        Sample((Arg((5,)), Arg((3,), "int64", 0, 4), 1.0, 2.0), error=True),
    ),
    oracle=lambda torch: lambda self, *args: torch.embedding_renorm_(self.clone(), *args),
    tolerance="composite",
    surface="none",
    inplace=True,
)  # fmt: skip


@composite(
    "one_hot(Tensor tensor, int num_classes=-1) -> Tensor",
    samples=calls((Arg((2, 3), "int64", 0, 4), 5), Sample((Arg((2,)), 3), error=True)),
    tolerance="exact",
)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 indices → int64 `[*, num_classes]`; -1 takes the largest index + 1."""
    if tensor.dtype != dt.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return aten.zeros((*tensor.shape, num_classes), dtype=tensor.dtype, device=tensor.device)
    if tensor.device.type != "meta" or num_classes == -1:
        num_classes = _class_count(tensor, num_classes)
    zeros = aten.zeros((*tensor.shape, num_classes), dtype=dt.int64, device=tensor.device)
    return zeros.scatter(-1, tensor.unsqueeze(-1), 1)


def _class_count(tensor: Tensor, num_classes: int) -> int:
    least, most = aten.aminmax(tensor)
    if int(least.item()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    largest = int(most.item())
    if num_classes == -1:
        return largest + 1
    if num_classes <= largest:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return num_classes


@composite(
    "embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, "
    "float norm_type=2, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, "
    "Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) "
    "-> Tensor",
    samples=calls(
        (Arg((2, 3), "int64", 0, 4), Arg((5, 4))),
        Sample(
            (Arg((6,), "int64", 0, 4), Arg((5, 4)), Arg((2,), "int64", values=(0, 4))),
            {"mode": "sum"},
        ),
    ),
    tolerance="chained",
    rule="cancelling",
)
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of bags of rows; bags are the rows of
    a 2-D input or start at `offsets`."""
    if weight.dtype is dt.int64 and input.is_floating_point():
        unrepeatable()
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag("
            "weight, input, ...)` is deprecated, and should now be `embedding_bag(input, weight,"
            " ...)`.",
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then"
            f" it must have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    padding, count = -1, weight.size(0)
    if padding_idx is not None:
        if not -count <= padding_idx < count:
            raise RuntimeError(
                "padding_idx must be within the number of embeddings, "
                f"{-count} through {count - 1}, but got {padding_idx}"
            )
        padding = padding_idx % count
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if input.dim() == 2 and offsets is None and per_sample_weights is not None:
        per_sample_weights = per_sample_weights.reshape(-1)
    if input.dim() == 1 and offsets is not None and offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    rows_of, on_cpu = weight.size(0), input.device.type == "cpu"
    # Rows of a matrix are bags of one size, which a device sums in one launch.
    even = not on_cpu and input.dim() == 2 and offsets is None and padding_idx is None
    if even and input.numel():
        flat, bags, count = input.reshape(-1), None, input.size(0)
    else:
        flat, bags, count = _bags(input, offsets, include_last_offset)
    _refuse_dtypes(flat, weight)
    by_library = mode != "max" and padding_idx is None and weight.dtype in _OF_THE_LIBRARY
    if not on_cpu:
        _refuse_outside(flat, rows_of, by_library)
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument"
            f" #1 'per_sample_weights'; but type {type_name(weight.dtype)} does not equal"
            f" {type_name(per_sample_weights.dtype)} (while checking arguments for embedding_bag)"
        )
    try:
        rows = embedding(flat, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
    except IndexError:
        if on_cpu:
            _refuse_outside(flat, rows_of, by_library)
        raise
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    if bags is None:
        parts = rows.reshape(count, -1, rows.size(1))
        return parts.max(1)[0] if mode == "max" else getattr(parts, mode)(1)
    if padding_idx is not None and flat.device.type != "meta":  # where no row is told apart
        keep = (flat != padding).nonzero().reshape(-1)
        rows, bags = rows.index_select(0, keep), bags.index_select(0, keep)
    return _pooled(rows, bags, count, mode)


def _refuse_dtypes(flat: Tensor, weight: Tensor) -> None:
    """RuntimeError in torch's words for dtypes that no row is for."""
    if flat.dtype not in (dt.int32, dt.int64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types:"
            f" Long, Int; but got {type_name(flat.dtype)} instead (while checking arguments"
            " for embedding_bag)"
        )
    if weight.dtype not in (dt.float16, dt.bfloat16, dt.float32, dt.float64):
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types:"
            f" Half, BFloat16, Float, Double; but got {type_name(weight.dtype)} instead (while"
            " checking arguments for embedding_bag)"
        )


# Dtypes whose sums and means torch leaves to a library, which words a wrong index otherwise.
_OF_THE_LIBRARY = (dt.float32, dt.float16, dt.bfloat16)


def _refuse_outside(flat: Tensor, count: int, by_library: bool) -> None:
    """RuntimeError in torch's words for the first index of no row, where the host knows it."""
    unrepeatable()
    known = host_values(flat)
    if known is None or not known.numel():
        return
    values = known._array
    if values.min() >= 0 and values.max() < count:
        return
    at, value = next((i, v) for i, v in enumerate(values.tolist()) if not 0 <= v < count)
    if not by_library:
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {value}"
        )
    raise RuntimeError(
        f"Index {at} of input takes value {value} which is not in the valid range [0, {count})"
    )


def _bags(input: Tensor, offsets: Tensor | None, last: bool) -> tuple[Any, Any, int]:
    """Gives (flat indices, bag of each from 1 on, number of bags)."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        count, size = input.shape
        bags = aten.arange(1, count + 1, device=input.device).repeat_interleave(size)
        return input.reshape(-1), bags, count
    if input.dim() != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dtype not in (dt.int32, dt.int64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types:"
            f" Long, Int; but got {type_name(offsets.dtype)} instead (while checking arguments for"
            " embedding_bag)"
        )
    count = input.numel()
    if offsets.device.type != "cpu":
        unrepeatable()
        if (known := host_values(offsets)) is not None:
            _refuse_offsets(known._array, count)
    return input, aten._bags_of(offsets, count, last), max(offsets.numel() - last, 0)


def _refuse_offsets(values: Array, count: int) -> None:
    """RuntimeError in torch's words for bags outside of the input."""
    if not values.size:
        return
    first, least, end = int(values[0]), values.min(), int(values[-1])
    if first != 0:
        kind = "Int" if values.itemsize == 4 else "Long"
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from"
            f" position 0. However, got {first}\n[ torch.{kind}Tensor{{}} ]"
        )
    if end > count:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of"
            f" {end}"
        )
    if least < 0:
        raise IndexError("index out of range in self")


def _bags_of(offsets: Tensor, count: int, last: bool) -> Tensor:
    starts = aten.narrow(offsets, 0, 0, max(offsets.numel() - 1, 0)) if last else offsets
    places = aten.arange(0, count, device=offsets.device)
    return (places.unsqueeze(1) >= starts.unsqueeze(0)).sum(1)


def _bags_of_cpu(offsets: Array, count: int, last: bool) -> Array:
    _refuse_offsets(offsets, count)
    starts = np.sort(offsets[:-1] if last else offsets)
    return starts.searchsorted(np.arange(count), "right")


# Bag 0 is of what stands before the first start, which cpu refuses: it is left out.
op(
    "_bags_of(Tensor offsets, int count, bool last) -> Tensor",
    infer=lambda offsets, count, last: offsets.fresh((count,), dt.int64),
    cpu=_bags_of_cpu,
    lower=_bags_of,
    grad={},
    samples=calls((Arg((3,), "int64", values=(0, 2, 2)), 5, False)),
    oracle=lambda torch: (
        lambda offsets, count, last: torch.bucketize(torch.arange(count), offsets, right=True)
    ),
    tolerance="exact",
    fixed_shape=True,
)


def _pooled(rows: Tensor, bags: Tensor, count: int, mode: str) -> Tensor:
    zeros = aten.zeros((count + 1, rows.size(1)), dtype=rows.dtype, device=rows.device)
    if mode == "max" and not rows.size(0):
        return zeros[1:] + rows.sum(0)
    if mode == "max":
        numbers = aten.arange(0, count + 1, device=bags.device).unsqueeze(1)
        parts = rows.split((bags.unsqueeze(0) == numbers).sum(1).tolist())[1:]
        return aten.stack(
            [part.max(0)[0] if part.size(0) else zeros[i] for i, part in enumerate(parts)]
        )
    # Sums of many halves, and counts beyond 2,048, need more than halves.
    wide = rows.float() if rows.dtype.itemsize == 2 else rows
    total = zeros.to(wide.dtype).index_add(0, bags, wide)[1:]
    if mode == "mean":
        ones = aten.ones_like(bags).to(wide.dtype)
        sizes = aten.zeros((count + 1,), dtype=wide.dtype, device=wide.device)
        total = total / sizes.index_add(0, bags, ones)[1:].clamp(min=1).unsqueeze(1)
        return total.to(rows.dtype)
    return total.to(rows.dtype, copy=True)  # and no view
