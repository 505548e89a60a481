"""Owns the batching rules: how a row computes all elements of a batch in one call.

Most follow from the row itself: pointwise rows broadcast, rows with dimensions take them one
higher, rows that work on the last dimensions take any number before them. What a rule gives is
held to the shape that the row says of one element; None leaves the call to be made for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .._tensor.tensor import Tensor
from ..ops.rules import Pointwise
from ..ops.spec import OPS, Op, aten
from ._batched import FUNCTIONS, RULES, BatchedTensor, at, batched

# Rows that take any number of dimensions before those that they work on.
NATIVE = (
    "tril", "triu", "linalg_inv", "linalg_det", "linalg_slogdet", "_linalg_cholesky",
    "linalg_eigh", "linalg_svd", "_linalg_svd_v", "linalg_qr", "linalg_matrix_exp", "linalg_eig",
    "cholesky_inverse", "view_as_real", "view_as_complex", "frexp", "polygamma", "clamp", "zero",
    "clone", "_to_copy", "conj_physical", "alias", "constant_pad_nd", "pow.Scalar", "complex",
    "view.dtype", "masked_fill", "copy",
)  # fmt: skip
# Rows with dimensions that are no plain shift, or whose tensors differ in rank by their nature.
_APART = {"index_select", "index_add", "index_copy", "index_fill", "squeeze", "roll", "expand",
          "_embed", "cat", "stack", "native_group_norm"}  # fmt: skip
_DIMS = ("dim", "dims", "dim0", "dim1", "dim2", "dimension")


# What a rule gives: None where it does not hold.
Result: TypeAlias = Tensor | tuple[Tensor, ...] | None


def _names(op: Op) -> list[str]:
    return [a.name for a in op.schema.args]


def _ranked(value: Tensor, rank: int) -> Tensor:
    """The batch with ones behind it, so that one element has `rank` dimensions."""
    assert isinstance(value, BatchedTensor)
    whole = value._value
    lacking = rank - value.dim()
    if lacking <= 0:
        return whole
    wider: Tensor = aten.reshape(whole, (whole.shape[0], *[1] * lacking, *whole.shape[1:]))
    return wider


def _tensors(args: Sequence[Any]) -> list[Tensor]:
    return [a for a in args if isinstance(a, Tensor)]


def pointwise(op: Op, level: int, size: int, *args: Any) -> Result:
    """Elements meet by broadcasting, the batch in front."""
    rank = max(t.dim() for t in _tensors(args))
    return op.entry("aten")(*(_ranked(a, rank) if at(a, level) else a for a in args))


def whole(value: Any, level: int, size: int) -> Any:
    """A tensor with its batch, by expansion where it has none."""
    if at(value, level):
        return value._value
    if isinstance(value, BatchedTensor) and value._level > level:
        return batched(whole(value._value, level, size).transpose(0, 1), value._level)
    if isinstance(value, Tensor):
        return value.expand(size, *value.shape)
    return value


def shifted(op: Op, level: int, size: int, *args: Any) -> Result:
    """Dimensions one higher; tensors of one rank, all with the batch in front."""
    tensors = _tensors(args)
    rank = tensors[0].dim()
    if not rank or any(t.dim() != rank for t in tensors):
        return None
    values = [whole(a, level, size) for a in args]
    for i, name in enumerate(_names(op)):
        if name in _DIMS:
            values[i] = _up(values[i], rank)
    return op.entry("aten")(*values)


def _up(dims: int | Sequence[int] | None, rank: int) -> int | tuple[int, ...]:
    if isinstance(dims, int):
        return dims + 1 if dims >= 0 else dims
    if dims is None or not len(dims):
        return tuple(range(1, rank + 1))
    return tuple(d + 1 if d >= 0 else d for d in dims)


def native(op: Op, level: int, size: int, *args: Any) -> Result:
    """The row as it is."""
    return pointwise(op, level, size, *args)


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function be the rule of these rows."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            RULES[name] = function
        return function

    return put


# ---- shapes


@rule("as_strided")
def as_strided(
    op: Op, level: int, size: int, self: BatchedTensor, shape: Sequence[int],
    strides: Sequence[int], offset: int | None = None,
) -> Result:  # fmt: skip
    """The offset is that of the first element of the batch."""
    value = self._value
    return op.entry("aten")(value, (size, *shape), (value.stride(0), *strides), offset)


@rule("unsqueeze")
def unsqueeze(op: Op, level: int, size: int, self: BatchedTensor, dim: int) -> Tensor:
    result: Tensor = aten.unsqueeze(self._value, dim + 1 if dim >= 0 else dim)
    return result


@rule("squeeze")
def squeeze(
    op: Op, level: int, size: int, self: BatchedTensor, dim: int | Sequence[int] | None
) -> Result:
    selection = range(self.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = tuple(d % max(self.dim(), 1) + 1 for d in selection) if self.dim() else ()
    dims = tuple(d for d in dims if self._value.shape[d] == 1)
    return aten.squeeze(self._value, dims) if dims else aten.alias(self._value)


@rule("t")
def t(op: Op, level: int, size: int, self: BatchedTensor) -> Result:
    return aten.transpose(self._value, 1, 2) if self.dim() == 2 else aten.alias(self._value)


@rule("permute")
def permute(op: Op, level: int, size: int, self: BatchedTensor, dims: Sequence[int]) -> Result:
    return aten.permute(self._value, (0, *(d % self.dim() + 1 for d in dims)))


@rule("view", "_reshape_copy")
def view(op: Op, level: int, size: int, self: BatchedTensor, shape: Sequence[int]) -> Result:
    known = 1
    for n in shape:
        known *= n if n != -1 else 1
    sizes = tuple(n if n != -1 else self.numel() // max(known, 1) for n in shape)
    return op.entry("aten")(self._value, (size, *sizes))


@rule("expand")
def expand(
    op: Op, level: int, size: int, self: BatchedTensor, shape: Sequence[int], *rest: Any
) -> Result:
    return op.entry("aten")(_ranked(self, len(shape)), (size, *shape), *rest)


@rule("repeat")
def repeat(op: Op, level: int, size: int, self: BatchedTensor, repeats: Sequence[int]) -> Result:
    return aten.repeat(_ranked(self, len(repeats)), (1, *repeats))


@rule("_unfold_grad")
def unfold_grad(
    op: Op, level: int, size: int, grad: BatchedTensor, sizes: Sequence[int], dim: int, *rest: int
) -> Result:
    return op.entry("aten")(grad._value, (size, *sizes), dim + 1, *rest) if sizes else None


@rule("roll")
def roll(
    op: Op, level: int, size: int, self: BatchedTensor, shifts: Sequence[int], dims: Sequence[int]
) -> Result:
    return aten.roll(self._value, shifts, _up(dims, self.dim())) if dims else None


@rule("cat", "stack")
def joined(op: Op, level: int, size: int, tensors: Sequence[Tensor], dim: int) -> Result:
    if any(t.dim() != tensors[0].dim() for t in tensors) or dim.__class__ is not int:
        return None
    values = [whole(t, level, size) for t in tensors]
    return op.entry("aten")(values, dim + 1 if dim >= 0 else dim)


# ---- numbers of elements


@rule("index_select")
def index_select(
    op: Op, level: int, size: int, self: BatchedTensor, dim: int, index: Tensor
) -> Result:
    if at(index, level) or not self.dim():
        return None
    return aten.index_select(self._value, dim + 1 if dim >= 0 else dim, index)


@rule("index_add", "index_copy")
def index_write(
    op: Op, level: int, size: int, self: BatchedTensor, dim: int, index: Tensor, *rest: Any
) -> Result:
    if at(index, level) or not self.dim() or rest[0].dim() != self.dim():
        return None
    up = dim + 1 if dim >= 0 else dim
    parts = [whole(r, level, size) for r in rest]
    return op.entry("aten")(whole(self, level, size), up, index, *parts)


@rule("index")
def index(
    op: Op, level: int, size: int, self: BatchedTensor, indices: Sequence[Tensor | None]
) -> Result:
    """Tensors of indices side by side: where they have a batch, its numbers go with them."""
    places = [i for i, part in enumerate(indices) if part is not None]
    if places[-1] - places[0] + 1 != len(places):
        return None
    indices_ = [part for part in indices if part is not None]
    if any(c.dtype.category == 0 for c in indices_):  # masks have results of any length
        return None
    if not any(at(c, level) for c in indices_):
        return aten.index(self._value, (None, *indices))
    rank = max(c.dim() for c in indices_)
    ranked = [_ranked(c, rank) if at(c, level) else c for c in indices_]
    if not at(self, level):
        # Their dimensions stand where the first was: the batch is in front only there.
        return aten.index(self, (None,) * places[0] + tuple(ranked)) if not places[0] else None
    if places[0]:
        return None
    batch_index = aten.reshape(aten.arange(0, size, 1, device=self.device), (size, *[1] * rank))
    return aten.index(self._value, (batch_index, *ranked))


@rule("embedding")
def embedding(op: Op, level: int, size: int, weight: Tensor, indices: Tensor, *rest: Any) -> Result:
    """Tables of a batch stand beside each other in the columns of one."""
    if not at(weight, level):
        assert isinstance(indices, BatchedTensor)
        return op.entry("aten")(weight, indices._value, *rest)
    if at(indices, level):
        return None
    table = aten.flatten(aten.transpose(whole(weight, level, size), 0, 1), 1, 2)
    rows = op.entry("aten")(table, indices, *rest)
    return aten.movedim(aten.reshape(rows, (*indices.shape, size, -1)), -2, 0)


@rule("max", "min")
def extreme(op: Op, level: int, size: int, self: BatchedTensor) -> Result:
    flat = aten.reshape(self._value, (size, -1))
    return getattr(aten, "a" + op.name)(flat, (1,)) if size and self.numel() else None


# ---- products


def _inner(value: Tensor, level: int) -> Tensor:
    """The batch of a tensor that has one, the tensor itself otherwise."""
    return value._value if isinstance(value, BatchedTensor) and value._level == level else value


def _product(one: Tensor, other: Tensor, level: int) -> Tensor:
    """A matrix product of any ranks: vectors are given a dimension of one for it."""
    left, right = one.dim() == 1, other.dim() == 1
    if right and not at(other, level):
        folded: Tensor = aten.matmul(_inner(one, level), other)
        return folded
    a, b = _inner(one, level), _inner(other, level)
    a = aten.unsqueeze(a, -2) if left else a
    b = aten.unsqueeze(b, -1) if right else b
    rank = max(one.dim() + left, other.dim() + right)
    if at(one, level) and one.dim() + left < rank:
        a = aten.reshape(a, (a.shape[0], *[1] * (rank - one.dim() - left), *a.shape[1:]))
    if at(other, level) and other.dim() + right < rank:
        b = aten.reshape(b, (b.shape[0], *[1] * (rank - other.dim() - right), *b.shape[1:]))
    product = aten.matmul(a, b)
    product = aten.squeeze(product, (-1,)) if right else product
    result: Tensor = aten.squeeze(product, (-2 + right,)) if left else product
    return result


@rule("mm", "bmm", "matmul", "mv", "dot")
def product(op: Op, level: int, size: int, one: Tensor, other: Tensor, *_: Any) -> Result:
    ranks = _RANKS.get(op.name, (one.dim(), other.dim()))
    if (one.dim(), other.dim()) != ranks:
        raise RuntimeError(
            "Got wrong shapes for dot"
            if op.name == "dot"
            else f"Shape mismatch: Got incorrect dims for {op.name}(a, b). a has dim"
            f" {one.dim()}and b has dim {other.dim()}but expected them to have dim {ranks[0]} and"
            f" dim {ranks[1]}"
        )
    return _product(one, other, level)


_RANKS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1)}


@rule("addmm", "baddbmm")
def added(
    op: Op,
    level: int,
    size: int,
    self: BatchedTensor,
    one: Tensor,
    other: Tensor,
    beta: float,
    alpha: float,
) -> Result:
    multiplied = (
        batched(_product(one, other, level), level) if any_at(level, one, other) else one @ other
    )
    result = self * beta + multiplied * alpha
    return result._value if isinstance(result, BatchedTensor) else None


def any_at(level: int, *values: Any) -> bool:
    return any(at(v, level) for v in values)


@rule("linear")
def linear(
    op: Op, level: int, size: int, input: BatchedTensor, weight: Tensor, bias: Tensor | None
) -> Result:
    if not any_at(level, weight, bias):
        return op.entry("aten")(input._value, weight, bias)
    if not any_at(level, input, weight) or weight.dim() != 2:
        return None
    multiplied = batched(_product(input, weight.transpose(0, 1), level), level)
    result = multiplied if bias is None else multiplied + bias
    return result._value if isinstance(result, BatchedTensor) else None


@rule("_linalg_solve")
def solve(op: Op, level: int, size: int, one: Tensor, other: Tensor) -> Result:
    if one.dim() != other.dim() or one.dim() < 2:
        return None
    return op.entry("aten")(whole(one, level, size), whole(other, level, size))


@rule("mse_loss", "smooth_l1_loss", "huber_loss")
def loss(
    op: Op, level: int, size: int, self: BatchedTensor, target: Tensor, reduction: int, *rest: Any
) -> Result:
    rank = max(self.dim(), target.dim())
    pair = (_ranked(v, rank) if at(v, level) else v for v in (self, target))
    each = op.entry("aten")(*pair, 0, *rest)
    dims = tuple(range(1, rank + 1))
    if not reduction or not dims:
        return each
    return aten.mean(each, dims) if reduction == 1 else aten.sum(each, dims)


@rule("nll_loss_forward")
def nll(
    op: Op,
    level: int,
    size: int,
    self: BatchedTensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore: int,
) -> Result:
    """-log of the chance of each target, those to ignore left out."""
    if weight is not None or self.dim() not in (1, 2):
        return None
    chances, targets = whole(self, level, size), whole(target, level, size)
    counted = targets != ignore
    labels = aten.where(counted, targets, aten.zeros_like(targets))
    picked = aten.squeeze(aten.gather(chances, self.dim(), aten.unsqueeze(labels, -1)), (-1,))
    each = aten.where(counted, -picked, aten.zeros_like(picked))
    number = counted.to(chances.dtype)
    if not reduction:
        return each, aten.zeros((size,), dtype=chances.dtype, device=chances.device)
    if self.dim() == 2:
        each, number = aten.sum(each, (1,)), aten.sum(number, (1,))
    return (each / number if reduction == 1 else each), number


# ---- functions that are no rows


def _like(name: str) -> Callable[..., Any]:
    def like(input: Any, *args: Any, **options: Any) -> Tensor:
        return batched(getattr(aten, name)(input._value, *args, **options), input._level)

    return like


for _name in ("zeros_like", "ones_like", "full_like", "empty_like"):
    FUNCTIONS[_name] = _like(_name)


def derive() -> None:
    """Give the rules that follow from the rows themselves, where none is written."""
    for op in OPS.values():
        if op.body is not None or op.name in RULES or op.name in _APART:
            continue
        if isinstance(op.infer, Pointwise):
            RULES[op.name] = pointwise
        elif op.name in NATIVE:
            RULES[op.name] = native
        elif any(name in _DIMS for name in _names(op)):
            RULES[op.name] = shifted
