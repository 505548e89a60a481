"""Owns plans in Python: making one from checked arguments, and launching it."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ..errors import ArgumentError, ClosedHandleError
from ..interface.abi import unqualified
from ..interface.dtypes import canonical
from ..interface.signature import Kind, OpSignature, Param, Signature
from ..runtime.accounting import account
from ..runtime.native import address_of, ffi, lib, throw
from ..runtime.words import FLOATS
from .marshal import Argument
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

    address: int
    name: str

    __slots__ = ("_allocated", "_close", "_free", "_functions", "_handle", "_places", "_runtime",
                 "_session", "_words", "address", "arguments", "inputs", "name",
                 "outputs")  # fmt: skip

    def __init__(
        self, runtime: Runtime, name: str, arguments: Sequence[Argument],
        functions: tuple[int, int], words: Sequence[int], allocated: list[bool],
        places: dict[int, int],
    ) -> None:  # fmt: skip
        """A plan of the functions at two addresses; `allocated`: which tensors, in declaration
        order, a launch allocates; `places`: where in `words` each scalar among the arguments is.
        AclError when a constant of the call is refused."""
        self._functions, self._places = functions, places
        self._words = array("Q", words)
        self._runtime, self.name, self.arguments = runtime, name, arguments
        self._close, self._free = lib.mt_plan_close, lib.mt_plan_free
        self._allocated = allocated
        self.outputs: int = sum(allocated)
        self.inputs: int = len(allocated) - self.outputs
        # Read before a handle is taken: a plan of the session before must not be called valid.
        self._session = int(lib.mt_session())
        about = _call_text(name, arguments).encode()
        numbers = ffi.from_buffer(_WORDS, self._words)
        handle = lib.mt_plan_make(name.encode(), about, *functions, numbers, len(words))
        self.address = self._handle = int(handle)
        if not self._handle:
            throw(runtime.codes, op=name)

    def with_scalars(self, scalars: Mapping[int, ScalarSpec]) -> Plan:
        """The plan of the same call with other scalars, by their places among the arguments.

        For numbers that change at each call, as a schedule's: nothing else is looked at again.
        """
        self._runtime.start()
        words, arguments = self._words[:], list(self.arguments)
        for at, scalar in scalars.items():
            place = self._places[at]
            words[place : place + 3] = array("Q", scalar_words(self._runtime.dtypes, scalar))
            arguments[at] = scalar
        return Plan(
            self._runtime, self.name, tuple(arguments), self._functions, words,
            self._allocated, self._places,
        )  # fmt: skip

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
        slots = ffi.new(
            "uint64_t[]",
            [0 if is_own_buffer else next(buffers) for is_own_buffer in self._allocated],
        )
        if not lib.mt_run(self.address, stream.address, slots, len(self._allocated)):
            self.throw(stream)
        return tuple(
            int(slot)
            for slot, is_own_buffer in zip(slots, self._allocated, strict=True)
            if is_own_buffer
        )

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
        if getattr(self, "_handle", 0):
            self._free(self._handle)


_WORDS: Final = ffi.typeof("uint64_t[]")
_MASK: Final = (1 << 64) - 1


def roles_of(signature: Signature, phase: int) -> dict[int, int]:
    """Parameter index → role in the two-phase protocol, for the last parameter of each type."""
    roles: dict[int, int] = {}
    for ctype, role in _ROLES[phase].items():
        for at in range(len(signature.params) - 1, -1, -1):
            if unqualified(signature.params[at].type) == ctype:
                roles[at] = role
                break
    return roles


# Phase, parameter and, if it has a role in the protocol, the words that say so.
Recipe = tuple[tuple[int, Param, tuple[int, ...] | None], ...]


def recipe_of(op: OpSignature) -> Recipe:
    """What the two phases of an operator take, in declaration order: the same for each plan."""
    return tuple(
        (phase, param, (lib.MT_WORD_ROLE, phase, roles[at]) if at in roles else None)
        for phase, signature in ((1, op.workspace), (2, op.execute))
        for roles in (roles_of(signature, phase),)
        for at, param in enumerate(signature.params)
    )


class PlanMaker:
    """Turns arguments into the words of a plan, in declaration order; see mt_word in api.h."""

    def __init__(self, runtime: Runtime, name: str, functions: tuple[int, int]) -> None:
        self._runtime, self._name, self._functions = runtime, name, functions
        self._dtypes, self._formats = runtime.dtypes, runtime.formats
        self._words: list[int] = []
        self._allocated: list[bool] = []
        self._kept: list[Any] = []
        self._places: dict[int, int] = {}

    def make(self, recipe: Recipe, arguments: Sequence[Argument], allocate: frozenset[str]) -> Plan:
        """The plan; `arguments` are phase 1's in order, then the extra ones of phase 2."""
        remaining = enumerate(arguments)
        for phase, param, role in recipe:
            if role is not None:
                self._words += role
                continue
            at, value = next(remaining)
            if isinstance(value, ScalarSpec):
                self._places[at] = len(self._words) + 1
            if isinstance(value, TensorSpec) and phase == 1:
                self._words.append(lib.MT_WORD_TENSOR)
                self._tensor(value, param.name in allocate)
            else:
                self._argument(phase, param, value, param.name in allocate)
        return Plan(
            self._runtime, self._name, tuple(arguments), self._functions, self._words,
            self._allocated, self._places,
        )  # fmt: skip

    def _argument(self, phase: int, param: Param, value: Argument, allocate: bool) -> None:
        if value is None or isinstance(value, (int, RawHandle)):
            bits = value.address if isinstance(value, RawHandle) else value or 0
            self._words += (lib.MT_WORD_VALUE, phase, param.kind in FLOATS, bits & _MASK)
        elif isinstance(value, bytes):
            self._kept.append(ffi.new("char[]", value))
            self._words += (lib.MT_WORD_TEXT, phase, address_of(self._kept[-1]))
        elif phase == 2 or isinstance(value, TensorSpec):
            raise _no_number(param, value)
        elif isinstance(value, ScalarSpec):
            self._words += (lib.MT_WORD_SCALAR, *scalar_words(self._dtypes, value))
        else:
            self._collection(param.kind, value, allocate)

    def _collection(self, kind: Kind, values: tuple[Any, ...], allocate: bool) -> None:
        self._words += (_LISTS[kind], len(values))
        if kind is Kind.TENSOR_LIST:
            for spec in values:
                self._tensor(spec, allocate)
        elif kind is Kind.SCALAR_LIST:
            for spec in values:
                self._words += scalar_words(self._dtypes, spec)
        else:
            self._words += [value & _MASK for value in values]

    def _tensor(self, spec: TensorSpec, allocate: bool) -> None:
        storage = spec.storage_shape or (spec.storage_numel,)
        self._allocated.append(allocate)
        self._words += (
            len(spec.shape), len(storage), spec.offset, self._dtype(spec.dtype),
            self._format(spec.format), max(spec.nbytes, 1) if allocate else 0,
            *spec.shape, *spec.strides, *storage,
        )  # fmt: skip

    def _dtype(self, name: str) -> int:
        return _dtype_word(self._dtypes, name)

    def _format(self, name: str) -> int:
        return _lookup(self._formats, name.removeprefix("ACL_FORMAT_"), "format")


