"""Owns the check of Python values against a signature: value → hashable argument, no C call.

TensorSpec, ScalarSpec, tuples of them and of numbers, bytes, bits as int, RawHandle, None (NULL).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from keyword import iskeyword
from typing import Any, Final

from ..errors import ArgumentError, UnsupportedSignatureError
from ..interface.abi import kind_of
from ..interface.signature import Declarations, Direction, Kind, Param
from ..runtime import words
from ..runtime.native import address_of, ffi
from .specs import RawHandle, ScalarSpec, TensorSpec

Argument = TensorSpec | ScalarSpec | RawHandle | int | bytes | tuple[Any, ...] | None
Enums = Mapping[str, Mapping[str, int]]
Rule = Callable[[Param, Any, list[int]], Argument]

POINTERS: Final = frozenset(
    {
        Kind.TENSOR, Kind.TENSOR_LIST, Kind.SCALAR, Kind.SCALAR_LIST, Kind.INT_ARRAY,
        Kind.BOOL_ARRAY, Kind.FLOAT_ARRAY, Kind.STRING, Kind.POINTER, Kind.FUNCTION,
        Kind.HANDLE, Kind.EXECUTOR,
    }
)  # fmt: skip


class HostCell:
    """Host memory that a call writes a number, a pointer or a text to.

    Roomier than one number, as nothing in a signature tells one from an array of a few.
    """

    def __init__(self) -> None:
        self._memory = ffi.new("uint64_t[512]")

    @property
    def handle(self) -> int:
        """The address, as an argument."""
        return address_of(self._memory)

    def value(self, pointee: str, typedefs: Mapping[str, str]) -> Any:
        """What was written, read as C type `pointee`."""
        if pointee == "char":
            data: bytes = ffi.buffer(self._memory)[:]
            return data.partition(b"\0")[0].decode("utf-8", "replace")
        return words.decode(pointee, int(self._memory[0]), typedefs)


def _refuse(param: Param, value: Any, expected: str) -> ArgumentError:
    value_text = type(value).__name__ if hasattr(value, "__dict__") else repr(value)
    return ArgumentError(f"{param.name}: expected {expected} ({param.type}), got {value_text}")


def _descriptor(value: Any) -> RawHandle | None:
    """An owned or raw descriptor; None when `value` is no such thing."""
    if isinstance(value, RawHandle):
        return value
    owned = getattr(value, "descriptor", None)
    return RawHandle(owned) if isinstance(owned, int) else None


def _tensor(param: Param, value: Any, addresses: list[int]) -> TensorSpec | RawHandle | None:
    if isinstance(value, TensorSpec):
        value.check(param.name)
        return value
    spec = getattr(value, "spec", None)
    if isinstance(spec, TensorSpec):
        addresses.append(value.address)
        return spec
    if value is None:
        return None
    if (raw := _descriptor(value)) is not None:
        return raw
    host = hasattr(value, "__array__") or isinstance(value, (list, tuple, int, float))
    hint = "; cann.tensor(…) copies values to the device" if host else ""
    raise _refuse(param, value, f"a device tensor, TensorSpec, descriptor or None{hint}")


def _tensor_list(param: Param, value: Any, addresses: list[int]) -> Argument:
    if value is None or (raw := _descriptor(value)) is not None:
        return None if value is None else raw
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        members = tuple(_tensor(param, item, addresses) for item in value)
        if all(isinstance(member, TensorSpec) for member in members):
            return members
    raise _refuse(param, value, "a sequence of device tensors")


def _scalar(param: Param, value: Any, _: list[int]) -> Argument:
    if type(value) is float:
        return ScalarSpec(value)
    if value is None or isinstance(value, ScalarSpec):
        return value
    if (raw := _descriptor(value)) is not None:
        return raw
    try:
        plain = value.item() if hasattr(value, "item") else value
    except (TypeError, ValueError, RuntimeError):  # an array of several, as numpy and torch say it
        plain = None
    if isinstance(plain, (bool, int, float, complex)):
        return ScalarSpec(plain)
    raise _refuse(param, value, "a number or ScalarSpec")


def _scalar_list(param: Param, value: Any, unused: list[int]) -> Argument:
    if value is None or (raw := _descriptor(value)) is not None:
        return None if value is None else raw
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return tuple(_scalar(param, item, unused) for item in value)
    raise _refuse(param, value, "a sequence of numbers")


def _array_of(item: Callable[[Param, Any], int], expected: str) -> Rule:
    element = {"ints": Kind.INT64, "bools": Kind.BOOL, "floats": Kind.FLOAT}[expected]

    def array(param: Param, value: Any, _: list[int]) -> Argument:
        if value is None or (raw := _descriptor(value)) is not None:
            return None if value is None else raw
        member = Param(param.name, param.type, element)
        try:
            return tuple(item(member, entry) for entry in value)
        except TypeError as error:
            if isinstance(error, ArgumentError):
                raise
            raise _refuse(param, value, f"a sequence of {expected}") from None

    return array


def _string(param: Param, value: Any, unused: list[int]) -> Argument:
    if param.direction is Direction.OUT:  # memory for a text: what is written to a copy is lost
        if isinstance(value, (str, bytes)):
            raise _refuse(param, value, "a buffer to write to, such as bytearray(64), or None")
        return _pointer(param, value, unused)
    if not param.type.startswith("const ") and not isinstance(value, (str, bytes, type(None))):
        return _memory(param, value)  # a header that does not say which way its text goes
    data = value.encode() if isinstance(value, str) else value
    if data is not None and not isinstance(data, bytes):
        raise _refuse(param, value, "a string or None")
    if data is not None and b"\0" in data:
        raise ArgumentError(f"{param.name}: {value!r} holds a NUL, which ends a C string")
    return data


def _memory(param: Param, value: Any) -> int:
    try:
        return address_of(ffi.from_buffer(value, require_writable=True))
    except (TypeError, BufferError):
        raise _refuse(param, value, "a string, None or a writable buffer") from None


def _pointer(param: Param, value: Any, _: list[int]) -> Argument:
    if value is None:
        return 0
    if isinstance(value, (RawHandle, int)) or hasattr(value, "handle"):
        return value.address if isinstance(value, RawHandle) else words.handle(param, value)
    if hasattr(value, "address"):
        return int(value.address)
    if not getattr(getattr(value, "dtype", None), "isnative", True):
        raise _refuse(param, value, "an array in this machine's byte order")
    try:
        return address_of(ffi.from_buffer(value))
    except TypeError:
        raise _refuse(param, value, "an address, a buffer such as a numpy array, or None") from None


def _unsupported(param: Param, value: Any, _: list[int]) -> Argument:
    raise UnsupportedSignatureError(
        f"{param.name}: {param.type} is passed as {param.kind.value}, which these bindings do not "
        f"support; got {value!r}"
    )


def _word(convert: Callable[[Param, Any], int]) -> Rule:
    return lambda param, value, _: convert(param, value)


_RULES: Final[Mapping[Kind, Rule]] = {
    Kind.TENSOR: _tensor,
    Kind.TENSOR_LIST: _tensor_list,
    Kind.SCALAR: _scalar,
    Kind.SCALAR_LIST: _scalar_list,
    Kind.INT_ARRAY: _array_of(words.integer, "ints"),
    Kind.BOOL_ARRAY: _array_of(words.boolean, "bools"),
    Kind.FLOAT_ARRAY: _array_of(words.real, "floats"),
    Kind.BOOL: _word(words.boolean),
    Kind.STRING: _string,
    Kind.HANDLE: _word(words.handle),
    Kind.EXECUTOR: _pointer,
    Kind.POINTER: _pointer,
    Kind.FUNCTION: _pointer,
    Kind.STRUCT: _unsupported,
    Kind.VARARGS: _unsupported,
    Kind.VOID: _unsupported,
    **{kind: _word(words.integer) for kind in words.INTEGERS},
    **{kind: _word(words.real) for kind in words.FLOATS},
}


def rule_of(param: Param, enums: Enums) -> Rule:
    """How values for `param` become arguments: (param, value, addresses) → argument.

    The storage address of each array goes to `addresses`. ArgumentError names the parameter, what
    it got and what it takes.
    """
    if param.kind is Kind.ENUM:
        return lambda param, value, _: words.enumerator(param, value, enums)
    return _RULES[param.kind]


def float_array(values: Sequence[int]) -> bytes:
    """The bytes of a FLOAT_ARRAY argument, whose members are bits."""
    return struct.pack(f"<{len(values)}I", *values)


def name_of(param: Param, at: int) -> str:
    """The parameter's name as Python can write it; those that C leaves unnamed are counted."""
    return param.name if param.name.isidentifier() and not iskeyword(param.name) else f"arg{at}"


