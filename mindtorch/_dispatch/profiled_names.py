"""Owns the names of torch's operators that profilers see in a row's call, the outer ones first.

A call is a tree, `linear(t(transpose(as_strided)) addmm)`: torch's own kernels call more operators
than rows do, and allocate by operators. Refuses times of those: a call's is shared among its parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter
from typing import Any, NamedTuple

from .._autograd.grad_mode import LOCAL
from .._tensor.dtype import bool as BOOL, complex128, float64, int64
from .._tensor.subclass import DOOR
from .._tensor.tensor import Tensor
from ..ops.aten_overloads import operator_name
from ..ops.spec import Op

_VIEWS = ("expand", "permute", "select", "slice", "squeeze", "transpose", "unsqueeze")
_CAST = "to(_to_copy(empty_strided copy_))"  # a Python number becomes a tensor of the result's type
_EMPTY_LIKE = "empty_like(empty_strided)"
_LOOKUP = "index_select(empty select(as_strided) select(as_strided))"
# Rows whose call is several operators in torch.
_TREES = {
    **{name: f"{name}(as_strided)" for name in _VIEWS},
    "_convolution_weight_grad": "convolution_backward",
    "_log_softmax": "log_softmax(_log_softmax)",
    "_softmax": "softmax(_softmax)",
    "_to_copy": _CAST,
    "abs": "abs(empty abs)",
    "all": "all(as_strided fill_)",
    "any": "any(as_strided fill_)",
    "arange": "arange(empty arange(resize_))",
    "clamp": "clamp(to)",
    "cumprod": "cumprod(to)",
    "cumsum": "cumsum(to)",
    "eye": "eye(empty eye(resize_ zero_))",
    "flip": f"flip({_EMPTY_LIKE} as_strided)",
    "full": "full(empty fill_)",
    "gather": "gather(to)",
    "index": "index(as_strided reshape(view))",
    "index_select": _LOOKUP,
    "isnan": "isnan(ne)",
    "linspace": "linspace(empty linspace)",
    "_reshape_copy": "clone(empty_like(empty) copy_) _unsafe_view",
    "linalg_vector_norm": "linalg_vector_norm(as_strided)",
    "masked_fill": "masked_fill(clone(empty_like(empty) copy_) masked_fill_)",
    "nll_loss_backward": "nll_loss_backward(zero_)",
    "max_pool2d_with_indices": "max_pool2d(max_pool2d_with_indices)",
    "native_group_norm": "group_norm(native_group_norm(empty empty empty))",
    "native_layer_norm": "layer_norm(native_layer_norm(empty empty empty view view))",
    "nll_loss_forward": "nll_loss_nd(nll_loss(nll_loss_forward))",
    "nonzero": "nonzero(empty as_strided_)",
    "ones": "ones(empty fill_)",
    "pow": "pow(result_type to)",
    "relu": "relu(clamp_min)",
    "t": "t(transpose(as_strided))",
    "where": "where(empty)",
    "zeros": "zeros(empty zero_)",
    # Functions that are no rows.
    "detach": "detach(=detach)",
    "item": "item(_local_scalar_dense)",
    "rand": "rand(empty uniform_)",
    "randint": "randint(empty random_)",
    "randn": "randn(empty normal_)",
    "randperm": "randperm(empty randperm(scalar_tensor resize_ resize_))",
    "tensor": "empty to lift_fresh detach_(=detach_)",
}
# Functions that are no rows, by the name under which they are called.
FUNCTIONS = frozenset(("empty", "rand", "randint", "randn", "randperm", "tensor"))
_ALONE = {"full_like": "fill_", "ones_like": "fill_", "rand_like": "uniform_",
          "randn_like": "normal_", "zeros_like": "zero_"}  # fmt: skip
LIKES = frozenset((*_ALONE, "empty_like"))
# What their rows bring already.
_BROUGHT = frozenset((
    "conv1d", "conv2d", "conv3d", "batch_norm", "log_softmax", "softmax", "to", "max_pool2d",
    "group_norm", "layer_norm", "nll_loss_nd", "relu", "stack", *_TREES,
))  # fmt: skip


class Tree(NamedTuple):
    """One operator's name, without `aten::`, and the operators that it calls."""

    name: str
    parts: tuple[Tree, ...] = ()


