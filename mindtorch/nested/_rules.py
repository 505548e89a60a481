"""What rows do to nested tensors: which act on packed values as they are, and which need care.

Dims of a nested tensor [B, *outer, j, *inner] are those of its values plus one; work along the
ragged dim goes through the padded batch, work along others stays on the packed values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch

from .._tensor.tensor import Tensor
from ..ops.namespaces import namespace
from ..ops.spec import Op
from ._tensor import (
    HANDLERS,
    NestedTensor,
    make,
    offsets_of,
    places,
    samples_of,
    with_values,
)

# Rows outside of `pointwise` that act on each element: activations, copies, fills.
_EACH_ELEMENT = frozenset((
    "_to_copy", "alpha_dropout", "bernoulli", "celu", "clone", "contiguous", "dropout", "elu",
    "fill", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
    "logsigmoid", "mish", "relu", "relu6", "rrelu", "selu", "silu", "softplus", "softshrink",
    "tanhshrink", "threshold", "zero",
))  # fmt: skip
_REDUCTIONS = {"sum": 0, "mean": 0, "prod": 1, "any": False, "all": True,
               "amax": "lowest", "max": "lowest", "argmax": "lowest",
               "amin": "highest", "min": "highest", "argmin": "highest"}  # fmt: skip
_LIKE = ("empty_like", "full_like", "ones_like", "rand_like", "randn_like", "randint_like",
         "zeros_like")  # fmt: skip

Handler = Callable[..., Any]


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Put a function in the table under these names."""

    def enter(function: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, function))
        return function

    return enter


def call(op: Op, form: str, raw: Sequence[object]) -> object:
    """A row's call with a nested tensor among its arguments; NotImplementedError without a rule."""
    name = op.base_name
    if name in _REDUCTIONS and op.name != "max.other" and op.name != "min.other":
        return _reduced(op, dict(zip((a.name for a in op.schema.args), raw, strict=True)))
    if name in HANDLERS:
        return HANDLERS[name](*raw)
    if name == "contiguous" and isinstance(raw[0], NestedTensor):
        if raw[0].is_contiguous():
            return raw[0]
        if raw[0]._lengths is not None:
            return _packed(raw[0])
    if op.family == "pointwise" or name in _EACH_ELEMENT:
        return _each_element(op, form, raw)
    raise NotImplementedError(f"aten.{op.name if '.' in op.name else name + '.default'}")


def _nested(values: Sequence[Any]) -> list[NestedTensor]:
    return [v for v in values if isinstance(v, NestedTensor)]


def _packed(self: NestedTensor) -> NestedTensor:
    """The samples one behind the other, without what lies between them."""
    samples = self.unbind()
    offsets = offsets_of([int(s.shape[0]) for s in samples], self.device)
    return make(mindtorch.cat(samples), offsets)


def _mismatch(name: str, shapes: Sequence[Any], kind: str = "") -> RuntimeError:
    pair = " and ".join(f"{kind}({list(s)})" if kind else str(tuple(s)) for s in shapes)
    names = getattr(namespace("aten"), name).overloads()
    overload = next((n for n in ("Tensor_Tensor", "Tensor") if n in names), "default")
    return RuntimeError(
        f"cannot call binary pointwise function {name}.{overload} with inputs of shapes {pair}"
    )


def _each_element(op: Op, form: str, raw: Sequence[object]) -> object:
    """The row on the packed values, others' dense operands brought to their places."""
    first = _nested(raw)[0]
    full = next((n for n in _nested(raw) if n.dim() == max(m.dim() for m in _nested(raw))), first)
    inner = [_operand(op, full, value) for value in raw]
    if form in ("inplace", "augmented"):
        if not isinstance(raw[0], NestedTensor):
            raise _mismatch(op.name + "_", [t.shape for t in raw if isinstance(t, Tensor)])
        names = (a.name for a in op.schema.args[1:])
        op.entry("inplace")(inner[0], **dict(zip(names, inner[1:], strict=True)))
        return raw[0]
    return _outer(full, op.entry("aten")(*inner))


