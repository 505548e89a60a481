"""Owns launches over lists of tensors: one `aclnnForeach*` call writes to many of them.

Names, conditions and the lengths at which lists are split are those of torch_npu's adapter
(op-plugin 517f2e7d, `opapi/Foreach*KernelNpuOpApi.cpp` and `ForeachConstants.h`), dtypes those of
the operators' documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from aclnn_bindings import ScalarSpec, launch_many, lib

from ..._tensor import dtype as dt
from ..._tensor.geometry import Geometry
from ..._tensor.tensor import Tensor
from . import memory, runtime
from .binding import claimed, spec_of
from .runner import failed

_LENGTHS = {1: 48, 2: 24, 3: 16, 4: 12}  # members of a launch, by how many lists it is given
_MOST_GRADIENTS = 250  # of a launch that unscales
_LIMIT = 1024
# By a list of tensors, a number, and a list of numbers.
_BINARY = {
    "add": ("AddListV2", "AddScalarV2", "AddScalarList"),
    "sub": ("SubListV2", "SubScalarV2", "SubScalarList"),
    "mul": ("MulList", "MulScalarV2", "MulScalarList"),
    "div": ("DivList", "DivScalarV2", "DivScalarList"),
    "maximum": ("MaximumList", "MaximumScalarV2", "MaximumScalarList"),
    "minimum": ("MinimumList", "MinimumScalarV2", "MinimumScalarList"),
    "lerp": ("LerpList", "LerpScalar", ""),
}
_ALIASES = {"clamp_min": "maximum", "clamp_max": "minimum"}
_POINTWISE = {"addcdiv": "AddcdivScalarV2", "addcmul": "AddcmulScalarV2"}
_UNARY = {
    name: name.capitalize()
    for name in ("abs", "acos", "asin", "atan", "copy", "cos", "cosh", "erf", "erfc", "exp",
                 "expm1", "log", "log10", "log1p", "log2", "neg", "reciprocal", "sigmoid", "sign",
                 "sin", "sinh", "sqrt", "tan", "tanh")
}  # fmt: skip
_plans: dict[Any, tuple[Any, Any]] = {}


def write(
    name: str, targets: Sequence[Tensor], operands: Sequence[Any], options: Mapping[str, Any]
) -> bool:
    """Whether `_foreach_{name}` of the operands was written to `targets`, tensors of one npu.

    False, with nothing written, where no operator takes them: lists of unlike, strided, empty or
    overlapping tensors, dtypes that the operator's document does not name, other options.
    """
    call = _choose(name, operands, options)
    if call is None:
        return False
    operator, arguments = f"aclnnForeach{call[0]}", call[1]
    lists = [a for a in arguments if isinstance(a, list)]
    numbers = _numbers(targets[0], [a for a in arguments if not isinstance(a, list | Tensor)])
    if numbers is None or not _alike(targets, lists) or not _takes(operator, targets[0]):
        return False
    factors = [a for a in arguments if isinstance(a, Tensor)]
    if factors and not (call[0] == "MulScalar" and _multiplies(factors[0], targets)):
        return False
    places = [
        None if isinstance(a, list) else a if isinstance(a, Tensor) else numbers.pop(0)
        for a in arguments
    ]
    in_place = bool(lists) and all(a is b for a, b in zip(lists[0], targets, strict=True))
    length = _LENGTHS[len(lists) + (not in_place)]
    for at in range(0, len(targets), length):
        part = slice(at, at + length)
        values = [
            number[part] if isinstance(number, tuple) else a[part] if number is None else number
            for a, number in zip(arguments, places, strict=True)
        ]
        _launch(operator, [*values, list(targets[part])])
    for target in targets:
        target._storage.value += 1
    return True


def write_norms(results: Sequence[Tensor], tensors: Sequence[Tensor], order: float) -> bool:
    """Whether the norm of each tensor was written to its result, which has one element.

    For orders 1 and 2, which every product takes.
    """
    operator = "aclnnForeachNorm"
    if order not in (1, 2) or not _alike(tensors, ()) or not _takes(operator, tensors[0]):
        return False
    for at in range(0, len(tensors), _LENGTHS[2]):
        part = slice(at, at + _LENGTHS[2])
        values = list(tensors[part]), ScalarSpec(float(order)), list(results[part])
        _launch(operator, values)
    return True


def unscale(grads: Sequence[Tensor], overflow: Tensor, factor: Tensor) -> bool:
    """Whether gradients were multiplied by `factor` in place, and `overflow`, which has one element
    of float32, became 1 where one was not finite."""
    operator = "aclnnForeachNonFiniteCheckAndUnscale"
    if not _alike(grads, ()) or not _takes(operator, grads[0]):
        return False
    for at in range(0, len(grads), _MOST_GRADIENTS):
        _launch(operator, (list(grads[at : at + _MOST_GRADIENTS]), overflow, factor))
    for grad in (*grads, overflow):
        grad._storage.value += 1
    return True


def _takes(operator: str, first: Tensor) -> bool:
    """Whether the install has the operator and its document names the dtype of its first list."""
    cann = runtime.cann()
    if not cann.has_op(operator):
        return False
    return first._geom.dtype.acl in claimed(operator, cann.op(operator).params[0])


def _choose(
    name: str, operands: Sequence[Any], options: Mapping[str, Any]
) -> tuple[str, list[Any]] | None:
    """The operator and its arguments before the results: lists of tensors, numbers."""
    operands = [list(v) if isinstance(v, list | tuple) else v for v in operands]
    if name == "zero":
        return "ZeroInplace", []
    if name in _UNARY:
        return (_UNARY[name], operands) if len(operands) == 1 and not options else None
    if name in _POINTWISE:
        value = options.get("value", 1)
        if len(operands) == 4:
            value = operands.pop()
        plain = len(operands) == 3 and not isinstance(value, list) and options.keys() <= {"value"}
        return (_POINTWISE[name], [*operands, value]) if plain else None
    forms, last = _BINARY.get(_ALIASES.get(name, name)), operands[-1]
    if forms is None or len(operands) != 2 + (name == "lerp"):
        return None
    by_tensors = isinstance(last, list) and bool(last) and isinstance(last[0], Tensor)
    form = forms[0 if by_tensors else 2 if isinstance(last, list) else 1]
    if name == "mul" and isinstance(last, Tensor):
        form = "MulScalar"
    scaled = name in ("add", "sub") and by_tensors
    if not form or options.keys() - {"alpha"} or (options.get("alpha", 1) != 1 and not scaled):
        return None
    alpha = [options.get("alpha", 1)] if scaled else []
    return form, [*operands, *alpha] if by_tensors else _with_numbers(operands)


def _with_numbers(operands: list[Any]) -> list[Any]:
    """The last operand, numbers for each member, as a tuple: a list is one of tensors."""
    last = operands[-1]
    return [*operands[:-1], tuple(last) if isinstance(last, list) else last]


def _multiplies(factor: Tensor, targets: Sequence[Tensor]) -> bool:
    """Whether the operator multiplies these by a number that is on the device."""
    geom, like = factor._geom, targets[0]._geom
    if (
        geom.shape
        or geom.device is not like.device
        or any(g is not dt.float32 for g in (geom.dtype, like.dtype))
    ):
        return False
    return all(t._storage is not factor._storage for t in targets)


def _numbers(like: Tensor, values: list[Any]) -> list[Any] | None:
    """Scalars for tensors like this: DOUBLE beside floating tensors, FLOAT in lists (what their
    documents name), whole numbers beside whole ones; None where a value is none of these."""
    floating = like._geom.dtype.is_floating_point
    specs: list[Any] = []
    for value in values:
        members = value if isinstance(value, tuple) else (value,)
        if any(m.__class__ not in ((int, float) if floating else (int,)) for m in members):
            return None
        kind = "FLOAT" if floating and members is value else None
        scalars = tuple(ScalarSpec(float(m) if floating else m, kind) for m in members)
        specs.append(scalars if members is value else scalars[0])
    return specs


def _alike(targets: Sequence[Tensor], lists: Sequence[Sequence[Tensor]]) -> bool:
    """Whether all are dense and of one dtype and device, and each member has its target's shape
    and no memory that another member's target writes to."""
    geoms = tuple([t._geom for t in targets])
    owners = [id(t._storage) for t in targets]
    apart = set(owners)
    if len(apart) < len(owners) or not _dense(geoms, geoms):
        return False
    for members in lists:
        if len(members) != len(owners) or not all(isinstance(t, Tensor) for t in members):
            return False
        others = tuple([t._geom for t in members])
        if others is not geoms and not _dense(others, geoms):
            return False
        storages = [id(t._storage) for t in members]
        if storages == owners:
            if others != geoms:
                return False
        elif not apart.isdisjoint(storages):
            return False
    return True


