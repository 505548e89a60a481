"""Owns `msprof` for the simulator: profiles a program, and renders profiles as CANN's files.

Stands alone (standard library only), because clients run it by path with any Python.
Columns and event names are those that torch_npu 2.13 and CANN's performance documents read.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import database
from profiles import EVENTS, OVERLAPS, Profile, Span, columns, overlaps, read, us

DESCRIPTION = "Profile programs on the simulator, and render what profiles hold."

Event = dict[str, object]


# --- the timeline ---------------------------------------------------------------------------

LAYERS = ("CANN", "Ascend Hardware", "Communication", "Overlap Analysis")


def timeline(profile: Profile) -> list[Event]:
    """Events of Chromium's trace format, as msprof_*.json holds them."""
    events = [*_lanes(profile), *_host(profile)]
    for device in sorted({task.device for task in profile.tasks}):
        events += _device(profile, device)
        events += _overlap(profile, device)
    return events


def _pid(profile: Profile, layer: str, device: int = 0) -> int:
    return profile.process << 10 | LAYERS.index(layer) << 6 | device


def _meta(name: str, pid: int, tid: int, /, **args: object) -> Event:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": args}


def _lanes(profile: Profile) -> Iterator[Event]:
    devices = sorted({task.device for task in profile.tasks})
    lanes = [("CANN", 0, "CPU")]
    lanes += [(layer, d, f"NPU {d}") for d in devices for layer in LAYERS[1:]]
    for sort, (layer, device, label) in enumerate(lanes, start=10):
        pid = _pid(profile, layer, device)
        yield _meta("process_name", pid, 0, name=layer)
        yield _meta("process_labels", pid, 0, labels=label)
        yield _meta("process_sort_index", pid, 0, sort_index=sort)
    for device, stream in sorted({(task.device, task.stream) for task in profile.tasks}):
        for layer, name in (("Ascend Hardware", "Stream"), ("Communication", "Plane")):
            yield _meta(
                "thread_name", _pid(profile, layer, device), stream, name=f"{name} {stream}"
            )
    for device in devices:
        for thread, name in enumerate(OVERLAPS):
            yield _meta("thread_name", _pid(profile, "Overlap Analysis", device), thread, name=name)


def _slice(name: str, pid: int, tid: int, span: Span, **args: object) -> Event:
    begin, end = span
    return {"name": name, "ph": "X", "pid": pid, "tid": tid, "ts": us(begin),
            "dur": (end - begin) / 1000, "args": args}  # fmt: skip


def _host(profile: Profile) -> Iterator[Event]:
    pid = _pid(profile, "CANN")
    for call in profile.calls:
        where = "AscendCL@" if call.domain is None else "MsTx@" if call.domain else "Mark@"
        args: Event = {"Thread Id": call.thread}
        if call.domain:
            args["Domain"] = call.domain
        yield _slice(where + call.name, pid, call.thread, (call.begin, call.end), **args)
    tickets = {task.ticket for task in profile.tasks}  # marks on streams, for one, are no tasks
    for ticket, (thread, when) in profile.queued.items():
        if ticket not in tickets:
            continue
        yield {"name": "HostToDevice", "cat": "HostToDevice", "ph": "s", "id": str(ticket),
               "pid": pid, "tid": thread, "ts": us(when)}  # fmt: skip


def _device(profile: Profile, device: int) -> Iterator[Event]:
    numbers: defaultdict[int, int] = defaultdict(int)
    for task in profile.tasks:
        if task.device != device:
            continue
        numbers[task.stream] += 1
        args = {"Task Type": task.kind, "Physic Stream Id": task.stream,
                "Task Id": numbers[task.stream], "connection_id": task.ticket}  # fmt: skip
        span = (task.begin, task.end)
        pid = _pid(profile, "Ascend Hardware", device)
        yield _slice(task.title, pid, task.stream, span, **args)
        if task.communication:
            lane = _pid(profile, "Communication", device)
            yield _slice(task.title, lane, task.stream, span, **args)
        if task.ticket in profile.queued:
            yield {"name": "HostToDevice", "cat": "HostToDevice", "ph": "f", "bp": "e",
                   "id": str(task.ticket), "pid": pid, "tid": task.stream,
                   "ts": us(task.begin)}  # fmt: skip


