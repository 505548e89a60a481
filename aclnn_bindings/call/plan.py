"""Owns plans in Python: making one from checked arguments, and launching it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ..errors import ArgumentError, ClosedHandleError
from ..interface.abi import unqualified
from ..interface.dtypes import canonical
from ..interface.signature import Kind, OpSignature, Param, Signature
from ..runtime.accounting import account
from ..runtime.native import ffi, lib, throw
from ..runtime.words import FLOATS
from .marshal import Argument, float_array
from .specs import RawHandle, ScalarSpec, TensorSpec, tensor_specs

if TYPE_CHECKING:
    from ..runtime.runtime import Runtime
    from ..runtime.stream import Stream

_ROLES: Final = {
    1: {"uint64_t *": lib.MT_ROLE_SIZE, "aclOpExecutor **": lib.MT_ROLE_EXECUTOR},
    2: {
        "void *": lib.MT_ROLE_WORKSPACE,
        "uint64_t": lib.MT_ROLE_SIZE,
        "aclOpExecutor *": lib.MT_ROLE_EXECUTOR,
        "aclrtStream": lib.MT_ROLE_STREAM,
    },
}
_RUN: Final = (
    lib.mt_run0, lib.mt_run1, lib.mt_run2, lib.mt_run3, lib.mt_run4, lib.mt_run5, lib.mt_run6,
)  # fmt: skip


class Plan:
    """One operator with everything but addresses decided; `launch` is one C call.

    `address` is what mt_run takes; `inputs` how many addresses a launch is given, in declaration
    order; `outputs` how many tensors it allocates. Keep the object as long as `address` is used.
    """

    __slots__ = ("_allocated", "_close", "_free", "_handle", "_runtime", "_session", "address",
                 "arguments", "inputs", "name", "outputs")  # fmt: skip

    def __init__(self, runtime: Runtime, name: str, arguments: Sequence[Argument]) -> None:
        self._runtime, self.name, self.arguments = runtime, name, tuple(arguments)
        self._close, self._free = lib.mt_plan_close, lib.mt_plan_free
        self._allocated: tuple[bool, ...] = ()
        self.inputs = self.outputs = self.address = self._handle = 0
        # Read before a handle is taken: a plan of the session before must not be called valid.
        self._session = int(lib.mt_session())

    def _open(self, first: int, second: int) -> None:
        """Take a handle for the two functions at these addresses."""
        self.address = self._handle = int(lib.mt_plan_open(self.name.encode(), first, second))
        if not self._handle:
            throw(self._runtime.codes, op=self.name)

    def _finish(self, allocated: Sequence[bool]) -> None:
        """Set which tensors, in declaration order, a launch allocates."""
        self._allocated = tuple(allocated)
        self.outputs = sum(allocated)
        self.inputs = len(allocated) - self.outputs

    def launch(self, stream: Stream, addresses: Sequence[int]) -> tuple[int, ...]:
        """Run on `stream` with these storage addresses; the addresses of allocated outputs.

        The caller owns the outputs and frees them. AclError names phase, code and arguments.
        """
        address, count, outputs = self.address, len(addresses), self.outputs
        if not address:
            raise ClosedHandleError(f"plan of {self.name}: it was closed")
        if count >= len(_RUN) or outputs > 1:
            return self._launch_many(stream, addresses)
        first = _RUN[count](address, stream.address, *addresses)
        if not first:
            self.throw(stream)
        return (first,) if outputs else ()

    def _launch_many(self, stream: Stream, addresses: Sequence[int]) -> tuple[int, ...]:
        if len(addresses) != self.inputs:
            raise ArgumentError(
                f"plan of {self.name}: {len(addresses)} addresses, expected {self.inputs}"
            )
        buffers = iter(addresses)
        slots = ffi.new("uint64_t[]", [0 if own else next(buffers) for own in self._allocated])
        if not lib.mt_run(self.address, stream.address, slots, len(self._allocated)):
            self.throw(stream)
        return tuple(int(slot) for slot, own in zip(slots, self._allocated, strict=True) if own)

    @property
    def valid(self) -> bool:
        """Whether it can be launched: neither closed nor made before the runtime restarted."""
        return self.address != 0 and lib.mt_session() == self._session

    def throw(self, stream: Stream) -> NoReturn:
        """Raise the thread's last failure as one of this operator."""
        specs = list(tensor_specs(self.arguments))
        codes = self._runtime.codes
        throw(
            codes,
            op=self.name,
            shapes=[spec.shape for spec in specs],
            dtypes=[spec.dtype for spec in specs],
            account=partial(account, stream.device.address, codes),
        )

    def close(self) -> None:
        """Release what the plan holds in the libraries; harmless when repeated."""
        address, self.address = self.address, 0
        if address:
            self._close(address)

    def __del__(self) -> None:
        # Other threads may be in `launch` until here, so that only now nobody has the handle.
        if self._handle:
            self._free(self._handle)


_TENSOR: Final = ffi.typeof("mt_tensor *")
_NUMBERS: Final = ffi.typeof("int64_t[]")


def roles_of(signature: Signature, phase: int) -> dict[int, int]:
    """Parameter index → role in the two-phase protocol, for the last parameter of each type."""
    roles: dict[int, int] = {}
    for ctype, role in _ROLES[phase].items():
        for at in range(len(signature.params) - 1, -1, -1):
            if unqualified(signature.params[at].type) == ctype:
                roles[at] = role
                break
    return roles


