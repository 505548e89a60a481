"""Owns the SQLite form of a profile: the tables of `msprof_*.db` that have something to say.

Tables, columns and enumerations are those of the documents ("Profile Data File Reference (DB)" of
msprof): times in ns since 1970, sizes in bytes, texts as numbers of STRING_IDS. Tables of hardware
that the simulator has not (counters, links, caches, frequencies) are left out, as CANN leaves out
what was not collected.
"""

from __future__ import annotations

import socket
import sqlite3
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from profiles import OVERLAPS, Profile, ProfiledTensor, columns, overlaps

ABSENT = 4294967295  # of a connection, context, model or range
NOT_TOLD = 65534  # of an enumeration's value
ACL, NODE, COMMUNICATION = 20000, 10000, 5500
MARK, RANGE = 0, 2

ENUMS: dict[str, dict[int, str]] = {
    "ENUM_API_TYPE": {ACL: "acl", 15000: "model", NODE: "node", COMMUNICATION: "communication",
                      5000: "runtime"},
    "ENUM_MSTX_EVENT_TYPE": {MARK: "marker", 1: "push/pop", RANGE: "start/end", 3: "marker_ex"},
    "ENUM_OVERLAP_ANALYSIS_TYPE": {0: "COMPUTE", 1: "COMMUNICATION", 2: "COMM_NOT_OVERLAP_COMP",
                                   3: "FREE", 65535: "RESERVE"},
    "ENUM_HCCL_DATA_TYPE": {0: "INT8", 1: "INT16", 2: "INT32", 3: "FP16", 4: "FP32", 5: "INT64",
                            6: "UINT64", 7: "UINT8", 8: "UINT16", 9: "UINT32", 10: "FP64",
                            11: "BFP16", 12: "INT128", 255: "RESERVED", NOT_TOLD: "N/A",
                            65535: "INVALID_TYPE"},
}  # fmt: skip
# Columns in order; INTEGER where nothing else is said.
COLUMNS: dict[str, str] = {
    "STRING_IDS": "id, value TEXT",
    "META_DATA": "name TEXT, value TEXT",
    "SESSION_TIME_INFO": "startTimeNs, endTimeNs",
    "HOST_INFO": "hostUid TEXT, hostName TEXT",
    "RANK_DEVICE_MAP": "rankId, deviceId",
    "TASK": "startNs, endNs, deviceId, connectionId, globalTaskId, globalPid, taskType, contextId, "
            "streamId, taskId, modelId",
    "COMPUTE_TASK_INFO": "name, globalTaskId, blockNum, mixBlockNum, taskType, opType, "
                         "inputFormats, inputDataTypes, inputShapes, outputFormats, "
                         "outputDataTypes, outputShapes, attrInfo, opState, hf32Eligible, gridDim, "
                         "blockDim",
    "COMMUNICATION_OP": "opName, startNs, endNs, connectionId, groupName, opId, relay, retry, "
                        "dataType, algType, count NUMERIC, opType, deviceId",
    "CANN_API": "startNs, endNs, type, globalTid, connectionId, name",
    "MSTX_EVENTS": "startNs, endNs, eventType, rangeId, category, message, globalTid, "
                   "endGlobalTid, domainId, connectionId",
    "NPU_MEM": "type, ddr NUMERIC, hbm NUMERIC, timestampNs, deviceId",
    "OVERLAP_ANALYSIS": "id, deviceId, startNs NUMERIC, endNs NUMERIC, type",
}  # fmt: skip
VERSION = {"SCHEMA_VERSION": "1.0.2", "SCHEMA_VERSION_MAJOR": "1", "SCHEMA_VERSION_MINOR": "0",
           "SCHEMA_VERSION_MICRO": "2"}  # fmt: skip

Row = tuple[object, ...]


