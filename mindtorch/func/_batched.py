"""Owns the tensor that stands for each element of a batch at once: what it shows, where calls go.

It shows the Geometry of one element; `_value` holds all of them, the batch first. A call of a row
reaches `_row_call`, which looks for a rule (`_rules`), looks at what the row says of one element,
and takes element after element where there is no rule. It has no memory: what reaches for it is
told by `Unbatched`, and vmap then calls the function once for each element.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from textwrap import indent
from types import FrameType
from typing import Any, NoReturn

from .._autograd.grad_mode import LOCAL
from .._compat.argument_errors import explained_here
from .._compat.missing_args import Missing, refuse_missing
from .._dispatch import plans, slow_batches
from .._functional.printing import TRANSFORMED
from .._tensor.geometry import Geometry, geometry
from .._tensor.subclass import plain
from .._tensor.tensor import Tensor
from ..ops.rules import DYNAMIC_NAMES, Dynamic, broadcast
from ..ops.spec import Op, aten

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
# Functions that are no rows, by the name that users call.
FUNCTIONS: dict[str, Rule] = {}


class Unbatched(AttributeError):
    """A function wants what a batch as a whole does not have: its memory, its history."""


class _NoMemory:
    """Stands where a storage would be; reading or writing it is Unbatched."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        raise Unbatched(f"a tensor under vmap has no storage of its own ({name})")

    def __setattr__(self, name: str, value: object) -> None:
        raise Unbatched(f"a tensor under vmap has no storage of its own ({name})")


_NOWHERE: Any = _NoMemory()
_NO_POINTER = "Cannot access data pointer of Tensor that doesn't have storage"
_OPS, _DISPATCH, _FUNC = (f"{__package__.partition('.')[0]}.{name}." for name in
                          ("ops", "_dispatch", "func"))  # fmt: skip
_NO_STORAGE = "Cannot access storage of BatchedTensorImpl"
_WHOLE = {
    "_allclose": "vmap over torch.allclose isn't supported yet. Please file an issue at"
    " https://github.com/pytorch/pytorch/issues if you need this feature.",
    "_equal": "Batching rule not implemented for aten::equal. We could not generate a fallback.",
}


_EITHER = (
    "vmap: It looks like you're either (1) calling .item() on a Tensor or (2) attempting to use a"
    " Tensor in some data-dependent control flow or (3) encountering this error in PyTorch"
    " internals. For (1): we don't support vmap over calling .item() on a Tensor, please try to"
    " rewrite what you're doing with other operations. For (2): we don't support data-dependent"
    " control flow in vmap yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
    " For (3): please file an issue."
)


def _number_error(text: str) -> Exception:
    """The error for a program that asks for a number; ops made of ops go element by element."""
    asker = sys._getframe(2)
    if not str(asker.f_globals.get("__name__", "")).startswith(_OPS):
        # Inside of what is differentiated torch no longer knows who asks.
        inner = bool(LOCAL.transforms) and not isinstance(LOCAL.transforms[-1], int)
        return RuntimeError(_EITHER if inner and text.startswith("vmap") else text)
    name = asker.f_code.co_name
    if name == "gaussian_nll_loss":  # torch has it in Python
        return RuntimeError(text)
    return RuntimeError(_WHOLE[name]) if name in _WHOLE else Unbatched(text)


_ESCAPED = (
    "Either your tensor may have escaped from inside a function being vmapped and this is a user"
    " error (see https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal"
    " functorch error in `gen_vmap_plumbing` Please file an issue if it looks like the latter"
)


