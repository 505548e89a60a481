"""Owns calling one C function outside the two-phase protocol: helpers, descriptors, the runtime."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..errors import ArgumentError, UnsupportedSignatureError
from ..interface.abi import kind_of, unqualified
from ..interface.signature import Declarations, Kind, Param, Signature
from ..runtime.native import address_of, ffi, lib, text_of
from ..runtime.symbols import SymbolLookup
from ..runtime.words import FLOATS, call, decode, handle
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
from .marshal import POINTERS, Argument, HostCell, bind, host_outputs, name_of, rule_of
from .specs import RawHandle, ScalarSpec, TensorSpec

if TYPE_CHECKING:
    from ..runtime.runtime import Runtime

STATUS: Final = ("aclnnStatus", "aclError")


def outputs(params: Sequence[Param], values: Sequence[Any], declarations: Declarations) -> Any:
    """What the cells among `values` received: None, the one value, or a tuple of them."""
    outputs = [
        value.value(unqualified(param.type.removesuffix("*").strip()), declarations.typedefs)
        for param, value in zip(params, values, strict=False)
        if isinstance(value, HostCell)
    ]
    return None if not outputs else outputs[0] if len(outputs) == 1 else tuple(outputs)


def describe(signature: Signature, params: Sequence[Param]) -> str:
    """A docstring from the header: the declaration, and what is known of each parameter."""
    lines = [f"{signature.prototype}\n\nDeclared in {signature.header}, line {signature.line}."]
    for param in params:
        notes = [param.direction.value, "may be None" if param.optional else ""]
        notes.append(" ".join(param.dtypes))
        lines.append(f"{param.name}: {param.type} ({'; '.join(filter(None, notes))})")
    return "\n".join(lines)


def python_signature(
    params: Sequence[Param], hosts: Collection[str], stream: bool = False
) -> inspect.Signature:
    """The signature of a call: host outputs and optional pointers may be left out."""
    parameters = [
        inspect.Parameter(
            name_of(param, at),
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None if _may_lack(param, hosts) else inspect.Parameter.empty,
            annotation=param.type,
        )
        for at, param in enumerate(params)
    ]
    # Python wants parameters with a default last; where C does not, those are by keyword.
    first = next((at for at, p in enumerate(parameters) if p.default is None), len(parameters))
    if any(p.default is not None for p in parameters[first:]):
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters[first:] = [p.replace(kind=keyword) for p in parameters[first:]]
    if stream:
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(
            inspect.Parameter("stream", kind, default=None, annotation="Stream | None")
        )
    return inspect.Signature(parameters)


def _may_lack(param: Param, hosts: Collection[str]) -> bool:
    return param.name in hosts or (param.optional and param.kind in POINTERS)


class BoundFunction:
    """A C function outside the two-phase protocol. A status other than success raises AclError."""

    signature: Signature

    def __init__(self, signature: Signature, runtime: Runtime, symbols: SymbolLookup) -> None:
        self.signature, self._runtime = signature, runtime
        self.name: str = signature.name
        for param in signature.params:
            if param.kind in (Kind.STRUCT, Kind.VARARGS):
                raise UnsupportedSignatureError(
                    f"{self.name}: {param.name or param.type} is a {param.kind.value}, which these "
                    "bindings do not pass"
                )
        self._hosts = host_outputs(signature.params, runtime.declarations)
        self._address = symbols.require(self.name)
        self.__name__: str = self.name
        self.__qualname__ = self.name
        self.__doc__ = describe(signature, signature.params)

    @property
    def __signature__(self) -> inspect.Signature:
        """What `inspect.signature` and editors show."""
        return python_signature(self.signature.params, self._hosts)

    def __repr__(self) -> str:
        names = (name_of(param, at) for at, param in enumerate(self.signature.params))
        return f"{self.name}({', '.join(names)})"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The result, or the host outputs that were left out where the result is a status.

        Descriptors are made from values (numbers, sequences, device tensors) for the call.
        """
        params = self.signature.params
        values = bind(self.name, params, args, kwargs, self._hosts)
        declarations, temporary = self._runtime.declarations, Temporaries(self._runtime)
        self._enter()
        try:
            words = [
                (param.kind in FLOATS, temporary.word(param, value, declarations))
                for param, value in zip(params, values, strict=True)
            ]
            bits = call(self._address, words, _float_type(self.signature, declarations))
            if self.signature.returns in STATUS:
                self._check(decode("int", bits, {}))
                returned = outputs(params, values, declarations)
                self._runtime.handles |= self._handles_in(values)
                return returned
        finally:
            temporary.close()
        result = decode(self.signature.returns, bits, declarations.typedefs)
        extra = outputs(params, values, declarations)
        return result if extra is None else (result, extra)

    def _handles_in(self, values: Sequence[Any]) -> set[int]:
        """What the call wrote to cells of handles, such as an `aclrtStream *`."""
        declarations = self._runtime.declarations
        typedefs, enums, structs = declarations.typedefs, declarations.enums, declarations.structs
        cells = [
            (unqualified(param.type.removesuffix("*").strip()), value)
            for param, value in zip(self.signature.params, values, strict=True)
            if isinstance(value, HostCell)
        ]
        return {cell.value(pointee, typedefs) for pointee, cell in cells
                if kind_of(pointee, typedefs, enums, structs) is Kind.HANDLE}  # fmt: skip

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
        if param.kind is Kind.HANDLE:
            return self._handle(param, value)
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

    def _handle(self, param: Param, value: Any) -> int:
        """A handle's bits; ArgumentError for a number that nothing here gave out, as a function
        that follows it would end the process."""
        word = value.address if isinstance(value, RawHandle) else handle(param, value)
        known = hasattr(value, "handle") or isinstance(value, RawHandle)
        if word and not known and word not in self._runtime.handles:
            raise ArgumentError(
                f"{param.name}: {word:#x} is no {param.type} that this session made or a function "
                f"returned; RawHandle({word:#x}) passes it unchecked"
            )
        return word

    def _keep(self, descriptor: Descriptor) -> int:
        self._made.append(descriptor)
        return descriptor.descriptor

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
        for descriptor in reversed(self._made):
            descriptor.close()
        self._made.clear()
        self._kept.clear()
