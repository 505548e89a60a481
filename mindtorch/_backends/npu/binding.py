"""Owns how a row's ACLNN call meets the install: which call applies, what each parameter gets.

Geometries are passed as storage base, offset and strides, in the format that CANN's PyTorch
adapter gives tensors of that rank. A Pointwise row's inputs are cast to their common dtype on the
device first; numbers travel as aclScalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aclnn_bindings import (
    BoundOp,
    Kind as Passed,
    MissingSymbolError,
    Param,
    ScalarSpec,
    TensorSpec,
)
from aclnn_bindings.install.products import dtypes_of

from ..._tensor.device import device as Device
from ..._tensor.dtype import (
    INTEGER,
    SCALAR_DTYPES,
    bfloat16,
    bool as bool_,
    dtype as Dtype,
    float16,
    float32,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from ..._tensor.geometry import Geometry, contiguous
from ..._tensor.tensor import Tensor
from ..._tensor.types import Number
from ...ops.fields import AclnnCall, Const, ListOf
from ...ops.rules import NUMBERS, Pointwise
from ...ops.spec import Op
from ..common.named import metadata, positions
from . import runtime

_FORMATS = {3: "NCL", 4: "NCHW", 5: "NCDHW"}


_specs: dict[Geometry, TensorSpec] = {}
_LIMIT = 1 << 12


def spec_of(geom: Geometry) -> TensorSpec:
    """The descriptor's metadata: storage up to the last element reached."""
    spec = _specs.get(geom)
    if spec is None:
        spec = TensorSpec(
            tuple(geom.shape),
            geom.strides,
            geom.offset,
            geom.dtype.acl,
            max(geom.extent, 1),
            _FORMATS.get(geom.ndim, "ND"),
        )
        if len(_specs) >= _LIMIT:
            _specs.clear()
        _specs[geom] = spec
    return spec


# What a result may be made as, and cast from, where an operator does not give the row's dtype.
_INSTEAD = {int64: int32, uint8: bool_, int8: int64, int16: int64, int32: int64}
# What holds every value of a dtype: the first that an operator takes stands in for one it does not.
_WIDER = {
    bool_: (uint8, int64, float32), uint8: (int64, float32), int8: (int64, float32),
    int16: (int64, float32), int32: (int64,), float16: (float32,), bfloat16: (float32,),
}  # fmt: skip


def claimed(op: str, param: Param) -> tuple[str, ...]:
    """The dtypes that documents or headers list for a parameter on this machine's product."""
    return dtypes_of(op, param.name, runtime.product(), param.dtypes)


def not_implemented(op: Op, why: str) -> RuntimeError:
    """The documented error of an op without a kernel on this device."""
    return RuntimeError(f"aten::{op.base_name} is not implemented for NPU: {why}")


@dataclass(slots=True)
class Preparation:
    """What must happen to argument `position` before the launch: cast, fill or upload to `geom`."""

    kind: str
    position: int
    geom: Geometry


@dataclass(slots=True)
class LaunchBinding:
    """One call with every argument but addresses decided.

    `addresses` says where each comes from: ("a", i) argument i, ("l", i) every member of list
    argument i, ("d", k) destination k. `instead` gives the dtype of results that the operator
    does not give in the row's.
    """

    bound: BoundOp
    call: AclnnCall
    arguments: list[Any] = field(default_factory=list)
    addresses: list[tuple[str, int]] = field(default_factory=list)
    allocate: list[int] = field(default_factory=list)
    instead: dict[int, Dtype] = field(default_factory=dict)
    results: list[int] = field(default_factory=list)
    steps: list[Preparation] = field(default_factory=list)