def scalar_words(dtypes: dict[str, int], spec: ScalarSpec) -> tuple[int, ...]:
    """A scalar as the words of a plan tell it: its dtype and 16 bytes of value."""
    return (_dtype_word(dtypes, spec.dtype), *_PAIR.unpack(spec.data.ljust(16, b"\0")))


def _dtype_word(dtypes: dict[str, int], name: str) -> int:
    known = dtypes.get(name)
    return _lookup(dtypes, canonical(name), "dtype") if known is None else known & _MASK


_PAIR: Final = struct.Struct("<QQ")
_LISTS: Final = {
    Kind.TENSOR_LIST: lib.MT_WORD_TENSORS,
    Kind.SCALAR_LIST: lib.MT_WORD_SCALARS,
    Kind.INT_ARRAY: lib.MT_WORD_INTS,
    Kind.BOOL_ARRAY: lib.MT_WORD_BOOLS,
    Kind.FLOAT_ARRAY: lib.MT_WORD_FLOATS,
}


def _no_number(param: Param, value: Argument) -> ArgumentError:
    return ArgumentError(f"{param.name}: phase 2 takes numbers and pointers, got {value!r}")


def _call_text(name: str, arguments: Sequence[Argument]) -> str:
    """The call as errors tell it: `aclnnAdd(FLOAT[2, 3], FLOAT[3])`."""
    return f"{name}({', '.join([f'{s.dtype}{[*s.shape]}' for s in tensor_specs(arguments)])})"


def _lookup(table: dict[str, int], name: str, what: str) -> int:
    if name not in table:
        raise ArgumentError(
            f"{what} {name!r}: this install's headers have {', '.join(table) or 'none'}"
        )
    return table[name] & _MASK