def _outer(like: NestedTensor, result: Any, ragged_idx: int | None = None) -> Any:
    """Results for packed values as nested tensors, one or several."""
    if isinstance(result, Tensor):
        return with_values(like, result, ragged_idx)
    if not isinstance(result, tuple | list):
        return result
    parts = [_outer(like, r, ragged_idx) for r in result]
    return type(result)(parts)


def _operand(op: Op, like: NestedTensor, value: object) -> object:
    if isinstance(value, NestedTensor):
        if value._symbol != like._symbol or value._ragged_idx != like._ragged_idx:
            raise _mismatch(op.name, [like.shape, value.shape])
        return value._values
    if not isinstance(value, Tensor) or value.dim() == 0:
        return value
    return _spread(op, like, value)


def _spread(op: Op, like: NestedTensor, dense: Tensor) -> Tensor:
    """A dense operand that broadcasts against [B, *outer, j, *inner], for the packed values."""
    missing = like.dim() - dense.dim()
    if missing < 0:
        raise NotImplementedError("NYI: broadcasting NT with T with larger dim")
    whole = dense.reshape((1,) * missing + tuple(dense.shape))
    at = like._ragged_idx
    padded = whole.shape[at] != 1
    if padded and (missing or whole.shape[0] != len(like)):
        raise _mismatch(op.name, [like.shape, dense.shape], "torch.Size")
    if padded:
        return _unpadded(like, whole)
    if whole.shape[0] == 1:
        return whole.squeeze(0)
    if whole.shape[0] != len(like):
        raise _mismatch(op.name, [like.shape, dense.shape], "torch.Size")
    rows = whole.squeeze(at).index_select(0, samples_of(like))
    return rows.movedim(0, at - 1)


def _unpadded(like: NestedTensor, padded: Tensor) -> Tensor:
    """Rows of a tensor as long as the longest sample, for the packed values."""
    lengths = like.spans()[1]
    at, longest = like._ragged_idx, max(lengths)
    rows = padded.expand([longest if d == at else n for d, n in enumerate(padded.shape)])
    rows = rows.movedim(at, 1).flatten(0, 1)
    where = [i * longest + j for i, n in enumerate(lengths) for j in range(n)]
    return rows.index_select(0, mindtorch.tensor(where, device=rows.device)).movedim(0, at - 1)


# --- along dims ---


def _inner_dim(tensor: NestedTensor, dim: int, name: str) -> int:
    """The dim of the values that a dim of the tensor is; the batch has none."""
    dim = _wrapped(tensor, dim)
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if dim == tensor._ragged_idx:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return dim - 1


def _wrapped(tensor: NestedTensor, dim: int, added: int = 0) -> int:
    rank = tensor.dim() + added
    if not -rank <= dim < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}],"
            f" but got {dim})"
        )
    return dim % rank


@handles("to_padded_tensor")
def to_padded_tensor(
    self: NestedTensor, padding: object, output_size: Sequence[int] | None = None
) -> Tensor:
    """[B, *outer, longest, *inner] with `padding` behind each sample; cut or longer on request."""
    if self._lengths is not None:
        raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
    packed, padded = places(self)
    at = self._ragged_idx
    rows = self._values.movedim(at - 1, 0).index_select(0, packed)
    longest = self.padded_length()
    batch = mindtorch.full(
        (len(self) * longest, *rows.shape[1:]), padding, dtype=rows.dtype, device=rows.device
    ).index_copy(0, padded, rows)
    whole = batch.unflatten(0, (len(self), longest)).movedim(1, at)
    if output_size is None:
        return whole
    more = [0, *(b - a for a, b in zip(whole.shape[1:], output_size[1:], strict=True))]
    pairs = [n for size in reversed(more) for n in (0, size)]
    return mindtorch.nn.functional.pad(whole, pairs, value=padding)


def _repacked(like: NestedTensor, batch: Tensor) -> NestedTensor:
    """A padded batch [B, *outer, longest, *inner] without what was filled up."""
    at = like._ragged_idx
    rows = batch.movedim(at, 1).flatten(0, 1).index_select(0, places(like)[1])
    values = rows.movedim(0, at - 1)
    if like._lengths is None:
        return with_values(like, values)
    return make(values, offsets_of(like.spans()[1], values.device), None, at, like._symbol)


