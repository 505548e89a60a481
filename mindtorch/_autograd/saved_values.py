"""Owns what a node shows of what it keeps, by torch's names: `_saved_self`, `_saved_dim`.

torch's derivatives decide what its nodes show; here a row's derivative and its arguments do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from .._tensor import dtype as dt
from .._tensor.geometry import Geometry
from ..ops.schema import ArgKind
from ..ops.spec import aten
from .formula import LISTS, TENSORS, Formula, formula
from .node import FREED, SavedTensor

PREFIX = "_saved_"
RAW_PREFIX = "_raw_saved_"
# What torch calls the arguments of the operator whose node a row's node is named after.
NAMES = {
    "AddmmBackward0": {"input": "mat1", "weight": "mat2"},
    "BmmBackward0": {"other": "mat2"},
    "LinalgVectorNormBackward0": {"x": "self"},
    "MmBackward0": {"other": "mat2", "input": "self", "weight": "mat2"},
}
# Nodes of products, and the matrices whose sizes they keep.
PRODUCTS = {"AddmmBackward0": ("mat1", "mat2"), "MmBackward0": ("self", "mat2")}
# Arguments and results of rows that torch's derivatives have no need of.
UNSHOWN = {
    "ExpandBackward0": ("size",),
    "MeanBackward0": ("dim", "keepdim"),
    "PowBackward0": ("result",),
    "SqueezeBackward0": ("dim",),
    "ViewBackward0": ("size",),
}
UNSAVED = ("dtype", "device", "half_to_float", "implicit", "memory_format")  # no derivative's


def saved_names(node: Any, raw: bool = False) -> dict[str, Callable[[], object]]:
    """What reads each value that `node` shows, by its name without the prefix.

    `raw`: the saved tensors themselves, which take hooks.
    """
    rule = formula(node.op)
    if node.op.name == "linear" and node.name() not in PRODUCTS:  # a view of the product
        *lead, last = node.outs[0].shape
        return {} if raw else {"self_sym_sizes": lambda: (prod(lead), last)}
    readers: dict[str, Callable[[], object]] = {}
    theirs = NAMES.get(node.name(), {})
    names = [theirs.get(a.name, a.name) for a in rule.op.schema.args]
    for place, read in enumerate(rule.saved):
        name = names[read[1]] if read[0] == "arg" else _result_name(rule, read[1])
        readers[name] = partial(_read_saved, node, place, read)
        value = (node.saved or {place: None})[place]
        if raw and (value is None or type(value) is tuple):
            readers[name] = partial(SavedTensor, node, place)
    if raw:
        partials = {n: r for n, r in readers.items() if isinstance(r, partial)}
        return {n: r for n, r in partials.items() if r.func is SavedTensor}
    for i in _shown_arguments(rule):
        readers.setdefault(names[i], partial(_plain, node.args[i]))
    for i in {i for target in rule.targets for how, i in target.reads if how == "geom"}:
        if isinstance(node.args[i], Geometry):
            readers[f"{names[i]}_sym_sizes"] = partial(tuple, node.args[i].shape)
    if node.name() in PRODUCTS:
        readers |= _of_product(node, rule, names)
    for name in UNSHOWN.get(node.name(), ()):
        readers.pop(name, None)
    return readers


def _of_product(node: Any, rule: Formula, names: Sequence[str]) -> dict[str, Callable[[], object]]:
    """Sizes of both matrices, strides of those with a gradient, and the numbers of addmm."""
    readers: dict[str, Callable[[], object]] = {}
    for i, name in enumerate(names):
        if name not in PRODUCTS[node.name()]:
            continue
        geom, sloped = node.args[i], node.edges[rule.positions.index(i)] is not None
        turn = -1 if node.op.name == "linear" and name == "mat2" else 1
        readers[f"{name}_sym_sizes"] = partial(tuple, geom.shape[::turn])
        readers[f"{name}_sym_strides"] = partial(tuple, geom.strides[::turn] if sloped else ())
    if "mat1" in PRODUCTS[node.name()]:
        numbers = dict(zip(names, node.args, strict=True))
        readers |= {n: partial(_plain, numbers.get(n, 1)) for n in ("alpha", "beta")}
    return readers


def _result_name(rule: Formula, number: int) -> str:
    returns = rule.op.schema.returns
    return "result" if len(returns) == 1 else returns[number].name or f"result{number}"


def _shown_arguments(rule: Formula) -> list[int]:
    """The arguments that are no tensors and of which a node knows the value."""
    tensors = (*TENSORS, *LISTS, ArgKind.SCALAR)
    return [
        i for i, a in enumerate(rule.op.schema.args)
        if a.name not in UNSAVED and (a.kind not in tensors or i in rule.scalars)
    ]  # fmt: skip


def _plain(value: object) -> object:
    """An argument as torch's nodes show it: an int is unsigned, of 64 bits."""
    if type(value) is int:
        return value % (1 << 64)
    if isinstance(value, list | tuple):
        return tuple(_plain(v) for v in value)
    return value


def _read_saved(node: Any, place: int, read: tuple[str, int]) -> object:
    """A saved tensor, a list of them or the number in its place; RuntimeError if freed."""
    if node.saved is None:
        raise RuntimeError(FREED)
    value = node.saved[place]
    if isinstance(value, list):
        return tuple(None if k is None else node.unpack(k) for k in value)
    if type(value) is not tuple:
        return _number(value) if read[0] == "arg" and _is_other(node, read[1]) else value
    tensor = node.unpack(value)
    if read[0] == "result" and tensor.dtype.category < dt.FLOAT:
        return tensor.detach()
    transpose = node.op.name == "linear" and node.op.schema.args[read[1]].name == "weight"
    return tensor.t() if transpose else tensor


def _is_other(node: Any, i: int) -> bool:
    """Whether torch makes a tensor of a number here: `x * 2`."""
    name: str = node.op.schema.args[i].name
    return name == "other"


def _number(value: complex | None) -> object:
    if value is None:
        return None
    kinds = {bool: dt.bool, int: dt.int64, complex: dt.complex128}
    return aten.full((), value, dtype=kinds.get(type(value), dt.float64))
