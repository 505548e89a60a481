"""Owns asking a C++ compiler whether parsed headers mean what we say they mean."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from aclnn_bindings.interface.headers.symbols import enum_type
from aclnn_bindings.interface.signature import Declarations, Signature, Struct

COMPILER = shutil.which("g++") or shutil.which("c++")
_GUARD = re.compile(r"^\s*#\s*ifndef\s+(\w+)", re.M)
_ERROR = re.compile(r"^(\S[^:\n]*):(\d+):(?:\d+:)? (?:fatal )?error: (.*)", re.M)
_UNKNOWN = re.compile(r"not declared|has not been declared|does not name a type")
# acl_dvpp.h stops with #error unless this is defined.
_DEFINES = ["-DENABLE_DVPP_INTERFACE"]
_PRELUDE = """\
#include <cstddef>
#include <cstdint>
#include <type_traits>
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
namespace truth {
constexpr bool same(const char *a, const char *b) {
  while (*a && *a == *b) { ++a; ++b; }
  return *a == *b;
}
}
"""


@dataclass
class Verdict:
    """What the compiler said: claims checked, claims it refused, headers it cannot compile."""

    checked: int = 0
    wrong: list[str] = field(default_factory=list)
    not_compiled: dict[str, str] = field(default_factory=dict)


def _function(name: str, signature: Signature) -> str:
    # A cast to the very type also picks it where C++ adds overloads.
    types = ", ".join(p.type for p in signature.params)
    return f"static_assert(sizeof(static_cast<{signature.returns} (*)({types})>(&::{name})) == 8);"


def _number(name: str, value: int | float | str) -> str:
    if isinstance(value, str):
        return f'static_assert(truth::same({name}, "{value}"));'
    if isinstance(value, float):
        return f"static_assert(({name}) == {value!r});"
    if value >= 0:
        return f"static_assert((unsigned long long)({name}) == {value}ULL);"
    return f"static_assert((long long)({name}) == {value}LL - 0);"


def _struct(name: str, struct: Struct) -> Iterator[str]:
    outer, _, member = name.rpartition(".")
    member = f"std::remove_all_extents_t<decltype({outer.replace('.', '::')}::{member})>"
    spelled = member if outer else name
    if outer.count("."):
        return
    yield f"static_assert(sizeof({spelled}) == {struct.size});"
    yield f"static_assert(alignof({spelled}) == {struct.align});"
    for item in struct.fields:
        if not item.bits:
            yield f"static_assert(offsetof({spelled}, {item.name}) == {item.offset});"
            if "." not in item.type and item.size:
                member = f"std::declval<{spelled}&>().{item.name}"
                yield f"static_assert(sizeof({member}) == {item.size});"


def claims(found: Declarations) -> Iterator[str]:
    """One static_assert per thing that the parser says of the headers."""
    for name, signature in found.functions.items():
        yield _function(name, signature)
    for name, members in found.enums.items():
        yield f"static_assert(sizeof({name}) == {enum_type(list(members.values()))[0]});"
        for member, value in members.items():
            # A macro of the same name hides the member.
            if found.constants.get(member, value) == value:
                yield _number(member, value)
    for name, value in found.constants.items():
        yield _number(name, value)
    for name, struct in found.structs.items():
        yield from _struct(name, struct)
    for name, target in found.typedefs.items():
        bare = re.sub(r"^(?:struct|union|enum) ", "", target)
        if bare != name:
            yield f"static_assert(std::is_same_v<{name}, {bare}>);"


def _units(headers: Iterable[Path]) -> list[list[Path]]:
    """Headers in groups without a repeated include guard, since it would empty the second."""
    groups: list[list[Path]] = []
    times: dict[str, int] = {}
    for header in headers:
        found = _GUARD.search(header.read_text("utf-8", "replace"))
        guard = found[1] if found else str(header)
        index = times.get(guard, 0)
        times[guard] = index + 1
        while len(groups) <= index:
            groups.append([])
        groups[index].append(header)
    return groups


def _compile(text: str, folders: list[Path], build: Path) -> list[tuple[str, int, str]]:
    source = build / "truth.cpp"
    source.write_text(text, encoding="utf-8")
    includes = [f"-I{f}" for f in folders]
    command = [
        str(COMPILER),
        "-std=c++17",
        "-fsyntax-only",
        "-fmax-errors=0",
        "-w",
        *_DEFINES,
        *includes,
    ]
    done = subprocess.run(
        [*command, str(source)], capture_output=True, text=True, timeout=280, check=False,
        env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    errors = [(m[1], int(m[2]), m[3]) for m in _ERROR.finditer(done.stderr)]
    if done.returncode and not errors:
        errors.append(("", 0, done.stderr[-500:]))
    return errors


def _folders(root: Path) -> list[Path]:
    return [root, *sorted({p.parent for p in root.rglob("*.h")})]


def ask(root: Path, found: Declarations, build: Path) -> Verdict:
    """Checks every claim about the headers under `root`.

    A header that the compiler refuses by itself is left out with the claims that need it.
    """
    verdict = Verdict()
    folders = _folders(root)
    headers = [root / name for name in found.sources if (root / name).is_file()]
    groups = _units(headers)
    homes = {str(h.relative_to(root)): n for n, group in enumerate(groups) for h in group}
    for number, group in enumerate(groups):
        mine = {n: s for n, s in found.functions.items() if homes.get(s.header) == number}
        part = replace(found, functions=mine) if not number else Declarations(functions=mine)
        _ask_group(group, list(claims(part)), folders, build, verdict)
    return verdict


def _compilable(group: list[Path], folders: list[Path], build: Path, verdict: Verdict) -> str:
    """Include lines of the headers of a group that the compiler accepts together."""
    while True:
        includes = "".join(f'#include "{header}"\n' for header in group)
        errors = {path: text for path, _, text in _compile(_PRELUDE + includes, folders, build)}
        if not errors:
            return _PRELUDE + includes
        refused = [h for h in group if str(h) in errors]
        if not refused:  # The error is in a header outside the group: ask one by one.
            refused = [h for h in group if _compile(f'#include "{h}"\n', folders, build)] or group
        for header in refused:
            verdict.not_compiled[str(header)] = errors.get(str(header), "by way of another header")
        group = [h for h in group if h not in refused]


def _ask_group(
    group: list[Path], wanted: list[str], folders: list[Path], build: Path, verdict: Verdict
) -> None:
    text = _compilable(group, folders, build, verdict)
    first = text.count("\n") + 1
    by_line: dict[int, list[str]] = {}
    for path, line, message in _compile(text + "\n".join(wanted) + "\n", folders, build):
        by_line.setdefault(line if path.endswith("truth.cpp") else -1, []).append(message)
    verdict.checked += len(wanted)
    for line, messages in by_line.items():
        if verdict.not_compiled and any(_UNKNOWN.search(m) for m in messages):
            verdict.checked -= 1
        else:
            claim = wanted[line - first] if line >= first else "a header"
            verdict.wrong.append(f"{claim}: {messages}")