@lru_cache(maxsize=_LIMIT)
def _dense(geoms: tuple[Geometry, ...], targets: tuple[Geometry, ...]) -> bool:
    """Whether geometries are dense, not empty, of one dtype and device, and shaped as targets."""
    first = targets[0]
    return all(
        g.contiguous and g.numel and g.dtype is first.dtype and g.device is first.device
        and g.shape == target.shape
        for g, target in zip(geoms, targets, strict=True)
    )  # fmt: skip


def _launch(operator: str, arguments: Sequence[Any]) -> None:
    """One call; its plan is kept by geometries and made again for other numbers alone."""
    lists = [a if isinstance(a, list) else [a] for a in arguments if isinstance(a, list | Tensor)]
    numbers = [a for a in arguments if not isinstance(a, list | Tensor)]
    key = (operator, *(tuple([t._geom for t in members]) for members in lists))
    plan, known = _plans.get(key, (None, None))
    if plan is None or not plan.valid or known != numbers:
        scalars = {i: a for i, a in enumerate(arguments) if isinstance(a, ScalarSpec)}
        if plan is not None and plan.valid and len(scalars) == len(numbers):
            plan = plan.with_scalars(scalars)
        else:
            plan = runtime.cann().op(operator).plan(*map(_spec, arguments))
        if len(_plans) >= _LIMIT:
            _plans.clear()
        _plans[key] = plan, numbers
    index = memory.numbered(lists[0][0]._geom.device.index)
    stream = runtime.SHARED[index] or runtime.stream_address(index)
    blocks = [t._storage.memory for members in lists for t in members]
    if launch_many(plan.address, stream, (), lib.mt_session(), *blocks) is None:
        failed(plan, index)


def _spec(argument: Any) -> Any:
    if isinstance(argument, list):
        return tuple([spec_of(t._geom) for t in argument])
    return spec_of(argument._geom) if isinstance(argument, Tensor) else argument