def _bound(dtype: mindtorch.dtype, word: object) -> object:
    """What no element of a dtype is beyond."""
    if word not in ("lowest", "highest"):
        return word
    if dtype is mindtorch.bool:
        return word == "highest"
    if dtype.is_floating_point:
        return float("-inf" if word == "lowest" else "inf")
    info = mindtorch.iinfo(dtype)
    return info.min if word == "lowest" else info.max


def _reduced(op: Op, args: dict[str, Any]) -> object:
    tensor = args["self"]
    name, dims = op.base_name, args.pop("dim", None)
    entry = op.entry("aten")
    rest = {k: v for k, v in args.items() if k != "self"}
    if dims is None or dims == () or dims == []:
        return entry(_compact(tensor), **rest)
    along = [_wrapped(tensor, d) for d in ((dims,) if isinstance(dims, int) else dims)]
    ragged = tensor._ragged_idx in along
    _refuse_dims(name, along, ragged)
    if ragged and len(along) == 1:
        return _reduced_ragged(entry, tensor, name, rest)
    inner = [d - 1 for d in along if d]
    scalar = isinstance(dims, int)
    result = entry(tensor._values, dim=inner[0] if scalar else inner, **rest)
    if ragged:
        return result
    keepdim = bool(rest.get("keepdim"))
    before = 0 if keepdim else sum(d < tensor._ragged_idx for d in along)
    return _outer(tensor, result, tensor._ragged_idx - before)


def _refuse_dims(name: str, along: Sequence[int], ragged: bool) -> None:
    if 0 in along and not ragged:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not"
            " supported for nested tensors"
        )
    if ragged and len(along) > 1 and 0 not in along:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for"
            " nested tensors"
        )


def _reduced_ragged(
    entry: Handler, tensor: NestedTensor, name: str, rest: dict[str, Any]
) -> object:
    padded = to_padded_tensor(tensor, _bound(tensor.dtype, _REDUCTIONS[name]))
    at = tensor._ragged_idx
    if name != "mean":
        return entry(padded, dim=at, **rest)
    total = padded.sum(at, **rest)
    lengths = mindtorch.tensor(tensor.spans()[1], dtype=total.dtype, device=total.device)
    return total / lengths.reshape((-1, *(1,) * (total.dim() - 1)))


def _compact(tensor: NestedTensor) -> Tensor:
    """The values of the samples alone: what lies between them is left out."""
    if tensor._lengths is None:
        return tensor._values
    return tensor._values.index_select(tensor._ragged_idx - 1, places(tensor)[0])


def _soft(name: str) -> Handler:
    def handler(
        self: NestedTensor, dim: int | None = None, *more: object, **kwargs: object
    ) -> NestedTensor:
        function = getattr(mindtorch, name)
        dtype = next((m for m in more if isinstance(m, mindtorch.dtype)), kwargs.get("dtype"))
        dim = _wrapped(self, -1 if dim is None else dim)
        if dim == 0:
            raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
        if dim != self._ragged_idx:
            return with_values(self, function(self._values, dim - 1, dtype=dtype))
        padded = to_padded_tensor(self, float("-inf"))
        return _repacked(self, function(padded, dim, dtype=dtype))

    return handler


HANDLERS.update(dict.fromkeys(("softmax", "_softmax"), _soft("softmax")))
HANDLERS.update(dict.fromkeys(("log_softmax", "_log_softmax"), _soft("log_softmax")))


def _last_dims(self: NestedTensor, count: int, name: str) -> None:
    if self._ragged_idx > self.dim() - 1 - count:
        raise RuntimeError(
            f"{name}(): normalizing over ragged dim not supported for nested tensors"
        )


def _norm(name: str) -> Handler:
    def handler(self: NestedTensor, shape: Sequence[int], *rest: object) -> NestedTensor:
        _last_dims(self, len(shape), name)
        function = getattr(mindtorch.nn.functional, name)
        return with_values(self, function(self._values, shape, *rest))

    return handler


HANDLERS.update(layer_norm=_norm("layer_norm"), rms_norm=_norm("rms_norm"))