class Texts:
    """Numbers of texts, in the order in which they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def write(profile: Profile, path: Path) -> Path:
    """Write the database of a profile in place of an older one; returns its path."""
    path.unlink(missing_ok=True)
    texts = Texts()
    owners = launchers(profile)
    tables: dict[str, list[Row]] = {
        "TASK": [],
        "COMPUTE_TASK_INFO": [],
        "COMMUNICATION_OP": [],
        "CANN_API": [*_calls(profile, texts, owners), *_launches(profile, texts, owners)],
        "MSTX_EVENTS": list(_marks(profile, texts)),
        "NPU_MEM": [(texts("app"), 0, used, when, device) for device, when, used in profile.memory],
        "OVERLAP_ANALYSIS": list(_overlaps(profile)),
    }
    _add_tasks(profile, texts, tables)
    _add_constants(profile, texts, tables)
    with sqlite3.connect(path) as connection:
        for name, rows in tables.items():
            _create(connection, name, COLUMNS.get(name, "id, name TEXT"), rows)
        connection.execute("CREATE INDEX TaskIndex ON TASK (startNs, globalTaskId)")
    connection.close()
    return path


def _create(connection: sqlite3.Connection, name: str, declared: str, rows: list[Row]) -> None:
    columns_of = [column.split() for column in declared.split(", ")]
    typed = ", ".join(f"{c[0]} {c[1] if len(c) > 1 else 'INTEGER'}" for c in columns_of)
    connection.execute(f"CREATE TABLE {name} ({typed})")
    places = ", ".join("?" * len(columns_of))
    connection.executemany(f"INSERT INTO {name} VALUES ({places})", rows)


def _add_constants(profile: Profile, texts: Texts, tables: dict[str, list[Row]]) -> None:
    """What every database has; texts come last, when all are known."""
    spans = [(call.begin, call.end) for call in profile.calls]
    spans += [(task.begin, task.end) for task in profile.tasks]
    times = [time for span in spans for time in span]
    devices = sorted({task.device for task in profile.tasks})
    tables["SESSION_TIME_INFO"] = [(min(times, default=0), max(times, default=0))]
    tables["HOST_INFO"] = [(str(uuid.getnode()), socket.gethostname())]
    tables["RANK_DEVICE_MAP"] = [(-1, device) for device in devices or [-1]]
    tables["META_DATA"] = list(VERSION.items())
    for name, values in ENUMS.items():
        tables[name] = list(values.items())
    tables["STRING_IDS"] = [(number, text) for text, number in texts.numbers.items()]


def _thread(profile: Profile, thread: int) -> int:
    return profile.process << 32 | thread


def _add_tasks(profile: Profile, texts: Texts, tables: dict[str, list[Row]]) -> None:
    numbers: defaultdict[tuple[int, int], int] = defaultdict(int)
    for number, task in enumerate(profile.tasks):
        numbers[task.device, task.stream] += 1
        kind, title, type_ = texts(task.kind), texts(task.title), texts(task.type)
        tables["TASK"].append(
            (task.begin, task.end, task.device, task.ticket, number, profile.process, kind, ABSENT,
             task.stream, numbers[task.device, task.stream], ABSENT)
        )  # fmt: skip
        if task.communication:
            none = texts("N/A")
            tables["COMMUNICATION_OP"].append(
                (title, task.begin, task.end, task.ticket, none, number, 0, 0, NOT_TOLD, none, 0,
                 type_, task.device)
            )  # fmt: skip
        elif task.operator:
            of_tensors = (*_tensors(texts, task.inputs), *_tensors(texts, task.outputs))
            rest = [texts(text) for text in ("N/A", "dynamic", "NO", "N/A", "N/A")]
            tables["COMPUTE_TASK_INFO"].append(
                (title, number, 1, 0, kind, type_, *of_tensors, *rest)
            )


def _tensors(texts: Texts, tensors: tuple[ProfiledTensor, ...]) -> list[int]:
    shapes, dtypes, formats = columns(tensors)
    return [texts(text) for text in (formats, dtypes, shapes)]


def _calls(profile: Profile, texts: Texts, owners: dict[int, int]) -> Iterator[Row]:
    tickets = {place: ticket for ticket, place in owners.items()}
    for place, call in enumerate(profile.calls):
        if call.domain is not None:
            continue
        kind = COMMUNICATION if call.name.startswith("Hccl") else ACL
        yield (call.begin, call.end, kind, _thread(profile, call.thread),
               tickets.get(place, ABSENT), texts(call.name))  # fmt: skip


def _launches(profile: Profile, texts: Texts, owners: dict[int, int]) -> Iterator[Row]:
    """The step below: that a call put a piece of work on a stream."""
    name = texts("launch")
    for ticket, place in owners.items():
        call = profile.calls[place]
        yield call.begin, call.end, NODE, _thread(profile, call.thread), ticket, name


def launchers(profile: Profile) -> dict[int, int]:
    """Ticket of a task → place of the innermost call that queued it; others are left out."""
    moments: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for place, call in enumerate(profile.calls):
        if call.domain is None:
            moments[call.thread].append((call.begin, 0, place))
    for ticket, (thread, when) in profile.queued.items():
        moments[thread].append((when, 1, ticket))
    owners: dict[int, int] = {}
    for row in moments.values():
        open_calls: list[int] = []
        for when, is_ticket, number in sorted(row):
            while open_calls and profile.calls[open_calls[-1]].end < when:
                open_calls.pop()
            if not is_ticket:
                open_calls.append(number)
            elif open_calls:
                owners[number] = open_calls[-1]
    return dict(sorted(owners.items()))


def _marks(profile: Profile, texts: Texts) -> Iterator[Row]:
    domains: dict[str, int] = {}
    for number, call in enumerate(profile.calls):
        if call.domain is None:
            continue
        kind = MARK if call.begin == call.end else RANGE
        thread = _thread(profile, call.thread)
        domain = domains.setdefault(call.domain, len(domains))
        range_id = number if kind == RANGE else ABSENT
        yield (call.begin, call.end, kind, range_id, ABSENT, texts(call.name), thread, thread,
               domain, ABSENT)  # fmt: skip


def _overlaps(profile: Profile) -> Iterator[Row]:
    number = 0
    for device in sorted({task.device for task in profile.tasks}):
        for kind, name in enumerate(OVERLAPS):
            for begin, end in overlaps(profile, device)[name]:
                yield number, device, begin, end, kind
                number += 1
