"""Says which variables of CANN, HCCL and torch_npu have values that their documents do not allow.

The rows are data, `variables.json`: name, rule, what the rule takes, severity, fix, source. Refuses
to judge what a value of the right form does to a program.
"""

from __future__ import annotations

import errno
import json
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from ..install.file_queries import exists, is_dir, text


class VariableRow(NamedTuple):
    """One rule for one variable."""

    name: str
    rule: str
    takes: str
    severity: Literal["error", "warning", "note"]
    fix: str
    source: str


@cache
def rows() -> tuple[VariableRow, ...]:
    """Every rule, in the order in which they are tried."""
    data = json.loads(Path(__file__).with_name("variables.json").read_text(encoding="utf-8"))
    return tuple(VariableRow(*row) for row in data)


def misset(environ: Mapping[str, str]) -> Iterator[tuple[VariableRow, str]]:
    """Rules that a variable of `environ` does not keep, each with what is wrong."""
    for row in rows():
        value = environ.get(row.name)
        if value is not None and (wrong := RULES[row.rule](value, row.takes, environ)):
            yield row, f"{row.name} {wrong}"


def _integer(value: str, takes: str, _environ: Mapping[str, str]) -> str:
    low, high = map(int, takes.split())
    if not re.fullmatch(r"[+-]?\d{1,20}", value.strip()):
        return f"is {value!r}, no number"
    return "" if low <= int(value) <= high else f"is {value}: {low} to {high} are allowed"


def _below(value: str, takes: str, environ: Mapping[str, str]) -> str:
    other = environ.get(takes, "")
    if not (value.isdecimal() and other.isdecimal()) or int(value) == 0:
        return ""
    return f"({value}) is below {takes} ({other})" if int(value) < int(other) else ""


def _beside(_value: str, takes: str, environ: Mapping[str, str]) -> str:
    return f"is set beside {takes}" if takes in environ else ""


def _equals(value: str, takes: str, _environ: Mapping[str, str]) -> str:
    return f"is {value}" if value == takes else ""


def _one(value: str, takes: str, _environ: Mapping[str, str]) -> str:
    return "" if value in takes.split() else f"is {value!r}"


def _devices(value: str, _takes: str, _environ: Mapping[str, str]) -> str:
    numbers = [part.strip() for part in value.split(",")]
    if value.strip() == "":
        return "is empty: this process sees no device"
    if not all(part.isdecimal() for part in numbers):
        return f"is {value!r}, no list of device numbers"
    return f"names a device twice: {value}" if len(set(numbers)) < len(numbers) else ""


def _options(value: str, takes: str, _environ: Mapping[str, str]) -> str:
    for option in filter(None, map(str.strip, value.split(","))):
        name, _, setting = option.partition(":")
        if name.strip() not in takes.split():
            return f"has the option {name!r}, which nobody knows"
        if not setting.strip():
            return f"has the option {name!r} without a value"
    return ""


def _address(value: str, _takes: str, _environ: Mapping[str, str]) -> str:
    family = socket.AF_INET6 if ":" in value else socket.AF_INET
    try:
        packed = socket.inet_pton(family, value.partition("%")[0])
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((socket.inet_ntop(family, packed), 0))
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            return f"is {value}, no address of this host"
        return f"is {value!r}, no address" if error.errno is None else ""
    return ""


def _interface(value: str, _takes: str, _environ: Mapping[str, str]) -> str:
    """Names after `^` are left out, after `=` are whole, else begin an interface's name."""
    names = [name for _, name in socket.if_nameindex()]
    for part in value.lstrip("^").removeprefix("=").split(","):
        whole = value.startswith(("=", "^="))
        if not any(name == part or (not whole and name.startswith(part)) for name in names):
            return f"names {part!r}, no interface of this host ({', '.join(names)})"
    return ""


def _table(value: str, _takes: str, _environ: Mapping[str, str]) -> str:
    if not exists(Path(value)):
        return f"names {value}, which does not exist"
    try:
        table = json.loads(text(Path(value)))
    except (ValueError, RecursionError):
        return f"names {value}, which is no JSON"
    return "" if isinstance(table, dict) else f"names {value}, which is no rank table"


def _folder(value: str, _takes: str, _environ: Mapping[str, str]) -> str:
    path = Path(value).expanduser()
    if not exists(path):
        return ""  # CANN makes it
    if not is_dir(path):
        return f"names {value}, which is no folder"
    return "" if os.access(path, os.W_OK) else f"names {value}, which this user may not write"


def _exists(value: str, _takes: str, _environ: Mapping[str, str]) -> str:
    return "" if not value or exists(Path(value)) else f"names {value}, which does not exist"


RULES: Final[Mapping[str, Callable[[str, str, Mapping[str, str]], str]]] = {
    "integer": _integer, "below": _below, "beside": _beside, "is": _equals, "one": _one,
    "devices": _devices,
    "options": _options, "address": _address, "interface": _interface, "table": _table,
    "folder": _folder, "exists": _exists,
}  # fmt: skip