def _overlap(profile: Profile, device: int) -> Iterator[Event]:
    pid = _pid(profile, "Overlap Analysis", device)
    for thread, (name, spans) in enumerate(overlaps(profile, device).items()):
        for span in spans:
            yield _slice(name, pid, thread, span, **{"Analysis Type": name})


# --- tables -----------------------------------------------------------------------------------

Table = tuple[list[str], list[list[object]]]


def op_summary(profile: Profile) -> Table:
    """One row a launch."""
    header = ["Device_id", "Model ID", "Task ID", "Stream ID", "Op Name", "OP Type", "OP State",
              "Task Type", "Task Start Time(us)", "Task Duration(us)", "Task Wait Time(us)",
              "Block Num", "HF32 Eligible", "Input Shapes", "Input Data Types", "Input Formats",
              "Output Shapes", "Output Data Types", "Output Formats"]  # fmt: skip
    rows: list[list[object]] = []
    numbers: defaultdict[tuple[int, int], int] = defaultdict(int)
    ended: dict[tuple[int, int], int] = {}
    for task in profile.tasks:
        lane = (task.device, task.stream)
        numbers[lane] += 1
        waited = max(task.begin - ended.get(lane, task.begin), 0)
        ended[lane] = task.end
        if not task.operator and not task.communication:
            continue
        rows.append(
            [task.device, 4294967295, numbers[lane], task.stream, task.title, task.type, "dynamic",
             task.kind, us(task.begin) + "\t", (task.end - task.begin) / 1000, waited / 1000, 1,
             "NO", *columns(task.inputs), *columns(task.outputs)]
        )  # fmt: skip
    return header, rows


def task_time(profile: Profile) -> Table:
    """One row a piece of work of a stream."""
    header = ["Device_id", "kernel_name", "kernel_type", "stream_id", "task_id", "task_time(us)",
              "task_start(us)", "task_stop(us)"]  # fmt: skip
    numbers: defaultdict[tuple[int, int], int] = defaultdict(int)
    rows: list[list[object]] = []
    for t in profile.tasks:
        numbers[t.device, t.stream] += 1
        rows.append(
            [t.device, t.title, t.kind, t.stream, numbers[t.device, t.stream],
             (t.end - t.begin) / 1000, us(t.begin) + "\t", us(t.end) + "\t"]
        )  # fmt: skip
    return header, rows


def op_statistic(profile: Profile) -> Table:
    """Launches of one kind together, longest first."""
    groups: defaultdict[tuple[int, str, str], list[int]] = defaultdict(list)
    for t in profile.tasks:
        if t.operator:
            groups[t.device, t.type, t.kind].append(t.end - t.begin)
    whole = sum(map(sum, groups.values())) or 1
    rows: list[list[object]] = [
        [device, type, kind, len(ns), sum(ns) / 1000, min(ns) / 1000,
         round(sum(ns) / len(ns) / 1000, 3), max(ns) / 1000, round(sum(ns) / whole * 100, 3)]
        for (device, type, kind), ns in sorted(groups.items(), key=lambda item: -sum(item[1]))
    ]  # fmt: skip
    header = ["Device_id", "OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)",
              "Avg Time(us)", "Max Time(us)", "Ratio(%)"]  # fmt: skip
    return header, rows


