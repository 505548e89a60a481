"""Owns calling by name: operators as plan and launch, other functions as one call; refuses to call
what the install's headers do not declare.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .abi import unqualified
from .errors import AclError
from .failures import ArgumentError, UnsupportedSignatureError
from .handles import (
    BoolArray,
    Descriptor,
    FloatArray,
    IntArray,
    Scalar,
    ScalarList,
    Tensor,
    TensorList,
)
from .marshal import Argument, Cell, Rule, bind, is_host_output, rule_of
from .native import address_of, ffi, lib, text_of
from .plan import Plan, PlanCache, PlanMaker
from .signature import Declarations, Kind, OpSignature, Param, Signature
from .specs import RawHandle, ScalarSpec, TensorSpec
from .symbols import Symbols
from .words import FLOATS, call, decode

if TYPE_CHECKING:
    from .runtime import Runtime
    from .stream import Stream

_STATUS: Final = ("aclnnStatus", "aclError")
# Descriptors that an operator may write through: a plan that keeps them for later launches
# would hand on what the last one wrote.
_VALUES: Final = frozenset(
    {Kind.SCALAR, Kind.SCALAR_LIST, Kind.INT_ARRAY, Kind.BOOL_ARRAY, Kind.FLOAT_ARRAY}
)


class BoundOp:
    """An operator of the install: call it, or `plan` it once and launch it many times."""

    def __init__(
        self, signature: OpSignature, runtime: Runtime, symbols: Symbols, cache: PlanCache
    ) -> None:
        self.signature, self._runtime, self._cache = signature, runtime, cache
        self.name = signature.name
        self._params = (*signature.params, *signature.extra)
        for param in self._params:
            if param.kind in (Kind.STRUCT, Kind.VARARGS):
                raise UnsupportedSignatureError(
                    f"{self.name}: {param.name} is {param.type}, a {param.kind.value}, which these "
                    "bindings do not pass"
                )
        self._first = symbols.require(signature.workspace.name)
        self._second = symbols.require(signature.execute.name)
        self._writes = any(
            p.kind in _VALUES and not p.type.startswith("const ") for p in self._params
        )
        self._names = [param.name for param in self._params]
        self._answers = any(is_host_output(param) for param in self._params)
        self._rules: list[tuple[Param, Rule]] = []

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(p.name for p in self._params)})"

    @property
    def params(self) -> tuple[Param, ...]:
        """What a call takes, in order: phase 1's parameters, then extra ones of phase 2."""
        return self._params

    def plan(self, *arguments: Any, allocate: Sequence[str | int] = ()) -> Plan:
        """A plan for TensorSpec, ScalarSpec, numbers and tuples of them, by position.

        Each launch allocates the tensors named (or counted) in `allocate`. Nothing is cached here.
        """
        self._runtime.start()
        return self._make(self._normalise(arguments, []), self._owned(allocate))

    def _owned(self, allocate: Sequence[str | int]) -> frozenset[str]:
        names = [self._params[a].name if isinstance(a, int) else a for a in allocate]
        for name in names:
            if not any(p.name == name and p.kind in _TENSORS for p in self._params):
                raise ArgumentError(f"{self.name}: allocate={name!r} is no tensor parameter")
        return frozenset(names)

    def _normalise(self, values: Sequence[Any], addresses: list[int]) -> list[Argument]:
        if len(values) != len(self._params):
            bind(self.name, self._params, values, {})
        if not self._rules:
            enums = self._runtime.declarations.enums
            self._rules = [(param, rule_of(param, enums)) for param in self._params]
        try:
            return [
                rule(param, value, addresses)
                for (param, rule), value in zip(self._rules, values, strict=True)
            ]
        except (ArgumentError, UnsupportedSignatureError) as error:
            raise type(error)(f"{self.name}: {error}") from None

    def _make(self, arguments: Sequence[Argument], allocate: frozenset[str]) -> Plan:
        maker = PlanMaker(self._runtime, self.signature, self._first, self._second)
        return maker.make(arguments, allocate)

    def __call__(self, /, *args: Any, stream: Stream | None = None, **kwargs: Any) -> Any:
        """Launch on `stream` (the current one by default); host outputs left out are returned.

        Device tensors are anything with `spec` and `address`, such as `DeviceTensor`.
        """
        values = self._bind(args, kwargs)
        addresses: list[int] = []
        arguments = self._normalise(values, addresses)
        on = stream or self._runtime.current_stream(_device_of(values))
        plan = self._cached(arguments)
        plan.launch(on, addresses)
        if self._answers:
            return outputs(self._params, values, self._runtime.declarations)
        return None

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        if not args and len(kwargs) == len(self._names):
            try:
                return [kwargs[name] for name in self._names]
            except KeyError:
                pass
        return bind(self.name, self._params, args, kwargs)

    def _cached(self, arguments: list[Argument]) -> Plan:
        if self._writes:
            return self._make(arguments, frozenset())
        key = (self.name, *arguments)
        plan = self._cache.get(key)
        if plan is None:
            plan = self._make(arguments, frozenset())
            self._cache.put(key, plan)
        return plan


_TENSORS: Final = (Kind.TENSOR, Kind.TENSOR_LIST)