@cache
def _parsed(text: str) -> tuple[Tree, ...]:
    """The operators of a text, each with those in brackets behind it."""
    levels: list[list[Tree]] = [[]]
    for token in re.findall(r"[=\w]+|[()]", text):
        if token == "(":
            levels.append([])
        elif token == ")":
            parts = tuple(levels.pop())
            levels[-1][-1] = Tree(levels[-1][-1].name, parts)
        else:
            levels[-1].append(Tree(token))
    return tuple(levels[0])


def note_call(
    notes: Sequence[Callable[..., None]], text: str, start: float, stop: float,
    arguments: Callable[[str], Sequence[Any]], result: object = None,
) -> None:  # fmt: skip
    """Tell profilers of a call's operators; memory of the result is of the last that allocates."""
    trees = _parsed(text)
    whole = Tree("", trees)
    if len(trees) == 1:
        _note(notes, trees[0], start, stop, arguments, result)
    else:
        _note_parts(notes, whole, start, stop, arguments, result)


def _note(
    notes: Sequence[Callable[..., None]], tree: Tree, start: float, stop: float,
    arguments: Callable[[str], Sequence[Any]], result: object,
) -> None:  # fmt: skip
    _note_parts(notes, tree, start, stop, arguments, result)
    name = tree.name[1:] if tree.name[0] == "=" else f"aten::{tree.name}"
    mine = None if _holder(tree) else result
    for note in notes:
        note(name, start, stop, arguments(tree.name), result=mine)


def _note_parts(
    notes: Sequence[Callable[..., None]], tree: Tree, start: float, stop: float,
    arguments: Callable[[str], Sequence[Any]], result: object,
) -> None:  # fmt: skip
    """Tell of an operator's parts: the first that allocates, or else the last, has the result."""
    share = (stop - start) / max(1, len(tree.parts))
    holder = _holder(tree)
    for at, part in enumerate(tree.parts):
        begin = start + at * share
        mine = result if part is holder else None
        _note(notes, part, begin + share / 20, begin + share * 0.95, arguments, mine)


# Operators that give no new memory to the call that they are part of.
_HELPERS = frozenset((
    "as_strided", "copy_", "detach_", "div_", "expand", "fill_", "lift_fresh", "normal_", "random_",
    "resize_", "reshape", "resolve_conj", "result_type", "select", "squeeze", "squeeze_", "t", "to",
    "transpose", "uniform_", "unsqueeze", "unsqueeze_", "view", "_unsafe_view", "zero_",
))  # fmt: skip


def _holder(tree: Tree) -> Tree | None:
    """The part that makes a call's result; None where the operator does itself."""
    makers = [part for part in tree.parts if part.name not in _HELPERS]
    empty = (part for part in makers if part.name.startswith(("empty", "clone")))
    return next(empty, makers[-1] if makers else None)


