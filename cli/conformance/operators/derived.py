"""Owns operators whose formula a torch row already states, by its `call(…)`; writes none down.

The row's samples become the operator's, its arguments go to the header's places as the row says,
and its CPU reference in float64 judges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

import mindtorch as torch
from aclnn_bindings.call.specs import TensorSpec
from aclnn_bindings.install.products import product_of, support
from aclnn_bindings.interface.signature import Kind, OpSignature
from mindtorch import Tensor
from mindtorch._backends.npu.binding import Binder, LaunchBinding
from mindtorch._dispatch.bind import normalise
from mindtorch._tensor.geometry import contiguous
from mindtorch.ops import OPS, Op
from mindtorch.ops.fields import AclnnCall
from mindtorch.ops.samples import Arg, Sample

from ...judge.classes import Requirement
from ...judge.precision import numpy_dtype
from ...spec.declaration import Declaration
from ..cases.claims import Claims, claims
from ..cases.design import attribute_calls
from ..cases.recipe import Recipe, Slot
from ..cases.shapes import NotApplicableError
from ..cases.spaces.along import PRODUCTS
from ..run.reference import Golden, golden as of_row
from ..run.rows import TorchRow
from ..run.subject import Law
from ..run.tensors import dtype_of
from .laws import LAWS
from .placing import ResultSlot

_INPLACE = "aclnnInplace"
_META = torch.device("meta")


class DerivedOperator:
    """One ACLNN operator as a torch row calls it; `inplace`: as the row's in-place form does."""

    differentiable = False
    declaration: Declaration | None = None
    draws = None
    open_results = steps = False
    forms: tuple[str, ...] = ("out",)

    def __init__(self, signature: OpSignature, op: Op, inplace: bool) -> None:
        self.signature, self.op, self.inplace = signature, op, inplace
        self._recorded: list[Sample] | None = None
        self.name, self.tolerance, self.family = signature.name, op.testing.tolerance, op.family
        self.shares_row = op.name
        self.calls: tuple[str, ...] = (self.name,)
        self.row, self.specials = TorchRow(op), True
        self.fixed_layout = self.row.fixed_layout
        # A product of a thousand draws leaves every range, and its order decides how.
        self.fixed_shape = self.row.fixed_shape or op.name in PRODUCTS
        self.elsewhere = False
        # Where a row calls it to select or to count, it may have few results by nature (sign).
        self.sparse = any(o.testing.tolerance == "exact" for o in _callers(_base(self.name)))

    @cached_property
    def _samples(self) -> list[Sample]:
        by_frame: dict[str, Sample] = {}
        for sample in [*self.row.samples(), *attribute_calls(self.op)]:
            near = _near(sample)
            if not sample.error and self._applies(near):
                by_frame.setdefault(repr(near), near)
        return list(by_frame.values())

    def samples(self) -> list[Sample]:
        """The row's samples for which it calls this operator, or those of a recording."""
        return self._samples if self._recorded is None else self._recorded

    def with_samples(self, samples: list[Sample]) -> DerivedOperator:
        """This operator on the launches of a recording."""
        self._recorded = samples
        return self

    def _applies(self, sample: Sample) -> bool:
        args, kwargs = sample.map(lambda a: Slot(a, np.empty(a.shape, numpy_dtype(a.dtype))))
        recipe = Recipe(args, kwargs, [], False)
        try:
            return self._binding(recipe, None).bound.name == self.name
        except Exception:
            return False

    def unconditional(self) -> DerivedOperator:
        """The operator as the row calls it, also with arguments for which it would call another."""
        base = _base(self.name) if self.inplace else self.name
        calls = tuple(replace(c, when=None) for c in self.op.kernels.aclnn if c.name == base)
        return DerivedOperator(self.signature, _calling(self.op, calls), self.inplace)

    def asked(self, sample: Sample) -> dict[str, Any] | None:
        """What each header parameter would get for a sample, tensors as TensorSpecs; None where
        the row would call another operator."""
        args, kwargs = sample.map(lambda a: Slot(a, np.empty(a.shape, numpy_dtype(a.dtype))))
        binding = self._binding(Recipe(args, kwargs, [], False), None)
        if binding.bound.name != self.name:
            return None
        names = [p.name for p in binding.bound.params]
        return dict(zip(names, binding.arguments, strict=True))

    def requirement(self, dtype: str) -> Requirement:
        return self.row.requirement(dtype)

    def laws(self) -> Mapping[str, Law]:
        return LAWS

    def format(self, param: str) -> str:  # noqa: ARG002 - every format goes by rank
        return ""

    def layout(self, param: str) -> str:  # noqa: ARG002 - every result lies as the case says
        return ""

    def claims(self, declarations: Any, soc: str) -> Claims:
        base = _base(self.name) if self.inplace else self.name
        call = next(c for c in self.op.kernels.aclnn if c.name == base)
        call_here = AclnnCall(self.name, call.args) if self.inplace else call
        documented = support(self.name, product_of(soc))
        self.elsewhere = documented is not None and documented.on(product_of(soc)) is False
        return claims(_calling(self.op, (call_here,)), declarations, soc)

    def golden(self, recipe: Recipe, need: Requirement) -> Golden:
        """The row's reference."""
        return of_row(self.op, recipe, need, "inplace" if self.inplace else "functional")

    def settle(self, golden: Golden, got: Sequence[Any]) -> Golden:
        """Results in another integer dtype than the row's, or in float32 where the row asks for it
        in place of halves: compare there."""
        native = [
            n.astype(g.dtype) if n.dtype.kind in "iub"
            else v.astype(g.dtype) if n.dtype.itemsize == 2 and g.dtype == np.float32
            else n
            for n, v, g in zip(golden.native, golden.values, got, strict=True)
        ]  # fmt: skip
        return Golden(native, golden.values, golden.scale)

    def values(self, recipe: Recipe, golden: Golden) -> dict[str, Any]:
        """What each header parameter gets: a Slot, a list of them, a ResultSlot, a plain value."""
        binding = self._binding(recipe, golden.native)
        if binding.bound.name != self.name:
            raise NotApplicableError(f"the row calls {binding.bound.name} for these arguments")
        args = _normal(self.op, *recipe.fill(lambda s: _Carrier(s)), carry=True)
        return dict(self._values(binding, args))

    def _values(self, binding: LaunchBinding, args: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        steps = {s.position: s for s in binding.steps}
        addresses = iter(binding.addresses)
        for param, argument in zip(binding.bound.params, binding.arguments, strict=True):
            many = isinstance(argument, tuple) and any(isinstance(g, TensorSpec) for g in argument)
            if not isinstance(argument, TensorSpec) and not many:
                yield param.name, argument
                continue
            kind, at = next(addresses)
            if kind == "d":
                slot = _slot(args[0]) if binding.call.inplace and at == 0 else None
                yield param.name, ResultSlot(at, slot, argument.dtype)
            elif kind == "l":
                yield param.name, [_slot(v) for v in args[at]]
            else:
                value = _prepared(args[at], steps.get(at))
                yield param.name, [value] if param.kind is Kind.TENSOR_LIST else value

    def _binding(self, recipe: Recipe, native: Sequence[Any] | None) -> LaunchBinding:
        args, kwargs = recipe.fill(_meta)
        normal = _normal(self.op, args, kwargs)
        if native is None:
            from mindtorch._dispatch.plans import geometries, infer

            outs = list(infer(self.op, geometries(normal)))
        else:
            outs = [contiguous(a.shape, dtype_of(a.dtype.name), _META) for a in native]
        binding = Binder(self.op, normal, outs, _META).bind(outs, self.inplace)
        if binding.instead:
            outs = [o.fresh(dtype=binding.instead[k]) if k in binding.instead else o
                    for k, o in enumerate(outs)]  # fmt: skip
            binding = Binder(self.op, normal, outs, _META).bind(outs, self.inplace)
        return binding


def _calling(op: Op, calls: tuple[AclnnCall, ...]) -> Op:
    """The row with these calls alone."""
    return replace(op, kernels=replace(op.kernels, aclnn=calls), cache={})


def _near(sample: Sample) -> Sample:
    """float32 in place of float64, which few operators take; the dtype axis brings it where it is
    claimed."""
    args, kwargs = sample.map(lambda a: replace(a, dtype="float32") if a.dtype == "float64" else a)
    return Sample(tuple(args), kwargs, sample.error)


class _Carrier:
    """A Slot on its way through a row's argument binding."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot


def _slot(value: Any) -> Slot:
    if isinstance(value, _Carrier):
        return value.slot
    if value is None:  # a dimension without index
        return Slot(Arg((0,), "int64"), np.empty((0,), np.int64))
    raise TypeError(f"no tensor: {value!r}")


def _prepared(value: Any, step: Any) -> Slot:
    """The tensor as a launch gets it: a number filled in, a tensor cast to the common dtype."""
    if not isinstance(value, _Carrier):
        dtype = step.geom.dtype.np
        return Slot(Arg((), dtype.name), np.array(value).astype(dtype))
    slot = value.slot
    if step is None:
        return slot
    with np.errstate(all="ignore"):
        return Slot(replace(slot.arg), slot.array.astype(step.geom.dtype.np))


def _meta(slot: Slot) -> Tensor:
    return torch.empty(slot.array.shape, dtype=dtype_of(slot.array.dtype.name), device="meta")


def _normal(op: Op, args: Sequence[Any], kwargs: Mapping[str, Any], carry: bool = False) -> Any:
    """Arguments in the schema's order, defaults filled in."""
    args_in = list(args)
    args_in += [kwargs.get(arg.name, arg.default) for arg in op.schema.args[len(args_in) :]]
    return args_in if carry else normalise(op, args_in)


def _base(name: str) -> str:
    return name.replace(_INPLACE, "aclnn", 1)


def derived(signature: OpSignature) -> DerivedOperator | None:
    """The operator as the row with most samples for it calls it; None if no row does."""
    row_operators = [o for o in candidates(signature) if o.samples()]
    return max(row_operators, key=lambda o: len(o.samples()), default=None)


def candidates(signature: OpSignature) -> list[DerivedOperator]:
    """The operator as each row calls it that does."""
    name, base = signature.name, _base(signature.name)
    row_operators = [DerivedOperator(signature, op, False) for op in _callers(name)]
    if base != name:
        row_operators += [
            DerivedOperator(signature, op, True) for op in _callers(base) if op.writes.inplace
        ]
    return row_operators


def _callers(name: str) -> list[Op]:
    return [op for op in OPS.values() if any(call.name == name for call in op.kernels.aclnn)]
