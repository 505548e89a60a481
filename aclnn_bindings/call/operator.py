"""Owns calling operators by name: check, plan, launch; refuses what the headers do not declare."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ..errors import ArgumentError, UnsupportedSignatureError
from ..interface.signature import Kind, OpSignature, Param
from ..runtime.memory import Buffer
from ..runtime.native import Operator, operands
from ..runtime.stream import Stream
from ..runtime.symbols import SymbolLookup
from .arrays import DeviceTensor
from .cache import PlanCache
from .function import describe, outputs, python_signature
from .marshal import Argument, Rule, bind, host_outputs, rule_of
from .plan import Plan, PlanMaker, recipe_of

if TYPE_CHECKING:
    from ..runtime.runtime import Runtime

# Descriptors that an operator may write through: a plan that keeps them for later launches
# would hand on what the last one wrote.
_VALUES: Final = frozenset(
    {Kind.SCALAR, Kind.SCALAR_LIST, Kind.INT_ARRAY, Kind.BOOL_ARRAY, Kind.FLOAT_ARRAY}
)


operands(DeviceTensor, Buffer, Stream)


class BoundOp(Operator):
    """An operator of the install: call it, or `plan` it once and launch it many times.

    A call launches on the current stream, or on `stream`; host outputs left out are returned.
    Device tensors are anything with `spec` and `address`, such as `DeviceTensor`.
    """

    signature: OpSignature

    def __init__(
        self, signature: OpSignature, runtime: Runtime, symbols: SymbolLookup, cache: PlanCache
    ) -> None:
        self.signature, self._runtime, self._cache = signature, runtime, cache
        self.name: str = signature.name
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
        self._names = tuple(intern(param.name) for param in self._params)
        self._hosts = host_outputs(self._params, runtime.declarations)
        self._single = self._writes or bool(self._hosts)  # a plan serves one launch
        self._repeated = None if self._single else cache.repeated
        self._rules: list[tuple[Param, Rule]] = []
        self._recipe = recipe_of(signature)
        self.__name__: str = self.name
        self.__qualname__ = self.name
        self.__doc__ = describe(signature.workspace, self._params)

    @property
    def __signature__(self) -> inspect.Signature:
        """What `inspect.signature` and editors show."""
        return python_signature(self._params, self._hosts, stream=True)

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
        maker = PlanMaker(self._runtime, self.name, (self._first, self._second))
        return maker.make(self._recipe, arguments, allocate)

    def _call(self, /, *args: Any, stream: Stream | None = None, **kwargs: Any) -> Any:
        """A call that is unlike earlier ones; whether it can be repeated is seen here."""
        values = bind(self.name, self._params, args, kwargs, self._hosts)
        addresses: list[int] = []
        arguments = self._normalise(values, addresses)
        if stream is None:
            stream = self._runtime.current_stream(_device_of(values))
        elif not isinstance(stream, Stream):
            raise ArgumentError(
                f"{self.name}: stream={stream!r}: expected a Stream, or None for the current one"
            )
        plan = self._cached(arguments)
        if not self._single:
            self._remember(values, plan)
        plan.launch(stream, addresses)
        if self._hosts:
            return outputs(self._params, values, self._runtime.declarations)
        return None

    def _remember(self, values: Sequence[Any], plan: Plan) -> None:
        """Let a call with these values launch `plan`, where each tensor's address is one that a
        launch is given: as a pointer it is part of the plan."""
        known = self._key(*values)
        if known and known[1] == plan.inputs:
            views = [value.spec for value in _flat(values) if isinstance(value, DeviceTensor)]
            self._cache.remember(known[0], plan, (self, views))

    def _lane(self, buffer: Buffer) -> int:
        """The stream of a repeated call whose first tensor is in `buffer`."""
        return self._runtime.stream_on(buffer.device).address

    def _fail(self, plan: Plan, buffer: Buffer) -> NoReturn:
        """Raise the thread's failure, which a repeated call met."""
        plan.throw(buffer.stream)

    def _cached(self, arguments: list[Argument]) -> Plan:
        if self._single:
            return self._make(arguments, frozenset())
        key = (self.name, *arguments)
        plan = self._cache.get(key)
        if plan is None:
            plan = self._make(arguments, frozenset())
            self._cache.put(key, plan)
        return plan


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    """The values, members of lists in their place."""
    for value in values:
        yield from value if isinstance(value, (tuple, list)) else (value,)


_TENSORS: Final = (Kind.TENSOR, Kind.TENSOR_LIST)


def _device_of(values: Sequence[Any]) -> int | None:
    """The device of the first tensor that knows its buffer; None: the current one."""
    for value in values:
        item = value[0] if isinstance(value, (tuple, list)) and value else value
        buffer = getattr(item, "buffer", None)
        if buffer is not None:
            return int(buffer.device.index)
    return None