def profiled_function(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A call of a function that is no row, which profilers see."""
    profilers, LOCAL.profilers, start = LOCAL.profilers, (), perf_counter()
    try:
        result = function(*args, **kwargs)
    finally:
        stop, LOCAL.profilers = perf_counter(), profilers
    text = _TREES.get(name, name)
    if name in LIKES:
        parts = f"{_EMPTY_LIKE} {_ALONE[name]}" if name in _ALONE else "empty_strided"
        text = f"{name}({parts})"
    note_call(profilers, text, start, stop, lambda _: args, result)
    return result


def profiled_whole(op: Op, values: Sequence[Any]) -> Any:
    """A composite's result, of a call that profilers see around those of its rows.

    NotImplemented where they see none: inside that call, and for functions that are no operators
    of torch. A row of the operator's own name is seen itself.
    """
    if LOCAL.entered is op:
        LOCAL.entered = None
        return NotImplemented
    name = operator_name(op)
    if name is None or name in _BROUGHT or (name == "contiguous" and values[0].is_contiguous()):
        return NotImplemented
    seen: set[str] = set()
    key, profilers = f"aten::{name}", LOCAL.profilers
    before, LOCAL.entered, start = LOCAL.entered, op, perf_counter()
    LOCAL.profilers = (*profilers, lambda row, *_, **__: seen.add(row))
    try:
        return op.entry("aten")(*values)
    finally:
        stop, LOCAL.entered, LOCAL.profilers = perf_counter(), before, profilers
        for note in profilers if key not in seen else ():
            note(key, start, stop, values)


class _Shaped(NamedTuple):
    """What a profiler reads of a tensor that the call itself does not make."""

    shape: Sequence[int]


# How many arguments operators have that composites call with their first one.
_ARITY = {"as_strided": 4, "clamp_min": 2, "fill_": 2, "mean": 2, "resolve_conj": 1, "sum": 2,
          "t": 1, "transpose": 3}  # fmt: skip


def _arguments(op: Op, name: str, args: Sequence[Any]) -> Sequence[Any]:
    """The arguments of one of a call's operators, of which a profiler notes the shapes."""
    if op.base_name == "_linear_backward":
        return args[1:3]
    whole = name == op.base_name and not (name in ("sum", "mean") and args[1] is None)
    if not whole and name in _ARITY:
        first = args[1] if op.base_name == "linear" else args[0]
        return (first, *[None] * (_ARITY[name] - 1))
    if op.base_name != "linear" or whole:
        return args
    input, weight, bias = args
    transposed = _Shaped(weight.shape[::-1])
    return (bias, input, transposed, 1, 1) if name == "addmm" else (input, transposed)


def profiled_call(op: Op, args: Sequence[Any], run: Callable[[], Any], end: str = "") -> Any:
    """A row's result; `end` is that of the name of its in-place form."""
    profilers, LOCAL.profilers, start = LOCAL.profilers, (), perf_counter()
    result = None
    try:
        result = run()
        return result
    finally:
        stop, LOCAL.profilers = perf_counter(), profilers
        text = _text(op, args, result, end)
        created = None if end else result
        note_call(profilers, text, start, stop, lambda name: _arguments(op, name, args), created)


def _text(op: Op, args: Sequence[Any], result: Any, end: str) -> str:
    """The operators of a row's call."""
    name = op.base_name
    if end:
        casts = _casts(args, args[0]) if name in _ARITHMETIC else ""
        return f"{name}{end}({casts})"
    if name in _ARITHMETIC:
        of = result if name not in _COMPARED else next(a for a in args if isinstance(a, Tensor))
        return f"{name}({_casts(args, of)})"
    special = _SPECIAL.get(name)
    return special(args, result) if special is not None else _TREES.get(name, name)


_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
_ARITHMETIC = frozenset(("add", "sub", "mul", "div", "remainder", "fmod", *_COMPARED))
_KINDS = {bool: BOOL, int: int64, float: float64, complex: complex128}


def _casts(args: Sequence[Any], of: Any) -> str:
    """What becomes of the second operand where it is a Python number of another type."""
    if not isinstance(of, Tensor) or len(args) < 2:
        return ""
    kind = of.dtype
    casts = _CAST if _KINDS.get(type(args[1]), kind) is not kind else ""
    first = args[0]
    return f"{_CAST} {casts}" if isinstance(first, Tensor) and first.dtype is not kind else casts


def _product(left: Tensor, right: Tensor, transposed: bool = False) -> str:
    """Which operator torch's matmul calls, and that resolves the operands' conjugation."""
    if max(left.dim(), right.dim()) == 1:
        return "dot(empty fill_)"
    if min(left.dim(), right.dim()) == 1:
        return "mv(empty addmv_)"
    if right.dim() > 2:
        operand = "expand(as_strided) reshape(view)"
        return f"{operand} {operand} bmm(resolve_conj resolve_conj) _unsafe_view"
    plain = left.is_contiguous() + (right.is_contiguous() and not transposed)
    resolved = " ".join(["resolve_conj"] * (1 + plain))
    product = f"mm({resolved})"
    return product if left.dim() == 2 else f"reshape(view) {product} _unsafe_view"


def _linear(args: Sequence[Any], _: Any) -> str:
    input, weight, bias = args
    if bias is None or not (input.dim() == 2 or input.is_contiguous()):
        added = "" if bias is None else " add_"
        return f"linear(t(transpose(as_strided)) matmul({_product(input, weight, True)}){added})"
    fused = "addmm(expand(as_strided) copy_ resolve_conj resolve_conj)"
    view = "view" if input.dim() != 2 else ""
    return f"linear({view} t(transpose(as_strided)) {fused} {view})"


def _addmm(args: Sequence[Any], _: Any) -> str:
    expanded = "" if args[0].shape == (args[1].shape[0], args[2].shape[1]) else "expand(as_strided)"
    return f"addmm({expanded} copy_ {_product(args[1], args[2])[3:-1]})"


def _convolution(args: Sequence[Any], _: Any) -> str:
    """At times by oneDNN, as at::native's use_mkldnn decides for float32."""
    if LOCAL.task is not None:
        return "convolution"
    input, weight = args[:2]
    dims, groups = weight.dim() - 2, args[8] if len(args) > 8 else 1
    large = input.shape[0] > 1 or groups > 1 or input.numel() > 20480
    small = all(n <= 3 for n in weight.shape[2:])
    inner = "mkldnn_convolution(empty empty as_strided_ resize_)"
    if dims == 1:
        turn = "unsqueeze(as_strided)"
        inner = f"{turn} {turn} {inner} squeeze(as_strided)"
    elif dims == 2 and small and not large:
        inner = "_nnpack_available thnn_conv2d(_slow_conv2d_forward(empty view empty resize_))"
    return f"conv{dims}d(convolution(_convolution({inner})))"


def _reduced(name: str) -> Callable[[Sequence[Any], Any], str]:
    """A sum or a mean of it: without the dimensions that were reduced, a view of the result."""

    def text(args: Sequence[Any], result: Any) -> str:
        keepdim = isinstance(result, Tensor) and result.dim() == args[0].dim()
        sum = "sum(fill_)" if keepdim else "sum(as_strided fill_)"
        return sum if name == "sum" else f"mean({sum} div_({_CAST}))"

    return text


def _parts(outer: str, inner: str) -> Callable[[Sequence[Any], Any], str]:
    """A call with one part for each of its results."""
    return lambda _, result: f"{outer}({' '.join([inner] * len(result or ()))})"


def _batch_norm(args: Sequence[Any], _: Any) -> str:
    empties = " ".join(["empty"] * (6 if args[5] else 4))
    native = f"native_batch_norm(empty_like(empty) {empties})"
    return f"batch_norm(_batch_norm_impl_index(empty {native}))"


def _embedding(args: Sequence[Any], _: Any) -> str:
    places = args[1]
    return (
        f"embedding(reshape(view) {_LOOKUP} view)"
        if places.dim() != 1
        else (f"embedding({_LOOKUP})")
    )


def _stack(args: Sequence[Any], _: Any) -> str:
    if args[0][0].dim():
        return "stack(cat view)"
    return f"stack({' '.join(['unsqueeze(as_strided)'] * len(args[0]))} cat)"


def _clone(args: Sequence[Any], _: Any) -> str:
    ordered = len(args) > 1 and args[1] not in (None, "preserve")
    return f"clone({'empty_like(empty)' if ordered else 'empty_strided'} copy_)"


def _extreme(name: str) -> Callable[[Sequence[Any], Any], str]:
    turns = " ".join(["unsqueeze_(as_strided_)"] * 2 + ["squeeze_(as_strided_)"] * 2)
    return lambda _, result: f"{name}({turns if isinstance(result, tuple) else 'empty fill_'})"


_MEAN = f"mean(sum(as_strided fill_) div_({_CAST}))"
_SPECIAL: dict[str, Callable[[Sequence[Any], Any], str]] = {
    "_batch_norm_functional": _batch_norm,
    "_batch_norm_moving": _batch_norm,
    "_linear_backward": lambda args, _: " ".join(
        ["mm(resolve_conj resolve_conj)"] * sum(args[3][:2])
    ),
    "addmm": _addmm,
    "argmax": lambda args, _: f"argmax({'reshape(view)' if args[1] is None else ''} as_strided)",
    "baddbmm": lambda *_: "baddbmm(copy_ resolve_conj resolve_conj)",
    "bmm": lambda *_: "bmm(resolve_conj resolve_conj)",
    "clone": _clone,
    "convolution": _convolution,
    "embedding": _embedding,
    "linear": _linear,
    "matmul": lambda args, _: f"matmul({_product(*args[:2])})",
    "max": _extreme("max"),
    "mean": _reduced("mean"),
    "min": _extreme("min"),
    "mm": lambda args, _: _product(*args[:2]),
    "split": _parts("split", "narrow(slice(as_strided))"),
    "stack": _stack,
    "sum": _reduced("sum"),
    "unbind": _parts("unbind", "select(as_strided)"),
}


DOOR["profiled_function"] = profiled_function