@handles("linear")
def _linear(self: NestedTensor, weight: Tensor, bias: Tensor | None = None) -> NestedTensor:
    _last_dims(self, 1, "linear")
    return with_values(self, mindtorch.nn.functional.linear(self._values, weight, bias))


@handles("embedding")
def _embedding(input: Any, weight: Any, *rest: Any) -> NestedTensor:
    if isinstance(weight, NestedTensor):  # the row of torch has the weight first
        input, weight = weight, input
        places_first = mindtorch.embedding(weight, input._values, *rest)
    else:
        places_first = mindtorch.nn.functional.embedding(input._values, weight, *rest)
    return with_values(input, places_first)


@handles("matmul", "bmm", "mm")
def _matmul(self: Tensor, other: Tensor) -> Tensor:
    if isinstance(self, NestedTensor) and not isinstance(other, NestedTensor):
        if other.dim() <= 2 and self._ragged_idx < self.dim() - 1:
            return with_values(self, self._values @ other)
        if other.dim() == self.dim() and self._ragged_idx == self.dim() - 2:
            return _repacked(self, to_padded_tensor(self, 0) @ other)
    if isinstance(self, NestedTensor) and isinstance(other, NestedTensor):
        last = (self.dim() - 1, other.dim() - 2)  # [B, n, j] @ [B, j, m]: the lengths go
        if self._symbol == other._symbol and (self._ragged_idx, other._ragged_idx) == last:
            return to_padded_tensor(self, 0) @ to_padded_tensor(other, 0)
    raise RuntimeError(
        f"matmul(): not supported between inputs of shapes {tuple(self.shape)} and {other.shape}"
    )


