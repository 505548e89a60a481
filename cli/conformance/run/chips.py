"""Owns what `npu-smi` says of chips, or DCMI: identity, health counters, processes on them.

Nothing here fails or waits for long: what the tool does not say, or not in time, is absent.
Formats: Huawei, npu-smi command reference (hiascend.com, Atlas A2 and A3; `info -m` and `info -t
board`, `temp`, `power`, `usages`, `health`, `ecc`, `proc-mem`): a table under its column names, or
lines of `name : value`, with NA for what is unknown.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from . import dcmi
from .process import Setup

# Names the tool where it is in no usual place, and lets a simulator have one.
COMMAND: Final = "MINDTORCH_NPU_SMI"
_FOLDERS: Final = "/usr/local/bin:/usr/local/sbin"
_SECONDS: Final = 5.0  # for one question; who does not answer in time is asked no more
_SHARE: Final = 0.25  # of the time until a deadline, for all questions
_END_SECONDS: Final = 1.0  # a process in the driver outlives SIGKILL: it is left alone
_BYTES: Final = 1 << 20
_JOBS: Final = 16
_ABSENT: Final = frozenset(("", "NA", "N/A", "-"))
_IDENTITY: Final = {
    "serial": ("serial number",), "slot": ("slot id",), "bus_id": ("pcie bus info",),
    "firmware": ("firmware version",), "driver": ("software version",),
    "die": ("vdie id", "ddie id", "die id"), "model": ("chip name", "product name"),
}  # fmt: skip
# Names of counters in reports; those of ECC keep npu-smi's own, in lower case.
TEMPERATURE: Final = "temperature (C)"
POWER: Final = "power (W)"
HBM_USAGE: Final = "HBM usage (%)"
_HEALTH: Final = {
    TEMPERATURE: ("npu temperature (c)", "npu temperature(c)", "temperature (c)", "temperature(c)"),
    POWER: ("npu real-time power(w)", "power dissipation(w)"),
    HBM_USAGE: ("hbm usage rate(%)",),
    "HBM capacity (MB)": ("hbm capacity(mb)",),
}  # fmt: skip
_STATE: Final = ("health", "health status")
_PROCESS: Final = re.compile(
    r"Process id:\s*(\d+)\s+Process name:\s*(.*?)\s*Process memory\(MB\):\s*(\d+)"
)


class SilentToolError(Exception):
    """The tool gave no answer in time."""


@dataclass(frozen=True, slots=True)
class ChipAddress:
    """A chip as npu-smi counts them: its card (NPU ID), and which one of that card."""

    card: str
    number: str = ""

    @property
    def of_card(self) -> list[str]:
        return ["-i", self.card]

    @property
    def of_chip(self) -> list[str]:
        return [*self.of_card, *(["-c", self.number] if self.number else [])]


def command(setup: Setup) -> list[str]:
    """How to start the tool for the chips of `setup`; empty where there is none."""
    named = os.environ.get(COMMAND)
    if named is not None:
        return shlex.split(named)
    if setup.simulator or not setup.device.startswith(("npu", "all")):
        return []
    path = shutil.which("npu-smi") or shutil.which("npu-smi", path=_FOLDERS)
    return [path] if path else []


def read(
    devices: Sequence[str], setup: Setup, identity: bool = True
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """What is known of each device now: facts such as its serial number (with `identity`),
    `health`, and `processes` of others. {} where there is no tool."""
    tool, npus = command(setup), [d for d in devices if d.startswith("npu")]
    visible = {**os.environ, **setup.environ}.get("ASCEND_RT_VISIBLE_DEVICES", "")
    if not npus:
        return {}
    end = time.monotonic() + _SHARE * setup.left
    try:
        addresses = mapping(_answer(tool, ["info", "-m"], end)) if tool else {}
    except SilentToolError:
        return {}
    if not addresses:
        return _by_library({d: _logical(d, visible) for d in npus}, setup, identity, end)
    there = {d: a for d in npus if (a := addresses.get(_logical(d, visible)))}
    with ThreadPoolExecutor(_JOBS) as pool:
        facts = pool.map(lambda address: _chip(tool, address, identity, end), there.values())
        return {device: chip for device, chip in zip(there, facts, strict=True) if chip}


def _by_library(
    numbers: Mapping[str, int], setup: Setup, identity: bool, end: float
) -> dict[str, dict[str, Any]]:
    """What DCMI says where there is no npu-smi, as in most containers."""
    if not dcmi.library() or (setup.simulator and dcmi.LIBRARY not in os.environ):
        return {}
    words = [str(number) for number in numbers.values() if number >= 0]
    try:
        text = _answer([sys.executable, "-m", dcmi.__name__], words, end)
    except SilentToolError:
        return {}
    known = json.loads(text) if text else {}
    return {
        device: {k: v for k, v in chip.items() if v and (identity or k == "health")}
        for device, number in numbers.items() if (chip := known.get(str(number)))
    }  # fmt: skip


def _logical(device: str, visible: str) -> int:
    """The logical number of `npu:1` where the runtime shows it only some devices."""
    index = int(device.partition(":")[2] or 0)
    visible_ids = [int(word) for word in visible.split(",") if word.strip().isdecimal()]
    if not visible_ids:
        return index
    return visible_ids[index] if index < len(visible_ids) else -1


def mapping(text: str) -> dict[int, ChipAddress]:
    """Addresses of chips by their logical numbers, of `npu-smi info -m`."""
    addresses: dict[int, ChipAddress] = {}
    columns: list[str] = []
    for line in text.splitlines():
        cells = re.split(r"\s{2,}|\t", line.strip())
        if "NPU ID" in cells:
            columns = cells
            continue
        row = dict(zip(columns, cells, strict=False))
        logical = row.get("Chip Logic ID", row.get("Chip Phy-ID", ""))
        if logical.isdecimal() and row["NPU ID"].isdecimal():
            addresses[int(logical)] = ChipAddress(row["NPU ID"], row.get("Chip ID", ""))
    return addresses


def _answer(tool: Sequence[str], words: Sequence[str], end: float) -> str:
    """What the tool prints, before `end`; "" where it fails. A file, no pipe: whoever holds that is
    not waited for."""
    seconds = min(_SECONDS, end - time.monotonic())
    if seconds <= 0:
        raise SilentToolError
    with tempfile.TemporaryFile() as out:
        try:
            child = subprocess.Popen([*tool, *words], stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        except OSError:
            return ""
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_END_SECONDS)
            raise SilentToolError from None
        out.seek(0)
        return "" if code else out.read(_BYTES).decode("utf-8", "replace")


def _chip(tool: Sequence[str], address: ChipAddress, identity: bool, end: float) -> dict[str, Any]:
    """All that is known of a chip until the tool falls silent."""
    chip: dict[str, Any] = {}
    with contextlib.suppress(SilentToolError):
        if identity:
            card = fields(_answer(tool, ["info", "-t", "board", *address.of_card], end))
            chip_board = fields(_answer(tool, ["info", "-t", "board", *address.of_chip], end))
            chip |= _named({**card, **chip_board}, _IDENTITY)
        health = chip.setdefault("health", {})
        for kind in ("temp", "power", "usages", "health", "ecc"):
            values = fields(_of_chip(tool, kind, address, end))
            if kind == "ecc":
                health |= {name: n for name, v in values.items() if (n := _number(v)) is not None
                           and ("bit" in name or "page" in name)}  # fmt: skip
            health |= {k: n for k, v in _named(values, _HEALTH).items()
                       if (n := _number(v)) is not None}  # fmt: skip
            health |= _named(values, {"state": _STATE})
        processes = list(_processes(_of_chip(tool, "proc-mem", address, end)))
        chip |= {"processes": processes} if processes else {}
    return {name: value for name, value in chip.items() if value}


def _of_chip(tool: Sequence[str], kind: str, address: ChipAddress, end: float) -> str:
    """An answer about a chip; of a product whose tool takes no chip, about its card."""
    return _answer(tool, ["info", "-t", kind, *address.of_chip], end) or _answer(
        tool, ["info", "-t", kind, *address.of_card], end
    )


def fields(text: str) -> dict[str, str]:
    """Lines of `name : value`, names in lower case, the first of each name; none that is NA."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and value.strip() not in _ABSENT:
            values.setdefault(" ".join(name.lower().split()), value.strip())
    return values


def _named(values: Mapping[str, str], names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What reports call a field, and the first of its spellings that is there."""
    known = {ours: [values[name] for name in spellings if name in values]
             for ours, spellings in names.items()}  # fmt: skip
    return {ours: texts[0] for ours, texts in known.items() if texts}


def _number(text: str) -> float | int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    if not abs(value) < 1e18:
        return None
    return int(value) if value == int(value) else value


def _processes(text: str) -> Iterator[dict[str, Any]]:
    """Processes on a chip that this one did not start; their names, never their arguments."""
    for pid, name, memory in _PROCESS.findall(text):
        if not _is_ours(int(pid)):
            user = _user(int(pid))
            yield {"pid": int(pid), "name": name, "memory_mb": int(memory),
                   **({"user": user} if user else {})}  # fmt: skip


def _is_ours(pid: int) -> bool:
    """Whether a process is this one, or has it among its ancestors (proc_pid_stat(5))."""
    for _ in range(64):
        if pid == os.getpid():
            return True
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
            pid = int(stat.rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


def _user(pid: int) -> str:
    """Whose process it is; "" where this host's /proc does not show it."""
    try:
        number = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return ""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
