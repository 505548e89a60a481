"""Owns the frozen data that describes a C interface; refuses to read headers or call anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

WORKSPACE_SUFFIX: Final = "GetWorkspaceSize"


class Kind(Enum):
    """What a C parameter is, as far as passing it goes (see `abi.kind_of`)."""

    TENSOR = "tensor"
    TENSOR_LIST = "tensor_list"
    SCALAR = "scalar"
    SCALAR_LIST = "scalar_list"
    INT_ARRAY = "int_array"
    BOOL_ARRAY = "bool_array"
    FLOAT_ARRAY = "float_array"
    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    SIZE = "size"
    FLOAT = "float"
    DOUBLE = "double"
    ENUM = "enum"
    STRING = "string"
    HANDLE = "handle"
    EXECUTOR = "executor"
    POINTER = "pointer"
    FUNCTION = "function"
    STRUCT = "struct"
    VARARGS = "varargs"
    VOID = "void"


class Direction(Enum):
    """Who writes the parameter's target: the caller (IN), the callee (OUT) or both (INOUT)."""

    IN = "in"
    OUT = "out"
    INOUT = "inout"


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter: `type` is canonical C text, `dtypes` are ACL names without their prefix."""

    name: str
    type: str
    kind: Kind
    direction: Direction = Direction.IN
    optional: bool = False
    dtypes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """One C function; `exported` is False for a function defined inside its header."""

    name: str
    returns: str
    params: tuple[Param, ...]
    header: str
    line: int
    exported: bool = True
    deprecated: bool = False

    @property
    def prototype(self) -> str:
        """The function's type as C text without names, such as `int (void *, uint64_t)`."""
        return f"{self.returns} ({', '.join(p.type for p in self.params) or 'void'})"


_PHASE_ONE_TAIL: Final = ("uint64_t *", "aclOpExecutor **")
_PHASE_TWO: Final = ("void *", "uint64_t", "aclOpExecutor *", "aclrtStream")


def _bare(ctype: str) -> str:
    """`ctype` without a top-level const, which callers and the ABI do not see."""
    if ctype.endswith("*const"):
        return ctype[:-5]
    return ctype if "*" in ctype else ctype.removeprefix("const ")


def _without(params: tuple[Param, ...], names: Sequence[str]) -> tuple[Param, ...]:
    """`params` less the last parameter of each wanted type."""
    left = list(params)
    for ctype in reversed(names):
        for at in range(len(left) - 1, -1, -1):
            if _bare(left[at].type) == ctype:
                del left[at]
                break
    return tuple(left)


@dataclass(frozen=True, slots=True)
class OpSignature:
    """An operator: the pair `<name>GetWorkspaceSize` (phase 1) and `<name>` (phase 2)."""

    name: str
    workspace: Signature
    execute: Signature

    @property
    def params(self) -> tuple[Param, ...]:
        """Phase-1 parameters without the workspace size and executor outputs."""
        return _without(self.workspace.params, _PHASE_ONE_TAIL)

    @property
    def extra(self) -> tuple[Param, ...]:
        """Phase-2 parameters beyond workspace, its size, executor and stream."""
        return _without(self.execute.params, _PHASE_TWO)

    @property
    def host_outputs(self) -> tuple[Param, ...]:
        """Phase-1 parameters through which the host receives a value or a new handle."""
        return tuple(
            p for p in self.params if p.kind is Kind.POINTER and p.direction is not Direction.IN
        )

    @property
    def irregular(self) -> tuple[str, ...]:
        """Each way in which the pair departs from the standard two-phase ABI; empty if none."""
        first = tuple(_bare(p.type) for p in self.workspace.params)
        second = tuple(_bare(p.type) for p in self.execute.params)
        reasons = []
        if first[-2:] != _PHASE_ONE_TAIL:
            reasons.append(f"phase 1 ends in ({', '.join(first[-2:])})")
        if missing := [t for t in _PHASE_TWO if t not in second]:
            reasons.append(f"phase 2 lacks {', '.join(missing)}")
        if self.extra:
            reasons.append(f"phase 2 also takes {', '.join(p.name or p.type for p in self.extra)}")
        elif not missing and second != _PHASE_TWO:
            reasons.append(f"phase 2 takes ({', '.join(second)})")
        if self.host_outputs:
            reasons.append(f"host outputs {', '.join(p.name for p in self.host_outputs)}")
        for phase in (self.workspace, self.execute):
            if not phase.returns.endswith(("Status", "Error", "int", "int32_t")):
                reasons.append(f"{phase.name} returns {phase.returns}")
        return tuple(reasons)


@dataclass(frozen=True, slots=True)
class Field:
    """One member of a struct: offset and size in bytes (LP64).

    A bit-field has its width in `bits` (else 0), the size of its type, and the offset of the
    byte that it starts in.
    """

    name: str
    type: str
    offset: int
    size: int
    bits: int = 0


@dataclass(frozen=True, slots=True)
class Struct:
    """Layout of a struct or union in bytes (LP64), computed from its header."""

    name: str
    size: int
    align: int
    fields: tuple[Field, ...]
    header: str
    line: int
    union: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """A declaration that was read but not understood or not C, with the reason."""

    header: str
    line: int
    text: str
    reason: str


class OpTable(Mapping[str, OpSignature]):
    """The operators among some functions, paired by name and built when asked for."""

    def __init__(self, functions: Mapping[str, Signature]) -> None:
        self._functions = functions
        self._names = {n: None for n in functions if n + WORKSPACE_SUFFIX in functions}

    def __getitem__(self, name: str) -> OpSignature:
        if name not in self._names:
            raise KeyError(name)
        phase_one = self._functions[name + WORKSPACE_SUFFIX]
        return OpSignature(name, phase_one, self._functions[name])

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, slots=True)
class Declarations:
    """Everything a set of headers declares, by name, and what in them was not understood.

    `enums` maps an enum's name to its members; members of unnamed enums are in `constants`.
    `typedefs` maps a name to the canonical C text it stands for. `sources` are the headers read.
    """

    functions: Mapping[str, Signature] = field(default_factory=dict)
    enums: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    constants: Mapping[str, int | float | str] = field(default_factory=dict)
    typedefs: Mapping[str, str] = field(default_factory=dict)
    structs: Mapping[str, Struct] = field(default_factory=dict)
    skipped: Sequence[Skipped] = ()
    sources: Sequence[str] = ()
    ops: Mapping[str, OpSignature] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ops", OpTable(self.functions))

    def constant(self, name: str) -> int:
        """The integer value of a constant or of any enum's member; KeyError if there is none."""
        value = self.constants.get(name)
        if isinstance(value, int):
            return value
        for members in self.enums.values():
            if name in members:
                return members[name]
        raise KeyError(name)