class BatchedTensor(Tensor):
    """One element of a batch, for all of them; `_value` [batch, *shape], at a level of vmap."""

    _value: Tensor
    _level: int
    _source: tuple[Tensor, int]  # what vmap was given, where the batch is not in front

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        name = getattr(func, "__name__", "")
        if name not in FUNCTIONS:
            raise Unbatched(f"{name} has no form for a whole batch")
        return FUNCTIONS[name](*args, **(kwargs or {}))

    @classmethod
    def _row_call(cls, op: Op, form: str, raw: Sequence[Any]) -> Any:
        if Missing in map(type, raw):
            if error := explained_here():
                raise error
            refuse_missing(op, tuple(raw))
        return call_inplace(op, raw) if form in ("inplace", "augmented") else call(op, raw)

    # Where gradients go is asked of the whole batch, by those that know of it.
    @property
    def _fn(self) -> Any:
        if self._value._fn is not None:
            raise Unbatched("a tensor under vmap has no history of its own")
        return None

    @_fn.setter
    def _fn(self, value: object) -> None:
        if value is not None:
            raise Unbatched("a tensor under vmap has no history of its own")

    def __getattr__(self, name: str) -> Any:
        if name == "_fn":
            raise Unbatched("a tensor under vmap has no history of its own")
        if name == "_array":
            raise Unbatched("a tensor under vmap has no values of its own")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def requires_grad(self) -> bool:
        return bool(self._value.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        pass  # that of the whole batch stays, as in torch

    def detach(self) -> BatchedTensor:
        return batched(self._value.detach(), self._level)

    @property
    def data(self) -> NoReturn:
        raise RuntimeError("accessing `data` under vmap transform is not allowed")

    def untyped_storage(self) -> NoReturn:
        raise NotImplementedError(_NO_STORAGE)

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise NotImplementedError(_NO_STORAGE)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec) if self.dim() else format(self.item(), spec)

    def new_empty_strided(
        self, *layout: Any, dtype: Any = None, device: Any = None, **_: Any
    ) -> Tensor:
        one: Tensor = aten.empty_strided(
            *layout, dtype=dtype or self.dtype, device=device or self.device
        )
        return self._each_new(one)

    def _each_new(self, one: Tensor) -> Tensor:
        """A tensor of the same memory layout for each element of the batch."""
        size, stride = self._value.shape[0], max(one._geom.extent, 1)
        value = self._value.new_empty_strided(
            (size, *one.shape), (stride, *one.stride()), dtype=one.dtype, device=str(one.device)
        )
        value.copy_(one)
        return batched(value, self._level)

    def __bool__(self) -> bool:
        raise _number_error(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control"
            " flow. We don't support that yet, please file an issue at"
            " https://github.com/pytorch/pytorch/issues ."
        )

    def item(self) -> Any:
        raise _number_error(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over"
            " calling .item() on a Tensor, please try to rewrite what you're doing with other"
            " operations. If error is occurring somewhere inside PyTorch internals, please file a"
            " bug report."
        )

    __int__ = __float__ = __complex__ = __index__ = item

    def tolist(self) -> Any:
        raise _number_error(_NO_POINTER)

    def numpy(self, *more: object, force: bool = False) -> Any:
        raise _number_error(_NO_POINTER)

    __array__ = numpy

    def data_ptr(self) -> int:
        raise _number_error(_NO_POINTER)

    def __repr__(self, *, tensor_contents: object = None) -> str:
        if LOCAL.derivatives:
            return TRANSFORMED[0](self)
        value, dim = vars(self).get("_source", (self._value, 0))
        return wrapped_text("Batched", printed_level(self._level), repr(value), dim)

    __hash__ = Tensor.__hash__


def printed_level(level: int) -> int:
    """The number of a level of vmap among all transforms that run."""
    return LOCAL.transforms.index(level) + 1 if level in LOCAL.transforms else level


def wrapped_text(kind: str, level: int, value: str, dim: int = 0) -> str:
    """How torch shows a tensor that stands for `value` inside of a transform."""
    where = f" bdim={dim}," if kind == "Batched" else ""
    return f"{kind}Tensor(lvl={level},{where} value=\n{indent(value, '    ')}\n)"


def _new(name: str) -> Callable[..., Tensor]:
    plain = getattr(Tensor, name)

    def new(self: BatchedTensor, *args: Any, **options: Any) -> Tensor:
        return self._each_new(plain(self, *args, **options))

    new.__name__ = name
    return new


for _name in ("new_empty", "new_full", "new_ones", "new_zeros"):
    setattr(BatchedTensor, _name, _new(_name))


def batched(value: Tensor, level: int) -> BatchedTensor:
    """`value` [batch, *shape] as one element of it."""
    tensor: BatchedTensor = object.__new__(BatchedTensor)
    whole = value._geom
    tensor._geom = geometry(
        whole.shape[1:], whole.strides[1:], whole.offset, whole.dtype, whole.device
    )
    tensor._storage = _NOWHERE
    tensor._value, tensor._level = value, level
    tensor._nr, tensor._base = 0, None
    return tensor


def ordered(value: Tensor, level: int) -> BatchedTensor:
    """`batched`, below the levels that `value` [batch, *shape] has: the highest is outside."""
    if isinstance(value, BatchedTensor) and value._level > level:
        return batched(ordered(value._value.transpose(0, 1), level), value._level)
    return batched(value, level)