class Binder:
    """Binds one op for given arguments (tensors at plan time, numbers by value) and results."""

    def __init__(self, op: Op, args: Sequence[Any], outs: Sequence[Geometry], device: Device):
        self.op, self.args, self.outs, self.device = op, args, outs, device
        self.positions, self.results = positions(op)
        geoms = [v._geom if v.__class__ is Tensor else metadata(v) for v in args]
        self.named = dict(zip(self.positions, geoms, strict=True))
        for name, k in self.results.items():
            if k < len(outs):
                self.named.setdefault(name, outs[k])
        self.common = self._common()

    def _common(self) -> Dtype | None:
        rule = self.op.infer
        if not isinstance(rule, Pointwise):
            return None
        return rule.common(list(self.named.values())[: len(self.args)])

    def bind(self, dests: Sequence[Geometry] | None = None, inplace: bool = False) -> LaunchBinding:
        """The first of the row's calls that applies and that this install exports.

        With `dests` results go to existing tensors of those Geometries, else they are allocated;
        `inplace`: the destination is the first argument, and aclnnInplaceXxx is taken where it is
        there. RuntimeError in the documented form when there is none.
        """
        call, bound = self._choose()
        if inplace and not call.inplace:
            call, bound = self._inplace_form(call, bound)
        binding = LaunchBinding(bound, call)
        if len(bound.params) != len(call.args):
            raise not_implemented(
                self.op,
                f"its row gives {call.name} {len(call.args)} arguments, the header of this CANN"
                f" declares {bound!r}",
            )
        for at, (param, value) in enumerate(zip(bound.params, call.args, strict=True)):
            binding.arguments.append(self._argument(binding, at, param, value, dests))
        return binding

    def applies(self) -> bool:
        """Whether one of the row's calls takes these arguments and this install exports it."""
        return any(
            (call.when is None or call.when(self.named)) and runtime.cann().has_op(call.name)
            for call in self.op.kernels.aclnn
        )

    def _absent(self, name: str) -> bool:
        """Whether a member of a list is left out: None, or a result that is not there."""
        geom = self.named[name]
        return geom is None or (name in self.results and not geom.numel)

    def gives_lists(self, call: AclnnCall) -> bool:
        """Whether results are members of lists: they must be there before the launch."""
        lists = (a.names[0] for a in call.args if isinstance(a, ListOf))
        return any(name in self.results for name in lists)

    def _choose(self) -> tuple[AclnnCall, BoundOp]:
        missing: list[str] = []
        for call in self.op.kernels.aclnn:
            if call.when is not None and not call.when(self.named):
                continue
            try:
                return call, runtime.cann().op(call.name)
            except MissingSymbolError as error:
                missing.append(str(error))
        raise not_implemented(self.op, "; ".join(missing) or self._lack())

    def _lack(self) -> str:
        lack = self.op.kernels.absent.get("npu")
        if not lack or self.op.kernels.cpu is None:
            return lack or "its row has no ACLNN call for these arguments"
        return (
            f"{lack}. Move the tensors to the host (`x.cpu()`), or set"
            " MINDTORCH_ENABLE_CPU_FALLBACK=1 to have such calls computed there"
        )

    def _inplace_form(self, call: AclnnCall, bound: BoundOp) -> tuple[AclnnCall, BoundOp]:
        """aclnnInplaceXxx in place of aclnnXxx where the install has it and it takes the same."""
        name = call.name.replace("aclnn", "aclnnInplace", 1)
        rest = tuple(a for a in call.args if a not in self.results)
        if call.args[:1] != (self.op.schema.args[0].name,) or not runtime.cann().has_op(name):
            return call, bound
        signature = runtime.cann().op(name)
        if len(signature.params) != len(rest):
            return call, bound
        dtype = self.named[self.op.schema.args[0].name].dtype.acl
        claims = claimed(name, signature.params[0])
        if claims and dtype not in claims:  # aclnnAdds takes complex numbers, this not
            return call, bound
        return AclnnCall(name, rest, None, True), signature

    def _argument(
        self,
        binding: LaunchBinding,
        at: int,
        param: Param,
        value: Any,
        dests: Sequence[Geometry] | None,
    ) -> Any:
        if isinstance(value, Const):
            return value.value
        if isinstance(value, ListOf):
            members = [n for n in value.names if not self._absent(n)]
            return tuple(self._argument(binding, at, param, n, dests) for n in members)
        if not isinstance(value, str):
            return self._value(param, value.compute(self.named))
        if value in runtime.MODES:
            return runtime.cube_math_type(value)
        if value in self.positions:
            return self._input(binding, at, param, self.positions[value], dests)
        if value not in self.results:
            raise not_implemented(self.op, f"its row names {value!r}, which is no argument")
        return self._result(binding, at, param, self.results[value], dests)

    def _result(
        self,
        binding: LaunchBinding,
        at: int,
        param: Param,
        k: int,
        dests: Sequence[Geometry] | None,
    ) -> TensorSpec:
        binding.results.append(k)
        dtype = self.outs[k].dtype
        claims = claimed(binding.call.name, param)
        wider = self._wider(binding, dtype)
        other = _INSTEAD.get(dtype)
        if wider and (wider.acl in claims or not claims):
            binding.instead[k] = wider
        elif other and other.acl in claims and dtype.acl not in claims:
            binding.instead[k] = other
        if dests is None:
            binding.allocate.append(at)
            return spec_of(self.outs[k])
        binding.addresses.append(("d", k))
        return spec_of(dests[k])

    def _input(
        self,
        binding: LaunchBinding,
        at: int,
        param: Param,
        i: int,
        dests: Sequence[Geometry] | None,
    ) -> Any:
        value = self.args[i]
        writes = binding.call.inplace and i == 0
        if writes and dests is not None:
            binding.addresses.append(("d", 0))
            return spec_of(dests[0])
        if isinstance(value, Tensor):
            geom = self._placed(binding, param, i, value._geom)
            binding.addresses.append(("a", i))
            alone = param.kind is Passed.TENSOR_LIST and isinstance(binding.call.args[at], str)
            return (spec_of(geom),) if alone else spec_of(geom)
        if value.__class__ is tuple and any(isinstance(v, Tensor) for v in value):
            return self._list(binding, i, value)
        if value.__class__ in NUMBERS and param.kind is Passed.TENSOR:
            geom = contiguous((), self.common or _dtype_of(value), self.device)
            binding.steps.append(Preparation("fill", i, geom))
            binding.addresses.append(("a", i))
            return spec_of(geom)
        return self._value(param, value)

    def _list(
        self, binding: LaunchBinding, i: int, value: tuple[Any, ...]
    ) -> tuple[TensorSpec, ...]:
        binding.addresses.append(("l", i))
        # A null member stands for a dimension without index: CANN's adapter passes an empty one.
        empty = contiguous((0,), int64, self.device)
        return tuple(spec_of(empty if v is None else v._geom) for v in value)

    def _wider(self, binding: LaunchBinding, dtype: Dtype) -> Dtype | None:
        """What an operator that does not take the `dtype` of its first input is given instead."""
        first = self.args[0] if self.args else None
        if self.common is None and isinstance(first, Tensor):
            is_input = dtype is first._geom.dtype
        else:
            is_input = dtype is self.common
        if not is_input or dtype not in _WIDER:
            return None
        claims = claimed(binding.call.name, binding.bound.params[0])
        return None if dtype.acl in claims else _first_of(_WIDER[dtype], claims)

    def _widens(self, binding: LaunchBinding, param: Param, dtype: Dtype) -> bool:
        """Whether an input becomes of the first result's dtype, as a sum's or a count's may."""
        out = self.outs[0].dtype
        integers = out is int64 and dtype.category <= INTEGER
        if not integers and out not in _WIDER.get(dtype, ()):
            return False
        claims = claimed(binding.call.name, param)
        return dtype.acl not in claims and out.acl in claims

    def _exact(self, i: int, geom: Geometry) -> Dtype | None:
        """float32 for a second operand without dimensions whose digits torch keeps beside halves.

        The operators take it beside halves: they compute in the promoted dtype and cast to their
        result's ("aclnnMul&aclnnInplaceMul", "aclnnDiv", "aclnnFloorDivide" in CANN's document).
        """
        first = self.args[0]
        beside = self.common in (float16, bfloat16) and isinstance(first, Tensor)
        if not beside or not self.op.dtypes.exact_scalar or i != 1 or geom.ndim:
            return None
        return float32 if geom.dtype not in (float16, bfloat16, bool_) else None

    def _placed(self, binding: LaunchBinding, param: Param, i: int, geom: Geometry) -> Geometry:
        """`geom` on the device and in the common dtype, with the step that brings it there."""
        dtype = geom.dtype
        rule = self.op.infer
        if isinstance(rule, Pointwise) and i in rule.positions[rule.skip :]:
            dtype = self._exact(i, geom) or self.common or dtype
        if self._widens(binding, param, dtype):
            dtype = self.outs[0].dtype
        if geom.device.type == "cpu":
            placed = contiguous((), dtype, self.device)
            binding.steps.append(Preparation("upload", i, placed))
            return placed
        if dtype is geom.dtype:
            return geom
        placed = geom.fresh(dtype=dtype)
        binding.steps.append(Preparation("cast", i, placed))
        return placed

    def _value(self, param: Param, value: Dtype | Number | tuple[int, ...] | None) -> Any:
        if isinstance(value, Dtype):
            return runtime.acl_dtype(value)
        if param.kind is Passed.SCALAR and isinstance(value, bool | int | float | complex):
            return ScalarSpec(value)
        if param.kind in (Passed.FLOAT, Passed.DOUBLE) and value.__class__ in (int, bool):
            return float(value)
        return value


def _first_of(dtypes: Sequence[Dtype], claims: Sequence[str]) -> Dtype | None:
    return next((dtype for dtype in dtypes if dtype.acl in claims), None)


def _dtype_of(number: object) -> Dtype:
    dtype: Dtype = SCALAR_DTYPES[number.__class__]()
    return dtype