def api_statistic(profile: Profile) -> Table:
    """Calls of one function together, longest first."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for call in profile.calls:
        if call.domain is None:
            groups[call.name].append(call.end - call.begin)
    rows: list[list[object]] = []
    for name, ns in sorted(groups.items(), key=lambda item: -sum(item[1])):
        mean = sum(ns) / len(ns)
        variance = sum((n - mean) ** 2 for n in ns) / len(ns)
        rows.append(
            ["host", "acl", name, sum(ns) / 1000, len(ns), round(mean / 1000, 3), min(ns) / 1000,
             max(ns) / 1000, round(variance / 1e6, 3)]
        )  # fmt: skip
    header = ["Device_id", "Level", "API Name", "Time(us)", "Count", "Avg(us)", "Min(us)",
              "Max(us)", "Variance"]  # fmt: skip
    return header, rows


def npu_mem(profile: Profile) -> Table:
    """Device memory in use, whenever it changed."""
    header = ["Device_id", "event", "ddr(KB)", "hbm(KB)", "memory(KB)", "timestamp(us)"]
    return header, [
        [device, "APP", 0, used / 1024, used / 1024, us(when) + "\t"]
        for device, when, used in profile.memory
    ]


TABLES: dict[str, Callable[[Profile], Table]] = {
    "op_summary": op_summary,
    "task_time": task_time,
    "op_statistic": op_statistic,
    "api_statistic": api_statistic,
    "npu_mem": npu_mem,
}


def export(folder: Path) -> Path:
    """Write a profile's files into its mindstudio_profiler_output; returns that folder."""
    profile = read(folder)
    output = folder / "mindstudio_profiler_output"
    output.mkdir(exist_ok=True)
    trace = output / f"msprof_{profile.stamp}.json"
    trace.write_text(json.dumps(timeline(profile)), encoding="utf-8")
    for name, table in TABLES.items():
        header, rows = table(profile)
        if not rows and name != "op_summary":  # clients wait for one table at least
            continue
        path = output / f"{name}_{profile.stamp}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    return output


def export_database(folder: Path) -> Path:
    """Write a profile's database beside its events; returns its path."""
    profile = read(folder)
    return database.write(profile, folder / f"msprof_{profile.stamp}.db")


EXPORTS: dict[str, Callable[[Path], Path]] = {"text": export, "db": export_database}

# --- the command --------------------------------------------------------------------------------


def profiles(folder: Path) -> list[Path]:
    """The PROF_… folders at or below a path."""
    if (folder / EVENTS).is_file():
        return [folder]
    return sorted(p for p in folder.glob("PROF_*") if (p / EVENTS).is_file())


def collect(output: Path, command: list[str]) -> int:
    """Run a program with every call and kernel profiled; returns its exit code."""
    output.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "ACLSIM_PROFILE": str(output.resolve())}
    return subprocess.run(command, env=environment, check=False).returncode


def parser() -> argparse.ArgumentParser:
    """The options that are heeded; others of CANN's are named and left out of account."""
    options = argparse.ArgumentParser(prog="msprof", description=DESCRIPTION, allow_abbrev=False)
    options.add_argument("--output", type=Path, default=Path(), help="Folder of profiles.")
    options.add_argument("--export", choices=["on", "off"], default="off", help="Render profiles.")
    options.add_argument("--analyze", choices=["on", "off"], default="off", help="Check profiles.")
    options.add_argument("--type", choices=["text", "db"], default="text", help="Files, or SQLite.")
    options.add_argument("--application", help="The program, as one text.")
    return options


def main(arguments: list[str]) -> int:
    """`msprof [OPTIONS] [PROGRAM…]`; 0 when all went well."""
    at = next((i for i, a in enumerate(arguments) if not a.startswith("-")), len(arguments))
    options, unknown = parser().parse_known_args(arguments[:at])
    command = arguments[at:] or shlex.split(options.application or "")
    if unknown:
        print(f"msprof: not heeded by the simulator: {' '.join(unknown)}", file=sys.stderr)
    before = set(profiles(options.output)) if command else set()
    code = collect(options.output, command) if command else 0
    folders = [p for p in profiles(options.output) if p not in before]
    if not folders:
        print(f"msprof: no profile of the simulator in {options.output}", file=sys.stderr)
        return code or 1
    if options.export == "on" or command:
        for folder in folders:
            print(f"msprof: {EXPORTS[options.type](folder)}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