def lifted(tensor: Tensor, levels: Sequence[tuple[int, int]]) -> Tensor:
    """The tensor batched at every level (number, size), outermost first; by expansion."""
    if not levels:
        return tensor
    number, size = levels[-1]
    if isinstance(tensor, BatchedTensor) and tensor._level == number:
        return batched(lifted(tensor._value, levels[:-1]), number)
    inner = lifted(tensor, levels[:-1])
    return batched(inner.expand(size, *inner.shape), number)


def memory_of(values: Sequence[Any]) -> frozenset[int]:
    """The memory of tensors and of the whole of batches, by id."""
    wholes = list(values)
    for at, value in enumerate(wholes):
        while isinstance(value, BatchedTensor):
            wholes[at] = value = value._value
    return frozenset(id(v._storage) for v in wholes if isinstance(v, Tensor))


def innermost(values: Sequence[Any]) -> int:
    """The highest level of the tensors among arguments, those in lists too; 0 without one."""
    level = 0
    for value in values:
        if isinstance(value, BatchedTensor):
            level = max(level, value._level)
        elif isinstance(value, tuple | list):
            level = max(level, innermost(value))
    return level


def at(value: object, level: int) -> bool:
    """Whether a value is batched at the level."""
    return isinstance(value, BatchedTensor) and value._level == level


def sizes(values: Sequence[Any], level: int) -> int:
    """The batch of the tensors that are batched at the level."""
    for value in values:
        if isinstance(value, BatchedTensor) and value._level == level:
            return int(value._value.shape[0])
        if isinstance(value, tuple | list) and (size := sizes(value, level)) >= 0:
            return size
    return -1


def call(op: Op, raw: Sequence[Any]) -> Any:
    """A row's call that makes new results."""
    raw = _listed(op, raw)
    level = innermost(raw)
    if level > len(LOCAL.levels):
        raise RuntimeError(_ESCAPED)
    size = sizes(raw, level)
    if op.base_name in slow_batches.ROWS:
        slow_batches.warn_of_loop(op.base_name)
    expected = _expected(op, raw)
    rule = RULES.get(op.name)
    if rule is not None:
        result = rule(op, level, size, *raw)
        if result is not None and _fits(result, expected, size):
            return _wrapped(result, level)
    return _each(op, raw, level, size, expected)


def _listed(op: Op, raw: Sequence[Any]) -> Sequence[Any]:
    """The arguments with lists of ints where the schema takes one int for them."""
    return [
        (value,) * (arg.size or 1) if value.__class__ is int and arg.size is not None else value
        for value, arg in zip(raw, op.schema.args, strict=True)
    ]


def _shapeless(name: str) -> str:
    more = (
        "Please file an issue at https://github.com/pytorch/pytorch/issues if you need this"
        " feature."
    )
    if name == "masked_select":
        return (
            "Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support"
            f" this because for each batch this would return a differently shaped Tensor. {more}"
        )
    return (
        "We do not support batching operators that can output dynamic shape. Attempted to vmap over"
        f" aten::{DYNAMIC_NAMES.get(name, name)}. {more}"
    )


def _expected(op: Op, raw: Sequence[Any]) -> tuple[Any, ...] | None:
    """What the row's rule says of one element; None where it has to be asked with arguments."""
    try:
        outs = plans.infer(op, tuple(_geometry(value) for value in raw))
    except (AttributeError, TypeError, IndexError, ValueError, RuntimeError) as error:
        if str(error).startswith("Dimension out of range"):
            raise
        return None  # the call itself converts its arguments, or says what is wrong with them
    if any(isinstance(o, Dynamic) for o in outs):
        if op.base_name in slow_batches.ROWS:
            return None
        raise RuntimeError(f"vmap: {_shapeless(op.base_name)}")
    return outs


def _geometry(value: Any) -> Any:
    if isinstance(value, Tensor):
        return plain(value._geom)
    return tuple(map(_geometry, value)) if isinstance(value, tuple | list) else value


def _fits(result: Any, expected: tuple[Any, ...] | None, size: int) -> bool:
    """Whether a rule's result has the shapes and dtypes that the row says."""
    if expected is None:
        return False
    outs = result if isinstance(result, tuple | list) else (result,)
    return len(outs) == len(expected) and all(
        isinstance(g, Geometry)
        and tuple(o.shape) == (size, *g.shape)
        and o.dtype is g.dtype
        for o, g in zip(outs, expected, strict=True)
    )  # fmt: skip


