"""Says for every function whether it is declared, installed and the same; loads no library.

PRESENT: declared and exported. MISSING: declared, exported by no library of the install.
UNDECLARED: exported under one of CANN's prefixes, declared by no header. DRIFTED: declared
differently from the catalog of the install's version, so one of the two is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Final

from ..install.describe import LibraryFile
from ..install.elf import Elf, read, undefined
from ..install.machine import misfit
from ..interface.compare import Change, Types
from ..interface.signature import WORKSPACE_SUFFIX, Declarations

# Prefixes of public C functions (headers of 8.1.RC1 and 2026-08).
PUBLIC: Final = re.compile(r"(acl|Acl|Hccl|hi_mpi_)[A-Za-z0-9_]*$")


class Status(Enum):
    """What is known of one function (see the module's text)."""

    PRESENT = "PRESENT"
    MISSING = "MISSING"
    UNDECLARED = "UNDECLARED"
    DRIFTED = "DRIFTED"


@dataclass(frozen=True, slots=True)
class ExportedFunction:
    """One function: the library that a caller would get it from, and those it shadows there."""

    name: str
    status: Status
    library: str = ""
    header: str = ""
    shadowed: tuple[str, ...] = ()
    drift: Change | None = None


@dataclass(frozen=True, slots=True)
class CensusOp:
    """One operator: `installed` both phases exported, `declared` both declared, `callable` both,
    undrifted, and in a library whose file is sound."""

    name: str
    installed: bool
    declared: bool
    callable: bool
    library: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Census:
    """Every function and operator of one install, by name."""

    functions: Mapping[str, ExportedFunction]
    ops: Mapping[str, CensusOp]

    def count(self, status: Status) -> int:
        return sum(f.status is status for f in self.functions.values())


def take(
    files: Iterable[tuple[LibraryFile, Elf]],
    declared: Declarations | None,
    reference: Declarations | None,
) -> Census:
    """The census of an install from its libraries' tables in search order, first provider wins."""
    files = list(files)
    providers: dict[str, list[str]] = {}
    for library, elf in files:
        for name in elf.exports:
            providers.setdefault(name, []).append(str(library.path))
    functions = dict(sorted(_functions(providers, declared, reference).items()))
    unusable = {str(lib.path): _problem(elf) for lib, elf in files}
    return Census(functions, _ops(functions, unusable))


def _problem(elf: Elf) -> str:
    if elf.fatal:
        return elf.problem
    problem = misfit(elf)
    return problem.reason if problem else ""


def _functions(
    providers: Mapping[str, list[str]],
    declared: Declarations | None,
    reference: Declarations | None,
) -> dict[str, ExportedFunction]:
    known = declared.functions if declared else {}
    types = Types(reference, declared) if reference and declared else None
    functions: dict[str, ExportedFunction] = {}
    for name, signature in known.items():
        if not signature.exported:
            continue
        where = providers.get(name, [])
        drift = None
        if types and reference and name in reference.functions:
            drift = types.function(reference.functions[name], signature)
        status = Status.PRESENT if where else Status.MISSING
        if drift and where:
            status = Status.DRIFTED
        first, rest = (where[0], tuple(where[1:])) if where else ("", ())
        functions[name] = ExportedFunction(name, status, first, signature.header, rest, drift)
    for name, where in providers.items():
        if name not in known and PUBLIC.match(name):
            functions[name] = ExportedFunction(
                name, Status.UNDECLARED, where[0], "", tuple(where[1:])
            )
    return functions


def _ops(
    functions: Mapping[str, ExportedFunction], unusable: Mapping[str, str]
) -> dict[str, CensusOp]:
    ops: dict[str, CensusOp] = {}
    for name in functions:
        first, second = functions.get(name + WORKSPACE_SUFFIX), functions[name]
        if first is not None and name.startswith("acl"):
            ops[name] = _op(name, first, second, unusable)
    return ops


def _op(
    name: str, first: ExportedFunction, second: ExportedFunction, unusable: Mapping[str, str]
) -> CensusOp:
    pair = (first, second)
    missing = [f.name for f in pair if not f.library]
    undeclared = [f.name for f in pair if f.status is Status.UNDECLARED]
    drifted = [f.drift for f in pair if f.drift and f.drift.effect == "breaks ABI"]
    broken = next((unusable[f.library] for f in pair if unusable.get(f.library)), "")
    if missing:
        reason = f"{' and '.join(missing)} not exported"
    elif undeclared:
        reason = f"{' and '.join(undeclared)} not declared: its signature is unknown"
    elif drifted:
        reason = f"header differs from this version's catalog: {drifted[0].detail}"
    elif first.library != second.library:
        reason = f"phases in two libraries: {first.library} and {second.library}"
    else:
        reason = f"{Path(second.library).name} {broken}" if broken else ""
    return CensusOp(
        name, not missing, not undeclared, not reason, second.library or first.library, reason
    )


def unlinked(
    library: LibraryFile, files: Iterable[tuple[LibraryFile, Elf]]
) -> tuple[str, str] | None:
    """A function of another library of the install that `library` calls without naming that
    library as needed, and the library's name: loaded by itself, it does not find it."""
    tables = {lib.name: table for lib, table in files if lib.role != "custom"}
    waiting, reached = [*read(library.path).needed], set[str]()
    while waiting:
        name = waiting.pop()
        if name in tables and name not in reached:
            reached.add(name)
            waiting += tables[name].needed
    provided = {n for name in reached for n in tables[name].exports}
    for symbol in sorted(undefined(library.path) - provided):
        for name, table in tables.items():
            if symbol in table.exports:
                return symbol, name
    return None


def restrict(census: Census, failed: Mapping[str, str]) -> Census:
    """`census` in which no operator of a library in `failed` (path → reason) is callable."""
    ops = {
        name: replace(op, callable=False, reason=f"{Path(op.library).name} {failed[op.library]}")
        if op.callable and op.library in failed
        else op
        for name, op in census.ops.items()
    }
    return Census(census.functions, ops)