@handles("scaled_dot_product_attention")
def _attention(
    query: NestedTensor, key: NestedTensor, value: NestedTensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> NestedTensor:  # fmt: skip
    """Attention within each sample [B, heads, j, size]; keys that were filled up are masked."""
    if attn_mask is not None or not all(
        isinstance(t, NestedTensor) and t._ragged_idx == t.dim() - 2 for t in (query, key, value)
    ):
        raise ValueError(
            "scaled_dot_product_attention(): nested query, key and value of shape"
            " [B, heads, j, size] and no mask are expected"
        )
    if not all(t.transpose(1, 2).is_contiguous() for t in (query, key, value)):
        raise RuntimeError("No viable backend for scaled_dot_product_attention was found.")
    q, k, v = (to_padded_tensor(t, 0) for t in (query, key, value))
    lengths = mindtorch.tensor(key.spans()[1], device=k.device).reshape(-1, 1, 1, 1)
    allowed = mindtorch.arange(k.shape[-2], device=k.device) < lengths
    if is_causal:
        square = mindtorch.ones(q.shape[-2], k.shape[-2], dtype=mindtorch.bool, device=k.device)
        allowed = allowed & square.tril()
    out = mindtorch.nn.functional.scaled_dot_product_attention(
        q, k, v, allowed, dropout_p, scale=scale, enable_gqa=enable_gqa
    )
    return _repacked(query, out)


# --- shapes ---


def _listed(sizes: Sequence[object]) -> list[Any]:
    """Sizes given one by one, or as one list."""
    return list(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes)


@handles("transpose")
def _transpose(self: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    first, second = _wrapped(self, dim0), _wrapped(self, dim1)
    if first == second:
        return self
    if 0 in (first, second):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    swap = {first: second, second: first}
    at = swap.get(self._ragged_idx, self._ragged_idx)
    return with_values(self, self._values.transpose(first - 1, second - 1), at)


@handles("permute")
def _permute(self: NestedTensor, *dims: object) -> NestedTensor:
    order = [_wrapped(self, d) for d in _listed(dims)]
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    inner = [d - 1 for d in order[1:]]
    return with_values(self, self._values.permute(inner), order.index(self._ragged_idx))


@handles("unsqueeze")
def _unsqueeze(self: NestedTensor, dim: int) -> NestedTensor:
    dim = _wrapped(self, dim, 1)
    if dim == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    at = self._ragged_idx + (dim <= self._ragged_idx)
    return with_values(self, self._values.unsqueeze(dim - 1), at)


@handles("squeeze")
def _squeeze(self: NestedTensor, dim: int | Sequence[int] | None = None) -> NestedTensor:
    if dim is None:
        raise NotImplementedError("aten.squeeze.default")
    dims = [_inner_dim(self, d, "squeeze") for d in ((dim,) if isinstance(dim, int) else dim)]
    gone = [d for d in dims if self._values.shape[d] == 1]
    at = self._ragged_idx - sum(d < self._ragged_idx - 1 for d in gone)
    return with_values(self, self._values.squeeze(gone), at)


@handles("view", "reshape")
def _view(self: NestedTensor, *size: object) -> NestedTensor:
    sizes, shape = _listed(size), tuple(self.shape)
    if self._ragged_idx != 1 and shape != tuple(sizes):
        raise RuntimeError(
            "view(): does not support ragged_idx != 1 except when inp._size == size. inp._size is"
            f" ({shape}) and size is ({sizes})."
        )
    pairs = zip(shape, sizes[: self._ragged_idx + 1], strict=False)
    if len(sizes) < 3 or any(n not in (-1, have) for have, n in pairs):
        raise RuntimeError(f"view(): cannot view shape {shape} as {sizes}")
    inner = [*sizes[1:]]
    inner[self._ragged_idx - 1] = self._values.shape[self._ragged_idx - 1]
    return with_values(self, self._values.reshape(inner))


@handles("unflatten")
def _unflatten(self: NestedTensor, dim: int, sizes: Sequence[int]) -> NestedTensor:
    inner = _inner_dim(self, dim, "unflatten")
    at = self._ragged_idx + (len(sizes) - 1) * (inner < self._ragged_idx - 1)
    return with_values(self, self._values.unflatten(inner, sizes), at)


@handles("flatten")
def _flatten(self: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    first, last = _wrapped(self, start_dim), _wrapped(self, end_dim)
    if first == last:
        return self
    if first <= self._ragged_idx <= last and first:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    first = _inner_dim(self, first, "flatten")
    at = self._ragged_idx - (last - 1 - first) * (last < self._ragged_idx)
    return with_values(self, self._values.flatten(first, last - 1), at)


@handles("expand")
def _expand(self: NestedTensor, *size: object) -> NestedTensor:
    inner = _listed(size)[1:]
    inner[self._ragged_idx - 1] = -1
    return with_values(self, self._values.expand(inner))


@handles("unbind")
def _unbind(self: NestedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    if _wrapped(self, dim) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    at = self._ragged_idx - 1
    starts, lengths = self.spans()
    pairs = zip(starts, lengths, strict=True)
    return tuple(self._values.narrow(at, start, length) for start, length in pairs)


def _part(self: NestedTensor, first: int, last: int) -> NestedTensor:
    """Samples from `first` up to `last`."""
    ends = self._offsets.tolist()
    values = self._values.narrow(self._ragged_idx - 1, ends[first], ends[last] - ends[first])
    lengths = None if self._lengths is None else self._lengths[first:last]
    offsets = self._offsets[first : last + 1] - ends[first]
    return make(values, offsets, lengths, self._ragged_idx)


@handles("chunk")
def _chunk(self: NestedTensor, chunks: int, dim: int = 0) -> tuple[NestedTensor, ...]:
    if _wrapped(self, dim) == 0:
        step = -(-len(self) // chunks)
        return tuple(_part(self, i, min(i + step, len(self))) for i in range(0, len(self), step))
    inner = _inner_dim(self, dim, "chunk")
    return tuple(with_values(self, part) for part in self._values.chunk(chunks, inner))


@handles("split")
def _split(
    self: NestedTensor, sizes: int | Sequence[int], dim: int = 0
) -> tuple[NestedTensor, ...]:
    inner = _inner_dim(self, dim, "split")
    return tuple(with_values(self, part) for part in self._values.split(sizes, inner))


@handles("narrow")
def _narrow(self: NestedTensor, dim: int, start: int, length: int) -> NestedTensor:
    inner = _inner_dim(self, dim, "narrow")
    return with_values(self, self._values.narrow(inner, start, length))


@handles("slice")
def _slice(self: NestedTensor, dim: int = 0, *bounds: int) -> NestedTensor:
    inner = _inner_dim(self, dim, "slice")
    return with_values(self, mindtorch.ops.aten.slice(self._values, inner, *bounds))


@handles("select")
def _select(self: NestedTensor, dim: int, index: int) -> Tensor:
    if _wrapped(self, dim) == 0:
        return _unbind(self)[index]
    inner = _inner_dim(self, dim, "select")
    at = self._ragged_idx - (inner < self._ragged_idx - 1)
    return with_values(self, self._values.select(inner, index), at)


def _getitem(self: NestedTensor, key: object) -> object:
    """One sample, or places of dims that are neither the batch nor ragged."""
    keys = key if isinstance(key, tuple) else (key,)
    if keys and isinstance(keys[0], int) and not isinstance(keys[0], bool):
        sample = _unbind(self)[keys[0]]
        return sample[keys[1:]] if keys[1:] else sample
    whole = slice(None)
    places = sum(k is not None and k is not Ellipsis for k in keys)
    if not any(k is Ellipsis for k in keys):
        if keys and isinstance(keys[0], slice):
            raise RuntimeError("slice(): not supported for NestedTensor on dim=0")
        keys = (*keys, Ellipsis)
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    keys = (*keys[:at], *(whole,) * (self.dim() - places), *keys[at + 1 :])
    ragged = [k for k in keys if k is not None][self._ragged_idx]
    for part, where in ((keys[0], "dim=0"), (ragged, "ragged dim")):
        if not (isinstance(part, slice) and part == whole):
            name = "unsqueeze" if part is None else "select" if isinstance(part, int) else "slice"
            raise RuntimeError(f"{name}(): not supported for NestedTensor on {where}")
    values = self._values[keys[1:]]
    gone = sum(isinstance(k, int) for k in keys[1 : self._ragged_idx])
    return with_values(self, values, self._ragged_idx - gone)


@handles("cat")
def _cat(tensors: Sequence[Tensor], dim: int = 0) -> NestedTensor:
    members = _nested(tensors)
    first = members[0]
    if len(members) < len(tensors):
        raise RuntimeError("cat(): nested and dense tensors cannot be joined")
    if any(t._symbol != first._symbol for t in members):
        raise RuntimeError("cat(): nested tensors of the same lengths are expected")
    inner = _inner_dim(first, dim, "cat")
    return with_values(first, mindtorch.cat([t._values for t in members], inner))


@handles("stack")
def _stack(tensors: Sequence[NestedTensor], dim: int = 0) -> NestedTensor:
    dim = _wrapped(tensors[0], dim, 1)
    if dim == 0:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    return _cat([_unsqueeze(t, dim) for t in tensors], dim)


@handles("copy")
def _copy(self: NestedTensor, src: NestedTensor, *rest: object) -> NestedTensor:
    if src._symbol != self._symbol and src.spans() != self.spans():
        raise RuntimeError(
            f"copy_(): expected lengths of {tuple(self.shape)}, got those of {tuple(src.shape)}"
        )
    self._values.copy_(src._values)
    return self


@handles("equal")
def _equal(self: Tensor, other: Tensor) -> bool:
    if not (isinstance(self, NestedTensor) and isinstance(other, NestedTensor)):
        return False
    return self.spans() == other.spans() and mindtorch.equal(_compact(self), _compact(other))


def _made_like(name: str) -> Handler:
    def handler(self: NestedTensor, *args: object, **kwargs: object) -> NestedTensor:
        kwargs.pop("layout", None)
        return with_values(self, getattr(mindtorch, name)(self._values, *args, **kwargs))

    return handler


HANDLERS.update({name: _made_like(name) for name in _LIKE})
METHODS: dict[str, object] = {
    "_row_call": staticmethod(call),
    "__getitem__": _getitem,
    "mT": property(lambda self: _transpose(self, -2, -1)),
    "T": property(lambda self: _permute(self, *reversed(range(self.dim())))),
}
NOT_METHODS = frozenset(("cat", "copy", "embedding", "stack", *_LIKE))
METHODS |= {name: handler for name, handler in HANDLERS.items() if name not in NOT_METHODS}
for _name, _method in METHODS.items():
    setattr(NestedTensor, _name, _method)