def _wrapped(result: Any, level: int) -> Any:
    if isinstance(result, Tensor):
        return batched(result, level)
    values = [batched(r, level) for r in result]
    return type(result)(values)


def element_of(value: Any, level: int, index: int) -> Any:
    """An argument for one element of the batch."""
    if isinstance(value, BatchedTensor) and value._level == level:
        return aten.select(value._value, 0, index)
    if isinstance(value, tuple | list) and innermost(value):
        return tuple(element_of(v, level, index) for v in value)
    return value


def _each(
    op: Op, raw: Sequence[Any], level: int, size: int, expected: tuple[Any, ...] | None
) -> Any:
    """The call once for each element of the batch."""
    entry = op.entry("aten")
    if not size:
        if expected is None:
            raise Unbatched(f"{op.name} of an empty batch")
        empty = [aten.empty((0, *g.shape), dtype=g.dtype, device=g.device) for g in expected]
        return _wrapped(empty[0] if len(empty) == 1 else tuple(empty), level)
    rows = [entry(*(element_of(v, level, i) for v in raw)) for i in range(size)]
    if isinstance(rows[0], Tensor):
        return batched(aten.stack(rows), level)
    if not isinstance(rows[0], tuple | list):
        raise Unbatched(f"{op.name} gives what is no tensor")
    columns = [batched(aten.stack(list(column)), level) for column in zip(*rows, strict=True)]
    first = rows[0]
    return first._make(columns) if hasattr(first, "_make") else type(first)(columns)


def _within_op() -> bool:
    """Whether the call at hand is one of an op that is made of ops."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        place = str(frame.f_globals.get("__name__", ""))
        if not place.startswith((_DISPATCH, _FUNC)) and not frame.f_code.co_filename.startswith(
            "<"
        ):
            return place.startswith(_OPS)
        frame = frame.f_back
    return False


# How torch refuses a row that would write batches to a tensor without one.
_ARITHMETIC = frozenset((
    "clamp_max", "clamp_min", "copy", "div", "logical_and", "logical_or", "logical_xor",
    "masked_fill", "mul", "sub",
))  # fmt: skip
_BROADCAST = frozenset((
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "copysign", "gcd", "lcm",
))  # fmt: skip
_WITH_RULES = frozenset(("fill", "index_add", "index_fill", "index_put", "scatter_add"))


def _refuse_target(op: Op, raw: Sequence[Any], level: int) -> NoReturn:
    """RuntimeError in torch's words for a row that would write batches to what has none.

    Unbatched where an op that is made of ops writes to what it made: torch has a rule for it.
    """
    if _within_op():
        raise Unbatched(f"{op.name} writes a batch to what has none")
    target, name, where = raw[0], f"{op.base_name}_", "in a vmap"
    if op.base_name in _BROADCAST:
        shape = [sizes(raw, level), *broadcast(target.shape, raw[1].shape)]
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape {shape}"
        )
    if op.base_name in _ARITHMETIC:
        name = "inplace arithmetic"
    elif op.base_name not in _WITH_RULES:
        name, where = f"aten::{name}", f"at level {level}"
    raise RuntimeError(
        f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor"
        " `other` in extra_args that has more elements than `self`. This happened due to"
        f" `other` being vmapped over but `self` not being vmapped over {where}. Please try to"
        f" use out-of-place operators instead of {name}. If said operator is being called"
        " inside the PyTorch framework, please file a bug report instead."
    )


def call_inplace(op: Op, raw: Sequence[Any]) -> Tensor:
    """A row's call that writes to its first argument, a view of its batch."""
    target: Tensor = raw[0]
    level = innermost(raw)
    if not at(target, level):
        _refuse_target(op, raw, level)
    assert isinstance(target, BatchedTensor)
    LOCAL.batch_written |= not LOCAL.batch_memory.isdisjoint(memory_of([target]))
    if LOCAL.grad and target._value.requires_grad:  # the gradient is of what is there before
        raw = (batched(target._value.clone(), level), *raw[1:])
    result = call(op, raw)
    value = (
        lifted(result, [(level, int(target._value.shape[0]))]) if not at(result, level) else result
    )
    assert isinstance(value, BatchedTensor)
    target._value.copy_(value._value)
    return target