# Phase, role in the protocol if the parameter has one, and parameter, in declaration order.
Recipe = tuple[tuple[int, int | None, Param], ...]


def recipe_of(op: OpSignature) -> Recipe:
    """What the two phases of an operator take: the same for each of its plans."""
    return tuple(
        (phase, roles.get(at), param)
        for phase, signature in ((1, op.workspace), (2, op.execute))
        for roles in (roles_of(signature, phase),)
        for at, param in enumerate(signature.params)
    )


class PlanMaker:
    """Turns arguments into a C plan, in declaration order; closes it when one is refused."""

    def __init__(
        self, runtime: Runtime, name: str, recipe: Recipe, first: int, second: int
    ) -> None:
        self._runtime, self._name, self._recipe = runtime, name, recipe
        self._kept: list[Any] = []
        self._allocated: list[bool] = []
        self._functions, self._address = (first, second), 0

    def make(self, arguments: Sequence[Argument], allocate: frozenset[str]) -> Plan:
        """The plan; `arguments` are phase 1's in order, then the extra ones of phase 2."""
        plan = Plan(self._runtime, self._name, arguments)  # owns the handle from the start
        plan._open(*self._functions)
        self._address = plan.address
        try:
            remaining = iter(arguments)
            for phase, role, param in self._recipe:
                if role is not None:
                    self._check(lib.mt_plan_role(self._address, phase, role))
                else:
                    self._argument(phase, param, next(remaining), param.name in allocate)
            self._check(lib.mt_plan_ready(self._address))
            lib.mt_plan_about(self._address, _words(self._name, arguments).encode())
            plan._finish(self._allocated)
        except BaseException:
            plan.close()
            raise
        return plan

    def _check(self, code: int) -> None:
        if code:
            throw(self._runtime.codes, op=self._name)

    def _argument(self, phase: int, param: Param, value: Argument, own: bool) -> None:
        if isinstance(value, TensorSpec):
            if phase == 2:
                raise _no_number(param, value)
            tensor = ffi.new(_TENSOR, self._tensor(value, own))
            self._check(lib.mt_plan_tensor(self._address, tensor))
        elif value is None or isinstance(value, (int, RawHandle)):
            bits = value.address if isinstance(value, RawHandle) else value or 0
            is_float = param.kind in FLOATS
            self._check(lib.mt_plan_value(self._address, phase, is_float, bits))
        elif isinstance(value, bytes):
            self._check(lib.mt_plan_text(self._address, phase, value))
        elif phase == 2:
            raise _no_number(param, value)
        elif isinstance(value, ScalarSpec):
            number = self._dtype(value.dtype)
            self._check(lib.mt_plan_scalar(self._address, value.data, number))
        else:
            self._collection(param.kind, value, own)

    def _collection(self, kind: Kind, values: tuple[Any, ...], own: bool) -> None:
        count, plan = len(values), self._address
        if kind is Kind.TENSOR_LIST:
            members = ffi.new("mt_tensor[]", [self._tensor(spec, own) for spec in values])
            self._check(lib.mt_plan_tensor_list(plan, members, count))
        elif kind is Kind.SCALAR_LIST:
            data = b"".join(spec.data.ljust(16, b"\0") for spec in values)
            numbers = [self._dtype(spec.dtype) for spec in values]
            self._check(lib.mt_plan_scalar_list(plan, data, numbers, count))
        elif kind is Kind.INT_ARRAY:
            data = ffi.new("uint64_t[]", list(values) or 1)
            self._check(lib.mt_plan_array(plan, lib.MT_INT_ARRAY, data, count))
        elif kind is Kind.BOOL_ARRAY:
            self._check(lib.mt_plan_array(plan, lib.MT_BOOL_ARRAY, bytes(values), count))
        else:
            self._check(lib.mt_plan_array(plan, lib.MT_FLOAT_ARRAY, float_array(values), count))

    def _tensor(self, spec: TensorSpec, own: bool) -> Any:
        """The fields of an mt_tensor; what they point to lives until the plan copied it."""
        storage = spec.storage_shape or (spec.storage_numel,)
        rank = len(spec.shape)
        numbers = ffi.new(_NUMBERS, (*spec.shape, *spec.strides, *storage))
        self._kept.append(numbers)
        self._allocated.append(own)
        return (
            numbers, numbers + rank, numbers + 2 * rank, rank, len(storage), spec.offset,
            self._dtype(spec.dtype), self._format(spec.format),
            max(spec.nbytes, 1) if own else 0,
        )  # fmt: skip

    def _dtype(self, name: str) -> int:
        known = self._runtime.dtypes.get(name)
        return _lookup(self._runtime.dtypes, canonical(name), "dtype") if known is None else known

    def _format(self, name: str) -> int:
        return _lookup(self._runtime.formats, name.removeprefix("ACL_FORMAT_"), "format")


def _no_number(param: Param, value: Argument) -> ArgumentError:
    return ArgumentError(f"{param.name}: phase 2 takes numbers and pointers, got {value!r}")


def _words(name: str, arguments: Sequence[Argument]) -> str:
    """The call as errors tell it: `aclnnAdd(FLOAT[2, 3], FLOAT[3])`."""
    given = (f"{spec.dtype}{list(spec.shape)}" for spec in tensor_specs(arguments))
    return f"{name}({', '.join(given)})"


def _lookup(table: dict[str, int], name: str, what: str) -> int:
    if name not in table:
        raise ArgumentError(
            f"{what} {name!r}: this install's headers have {', '.join(table) or 'none'}"
        )
    return table[name]