def bind(
    name: str,
    params: Sequence[Param],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    hosts: Collection[str] = (),
) -> list[Any]:
    """Values in parameter order; a host output (one of `hosts`) left out becomes a `HostCell`.

    Parameters count by position; names serve keywords only, as they differ between CANN versions.
    """
    if len(args) > len(params):
        raise ArgumentError(f"{name}: {len(args)} arguments for {len(params)} parameters")
    values, left, missing = list(args), dict(kwargs), []
    for at, param in enumerate(params):
        if at < len(args):
            if param.name in left:
                raise ArgumentError(f"{name}: {param.name} given by position and by name")
        elif param.name in left:
            values.append(left.pop(param.name))
        elif (label := name_of(param, at)) in left:
            values.append(left.pop(label))
        elif param.name in hosts:
            values.append(HostCell())
        elif param.optional and param.kind in POINTERS:
            values.append(None)
        else:
            missing.append(param.name)
    if left or missing:
        raise ArgumentError(_mismatch(name, params, missing, list(left)))
    return values


def host_outputs(params: Sequence[Param], declared: Declarations) -> frozenset[str]:
    """Names of pointers to a number, pointer or text that the call writes: `uint64_t *size`."""
    return frozenset(p.name for p in params if _is_host_output(p, declared))


def _is_host_output(param: Param, declared: Declarations) -> bool:
    if param.kind not in (Kind.POINTER, Kind.STRING) or param.direction is not Direction.OUT:
        return False
    if not param.type.endswith("*") or param.type.startswith("const "):
        return False
    pointee = param.type[:-1].strip()
    if pointee.endswith("*"):
        return True
    if param.kind is Kind.STRING:
        return True
    kind = kind_of(pointee, declared.typedefs, declared.enums, declared.structs)
    return kind in words.INTEGERS | words.FLOATS | {Kind.BOOL, Kind.ENUM, Kind.HANDLE}


def _mismatch(name: str, params: Sequence[Param], missing: list[str], unknown: list[str]) -> str:
    parts = []
    if missing:
        parts.append(f"missing {', '.join(missing)}")
    if unknown:
        parts.append(f"no parameter named {', '.join(unknown)}")
    expected = ", ".join(f"{p.name}: {p.kind.value}" for p in params)
    return f"{name}: {'; '.join(parts)}; expected ({expected})"