def _device_of(values: Sequence[Any]) -> int | None:
    """The device of the first tensor that knows its buffer; None: the current one."""
    for value in values:
        item = value[0] if isinstance(value, (tuple, list)) and value else value
        buffer = getattr(item, "buffer", None)
        if buffer is not None:
            return int(buffer.device.index)
    return None


def outputs(params: Sequence[Param], values: Sequence[Any], declarations: Declarations) -> Any:
    """What the cells among `values` received: None, the one value, or a tuple of them."""
    found = [
        value.value(unqualified(param.type.removesuffix("*").strip()), declarations.typedefs)
        for param, value in zip(params, values, strict=False)
        if isinstance(value, Cell)
    ]
    return None if not found else found[0] if len(found) == 1 else tuple(found)


class BoundFunction:
    """A C function outside the two-phase protocol. A status other than success raises AclError."""

    def __init__(self, signature: Signature, runtime: Runtime, symbols: Symbols) -> None:
        self.signature, self._runtime = signature, runtime
        self.name = signature.name
        for param in signature.params:
            if param.kind in (Kind.STRUCT, Kind.VARARGS):
                raise UnsupportedSignatureError(
                    f"{self.name}: {param.name or param.type} is a {param.kind.value}, which these "
                    "bindings do not pass"
                )
        self._address = symbols.require(self.name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The result, or the host outputs that were left out where the result is a status.

        Descriptors are made from values (numbers, sequences, device tensors) for the call.
        """
        params = self.signature.params
        values = bind(self.name, params, args, kwargs)
        declarations, temporary = self._runtime.declarations, Temporaries(self._runtime)
        self._enter()
        try:
            words = [
                (param.kind in FLOATS, temporary.word(param, value, declarations))
                for param, value in zip(params, values, strict=True)
            ]
            bits = call(self._address, words, _float_type(self.signature, declarations))
            if self.signature.returns in _STATUS:
                self._check(decode("int", bits, {}))
                return outputs(params, values, declarations)
        finally:
            temporary.close()
        result = decode(self.signature.returns, bits, declarations.typedefs)
        extra = outputs(params, values, declarations)
        return result if extra is None else (result, extra)

    def _enter(self) -> None:
        """Give the calling thread its device, which most functions of the runtime need."""
        if self._runtime.started:
            device = self._runtime.device()
            lib.mt_context_use(lib.mt_device_context(device.address))

    def _check(self, status: int) -> None:
        if status:
            message = text_of(lib.mt_recent_message())
            raise self._runtime.codes.error(self.name, status, message=message)


def _float_type(signature: Signature, declarations: Declarations) -> str:
    returns = unqualified(signature.returns)
    return unqualified(declarations.typedefs.get(returns, returns))


class Temporaries:
    """Descriptors and copies of host data that live as long as one call."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._made: list[Descriptor] = []
        self._kept: list[Any] = []

    def word(self, param: Param, value: Any, declarations: Declarations) -> int:
        """The argument's bits."""
        addresses: list[int] = []
        argument = rule_of(param, declarations.enums)(param, value, addresses)
        if argument is None:
            return 0
        if isinstance(argument, int):
            return argument
        if isinstance(argument, RawHandle):
            return argument.address
        if isinstance(argument, bytes):
            self._kept.append(ffi.new("char[]", argument))
            return address_of(self._kept[-1])
        return self._keep(self._descriptor(param, value, argument, addresses))

    def _keep(self, made: Descriptor) -> int:
        self._made.append(made)
        return made.descriptor

    def _descriptor(
        self, param: Param, value: Any, argument: Argument, addresses: list[int]
    ) -> Descriptor:
        runtime = self._runtime
        if isinstance(argument, ScalarSpec):
            return Scalar(runtime, argument)
        if isinstance(argument, TensorSpec):
            return Tensor(runtime, argument, addresses[0] if addresses else 0)
        members: Any = argument
        if param.kind is Kind.TENSOR_LIST:
            at = iter([*addresses, *[0] * len(members)])
            return TensorList(runtime, [Tensor(runtime, spec, next(at)) for spec in members])
        if param.kind is Kind.SCALAR_LIST:
            return ScalarList(runtime, [Scalar(runtime, spec) for spec in members])
        arrays = {
            Kind.INT_ARRAY: IntArray,
            Kind.BOOL_ARRAY: BoolArray,
            Kind.FLOAT_ARRAY: FloatArray,
        }
        return arrays[param.kind](runtime, value)

    def close(self) -> None:
        for made in reversed(self._made):
            made.close()
        self._made.clear()
        self._kept.clear()


Bound = TypeVar("Bound", BoundOp, BoundFunction)


class Namespace:
    """Attribute access to operators or functions: `cann.ops.aclnnAdd`. `dir()` lists the names."""

    def __init__(self, names: Any, find: Any) -> None:
        self._names, self._find = names, find
        self._bound: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with self._lock:
            if name not in self._bound:
                self._bound[name] = self._find(name)
            return self._bound[name]

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __dir__(self) -> list[str]:
        return sorted(self._names())


__all__ = ["AclError", "BoundFunction", "BoundOp", "Namespace", "Plan"]
