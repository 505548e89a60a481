"""Owns how operators keep tensors apart: what placements they want, and what those of results are.

A rule looks at one dimension of the mesh. What has none takes copies, which is right for any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ..._tensor.tensor import Tensor
from ._redistribute import REPLICATE, share
from .placement_types import Partial, Placement, Shard, _NormPartial

# What is wanted of each tensor, and what all results, or each of them, are.
Layout = tuple[Sequence[Placement], Placement | tuple[Placement, ...]]


@dataclass
class ShardedCall:
    """An operator's call: the tensors in it in their order, arguments by place and all by name.

    `placements` are those along the dimension of the mesh in question, which has `count` places.
    """

    name: str
    tensors: Sequence[Tensor]
    placements: Sequence[Placement]
    places: Sequence[Any]
    named: dict[str, Any]
    count: int
    writes: bool

    def dim(self, name: str = "dim", of: int = 0) -> int:
        """A dimension among the arguments, from the front."""
        return int(self.named[name]) % max(self.tensors[of].ndim, 1)

    def dims(self, name: str = "dim") -> list[int]:
        """Some dimensions among the arguments, all where none is named."""
        value, ndim = self.named.get(name), self.tensors[0].ndim
        if value is None or value == [] or value == ():
            return list(range(ndim))
        return [d % max(ndim, 1) for d in ([value] if isinstance(value, int) else value)]

    def all(self, placement: Placement) -> list[Placement]:
        """The same for each tensor."""
        return [placement] * len(self.tensors)


def copies(call: ShardedCall) -> Layout:
    """Of any operator."""
    return call.all(REPLICATE), REPLICATE


_LINEAR = frozenset(("add", "sub", "neg", "positive", "_to_copy"))
_SCALES = frozenset(("mul", "div"))


def elementwise(call: ShardedCall) -> Layout:
    """An operator of elements: parts of one tensor and those that it needs of others."""
    ndim = max((t.ndim for t in call.tensors), default=0)
    first = call.placements[:1] if call.writes else call.placements
    pairs = zip(call.tensors, first, strict=False)
    cuts = [t.ndim - p.dim for t, p in pairs if isinstance(p, Shard)]
    if cuts:
        back = max(cuts)  # of several, the first dimension's
        length = max(t.shape[t.ndim - back] for t in call.tensors if t.ndim >= back)
        return [_part_of(t, back, length) for t in call.tensors], Shard(ndim - back)
    partial = next((p for p in call.placements if isinstance(p, Partial)), None)
    if partial is None or (call.writes and partial != call.placements[0]):
        return copies(call)
    numbers = len(call.tensors) == 1
    if call.name in _LINEAR and not (numbers and call.name in ("add", "sub")):
        return call.all(partial), partial
    if call.name in _SCALES and partial.reduce_op in ("sum", "avg"):
        at = call.placements.index(partial)
        if call.name == "mul" or at == 0:
            return [partial if i == at else REPLICATE for i in range(len(call.tensors))], partial
    return copies(call)


def _part_of(tensor: Tensor, back: int, length: int) -> Placement:
    """What a tensor gives to parts along a dimension of `length`, counted from the last."""
    dim = tensor.ndim - back
    return Shard(dim) if dim >= 0 and tensor.shape[dim] == length else REPLICATE


_REDUCTIONS = {
    "sum": "sum", "mean": "avg", "max": "max", "min": "min", "amax": "max", "amin": "min",
    "prod": "product", "any": "sum", "all": "product",
}  # fmt: skip


def _shifted(placement: Shard, dims: Sequence[int], keepdim: object) -> Shard:
    """The part along a dimension after others were reduced."""
    return placement if keepdim else Shard(placement.dim - sum(d < placement.dim for d in dims))


def reduction(call: ShardedCall) -> Layout:
    """Parts of what is reduced are summands of results."""
    placement, dims = call.placements[0], call.dims()
    if isinstance(placement, Shard):
        if placement.dim not in dims:
            return [placement], _shifted(placement, dims, call.named.get("keepdim"))
        length, kind = call.tensors[0].shape[placement.dim], _REDUCTIONS[call.name]
        if call.name in ("max", "min") and "dim" in call.named:
            return copies(call)
        if kind == "avg" and length % call.count:  # means of unequal parts do not average
            return copies(call)
        if kind in ("max", "min") and not share(length, call.count, call.count - 1)[0]:
            return copies(call)  # the last part is empty
        return [placement], Partial(kind)
    if isinstance(placement, Partial) and call.name == placement.reduce_op == "sum":
        return [placement], placement
    return copies(call)


def norm(call: ShardedCall) -> Layout:
    """A norm of parts is made of their norms."""
    placement, dims = call.placements[0], call.dims()
    kind = call.named.get("p", call.named.get("ord", 2))
    kind = 2 if kind is None else kind
    if isinstance(placement, Shard) and placement.dim in dims and kind in (1, 2, 3, 4):
        return [placement], _NormPartial("sum", kind)
    return along(call)


def along(call: ShardedCall) -> Layout:
    """Along some dimensions, which have to be whole."""
    placement, dims = call.placements[0], call.dims()
    if call.name == "native_layer_norm":
        ndim = call.tensors[0].ndim
        dims = list(range(ndim - len(call.named["normalized_shape"]), ndim))
    if not isinstance(placement, Shard) or placement.dim in dims:
        return copies(call)
    inputs = [placement, *(REPLICATE for _ in call.tensors[1:])]
    removes = call.name in ("logsumexp", "var", "std", "argmax", "argmin", "norm",
                            "linalg_vector_norm", "median", "mode")  # fmt: skip
    if removes:
        return inputs, _shifted(placement, dims, call.named.get("keepdim"))
    return inputs, placement


def _moved(find: Callable[[ShardedCall, int], int | None]) -> Callable[[ShardedCall], Layout]:
    """A view: `find` says where a dimension goes, None where it does not stay whole."""

    def rule(call: ShardedCall) -> Layout:
        placement = call.placements[0]
        if not isinstance(placement, Shard):
            return [placement], placement
        dim = find(call, placement.dim)
        return copies(call) if dim is None else ([placement], Shard(dim))

    return rule


def _viewed(call: ShardedCall, dim: int) -> int | None:
    """Where the elements before a dimension are as many, and its parts are parts again."""
    shape = call.tensors[0].shape
    size = list(call.named.get("size", call.named.get("shape", ())))
    if -1 in size:
        size[size.index(-1)] = prod(shape) // max(1, -prod(size))
    before = prod(shape[:dim])
    for j, length in enumerate(size):
        if prod(size[:j]) == before and (length != 1 or shape[dim] == 1):
            whole = length == shape[dim] or (length % call.count == shape[dim] % call.count == 0)
            return j if whole else None
    return None


def _transposed(call: ShardedCall, dim: int) -> int:
    a, b = (0, 1) if "dim0" not in call.named else (call.dim("dim0"), call.dim("dim1"))
    return {a: b, b: a}.get(dim, dim) if call.tensors[0].ndim > 1 else dim


def _permuted(call: ShardedCall, dim: int) -> int:
    return call.dims("dims").index(dim)


def _unsqueezed(call: ShardedCall, dim: int) -> int:
    at = call.named["dim"] % (call.tensors[0].ndim + 1)
    return dim + (at <= dim)


def _squeezed(call: ShardedCall, dim: int) -> int | None:
    shape = call.tensors[0].shape
    dims = call.dims()
    return None if shape[dim] == 1 else dim - sum(shape[d] == 1 and d < dim for d in dims)


def _expanded(call: ShardedCall, dim: int) -> int | None:
    size = call.named.get("size", call.named.get("repeats", ()))
    at = dim + len(size) - call.tensors[0].ndim
    if call.name == "repeat":
        return at if size[at] == 1 else None
    return at if call.tensors[0].shape[dim] != 1 else None


def _selected(call: ShardedCall, dim: int) -> int | None:
    at = call.dim()
    if call.name in ("select", "unbind"):
        return None if at == dim else dim - (at < dim)
    return None if at == dim else dim


def _flipped(call: ShardedCall, dim: int) -> int | None:
    return None if call.name == "roll" or dim in call.dims("dims") else dim


def product(call: ShardedCall) -> Layout:
    """Products of matrices, with what is added in the first place."""
    adds = call.name in ("addmm", "baddbmm")
    (a, pa), (b, pb) = list(zip(call.tensors, call.placements, strict=True))[-2:]
    batch, last = a.ndim - 2, max(b.ndim - 1, 0)
    inner = Shard(a.ndim - 1), Shard(batch)
    inputs: tuple[Placement, Placement]
    out: Placement
    if batch > 0 and Shard(0) in (pa, pb):
        inputs, out = (Shard(0), Shard(0)), Shard(0)
    elif a.ndim > 1 and pa == Shard(batch):
        inputs, out = (pa, REPLICATE), Shard(batch)
    elif pb == Shard(last) and b.ndim > 1:
        inputs, out = (REPLICATE, pb), Shard(a.ndim - 1)
    elif inner[0] == pa or inner[1] == pb:
        inputs, out = inner, Partial()
    elif Partial() in (pa, pb):
        whole = (pa, REPLICATE) if pa == Partial() else (REPLICATE, pb)
        inputs, out = whole, Partial()
    else:
        return copies(call)
    more: list[Placement] = [out] if adds else []
    if adds and isinstance(out, Shard):
        length = b.shape[-1] if out.dim == a.ndim - 1 else a.shape[out.dim]
        more = [_part_of(call.tensors[0], a.ndim - out.dim, length)]
    return [*more, *inputs], out


def joined(call: ShardedCall) -> Layout:
    """Tensors one after the other, or on a new dimension."""
    new = call.name == "stack"
    if all(p == call.placements[0] and isinstance(p, Partial) for p in call.placements):
        return list(call.placements), call.placements[0]
    place = next((p for p in call.placements if isinstance(p, Shard)), None)
    ndim = call.tensors[0].ndim + new
    at = call.named.get("dim", 0) % max(ndim, 1)
    if place is None or (not new and place.dim == at):
        return copies(call)
    return call.all(place), Shard(place.dim + (new and at <= place.dim))


def embedding(call: ShardedCall) -> Layout:
    """Columns of the table, or some of the indices."""
    table, index = call.placements[:2]
    if table == Shard(1):
        return [table, REPLICATE], Shard(call.tensors[1].ndim)
    if isinstance(index, Shard):
        return [REPLICATE, index], index
    return copies(call)


def embedding_gradient(call: ShardedCall) -> Layout:
    """Columns of the table have columns of the gradient."""
    grad, last = call.placements[0], call.tensors[0].ndim - 1
    return ([grad, REPLICATE], Shard(1)) if grad == Shard(last) else copies(call)


def norm_gradient(call: ShardedCall) -> Layout:
    """Of rows, with summands of what the parameters get."""
    placement, shape = call.placements[0], call.tensors[0].shape
    whole = len(shape) - len(call.places[2])
    if not isinstance(placement, Shard) or placement.dim >= whole:
        return copies(call)
    inputs = [placement if t.shape[:whole] == shape[:whole] else REPLICATE for t in call.tensors]
    return inputs, (placement, Partial(), Partial())


def same(call: ShardedCall) -> Layout:
    """Of one tensor, as it lies."""
    return list(call.placements), call.placements[0]


def filled(call: ShardedCall) -> Layout:
    """New elements for each that is there."""
    placement = call.placements[0]
    layout = REPLICATE if isinstance(placement, Partial) else placement
    return [layout], layout


RULES: dict[str, Callable[[ShardedCall], Layout]] = {
    **dict.fromkeys(_REDUCTIONS, reduction),
    **dict.fromkeys(("norm", "linalg_vector_norm"), norm),
    **dict.fromkeys((
        "softmax", "_softmax", "log_softmax", "_log_softmax", "cumsum", "cumprod", "logsumexp",
        "sort", "topk", "var", "std", "argmax", "argmin", "native_layer_norm", "gather", "median",
    ), along),
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm", "matmul", "mv", "dot"), product),
    **dict.fromkeys(("cat", "stack"), joined),
    **dict.fromkeys(("detach", "alias", "view_as"), same),
    **dict.fromkeys((
        "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like",
        "randint_like",
    ), filled),
    **dict.fromkeys(("view", "_unsafe_view", "reshape", "_reshape_copy"), _moved(_viewed)),
    **dict.fromkeys(("t", "transpose"), _moved(_transposed)),
    **dict.fromkeys(("expand", "repeat"), _moved(_expanded)),
    **dict.fromkeys(("select", "slice", "split", "chunk", "unbind", "split_with_sizes", "narrow"),
                    _moved(_selected)),
    **dict.fromkeys(("flip", "roll"), _moved(_flipped)),
    "permute": _moved(_permuted), "unsqueeze": _moved(_unsqueezed), "squeeze": _moved(_squeezed),
    "embedding": embedding, "embedding_dense_backward": embedding_gradient,
    "_layer_norm_backward": norm_gradient, "native_layer_norm_backward": norm_gradient,
}  # fmt: skip
# Operators of elements, by torch's names.
_ELEMENTWISE = """
    abs acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bernoulli bitwise_and
    bitwise_not bitwise_or bitwise_xor ceil celu clamp clamp_max clamp_min clone conj contiguous
    copy copysign cos cosh deg2rad digamma div elu elu_backward eq erf erfc erfinv exp exp2
    exponential expm1 fill float_power floor floor_divide fmax fmin fmod frac ge gelu gelu_backward
    gt hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh hardtanh_backward
    heaviside hypot i0 isfinite isinf isnan le leaky_relu leaky_relu_backward lerp lgamma log log10
    log1p log2 log_sigmoid log_sigmoid_forward logaddexp logical_and logical_not logical_or
    logical_xor logit lt masked_fill maximum minimum mish mul nan_to_num native_dropout ne neg
    nextafter normal polar positive pow rad2deg random reciprocal relu remainder round rsqrt rsub
    selu sgn sigmoid sigmoid_backward sign signbit silu silu_backward sin sinc sinh softplus
    softplus_backward sqrt square sub tan tanh tanh_backward threshold threshold_backward trunc
    uniform where xlogy zero _to_copy
"""
RULES |= dict.fromkeys(_ELEMENTWISE.split(), elementwise)
# Arguments that are sizes of the whole result.
SIZES = {"view": "size", "_unsafe_view": "size", "expand": "size", "reshape": "shape",
         "_reshape_copy": "size"}  # fmt: skip
# Operators that draw, in each process by itself.
DRAWS = frozenset((
    "bernoulli", "exponential", "native_dropout", "normal", "rand_like", "randint_like",
    "randn_like", "random", "uniform",
))  # fmt: skip
