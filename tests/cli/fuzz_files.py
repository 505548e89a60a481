"""Reads damaged files of every kind that others may hand over; only the named errors may come.

`python tests/cli/fuzz_files.py [--rounds 1000] [--seed 0] [--seconds 3600] [--only READER]`:
journals (of one host, compressed, and as parts of a fleet), reports in JSON, bundles, tables of
known issues and of known findings, case files and workbooks, baselines of `bench`, `probe --json`,
libraries, headers, checkpoints of both formats, and recordings, whose checksums are made to fit.
With --seconds the rounds of each reader are repeated, each time from another seed, until each has
had so long.
"""

import argparse
import csv
import gzip
import io
import json
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from mindtorch_npu import recording
from mindtorch_npu.commands.bench import rivals
from mindtorch_npu.commands.probe import diff
from mindtorch_npu.commands.report import html, json_report, junit, markdown
from mindtorch_npu.commands.run import findings, summary
from mindtorch_npu.conformance.cases import case_file
from mindtorch_npu.conformance.record import bundle, journal, known
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.fleet import merge
from mindtorch_npu.foreign import ForeignError
from mindtorch_npu.recording import page, perfetto

import mindtorch
from aclnn_bindings.install import elf
from aclnn_bindings.install.search import bundled_simulator
from aclnn_bindings.interface.headers import parse_text
from aclnn_bindings.layers import recording_file

WORDS = (b"null", b"-1", b"[]", b"{}", b'"x"', b"1e400", b"NaN", b"9" * 40, b"true", b"[[1]]",
         b"\xff\xfe", b"\n", b'"../../x"')  # fmt: skip
KNOWN = b'[[issue]]\nop = "add"\ndtype = "float16"\nreason = "rounds"\nexpires = 2027-01-31\n'
FINDINGS = b'[[allow]]\nfinding = "leak"\nobject = "aclrtStream*"\nreason = "never destroyed"\n'
HEADER = (
    b"#define N(a) ((a) << 2)\nenum E { A = N(1), B };\ntypedef struct S { int a : 3; } S;"
    b"\naclnnStatus aclnnAddGetWorkspaceSize(const aclTensor* self, aclTensor* out, uint64_t* n,"
    b" aclOpExecutor** e);\naclnnStatus aclnnAdd(void* w, uint64_t n, aclOpExecutor* e, void* s);\n"
)
CASES = (
    b"testcase_name,api_name,tensor_view_shapes,tensor_dtypes,attributes,precision_tolerances\n"
    b"one,aclnnAdd,\"((2, 3), (3,), (2, 3))\",\"('float32', 'float32', 'float32')\","
    b"{'alpha': 1.0},\"((0.001, 0.001),)\"\n"
)
TIME = {"median": 1.5, "q1": 1.0, "q3": 2.0, "least": 0.5, "p20": 0.9, "p80": 2.5, "n": 9,
        "noisy": False}  # fmt: skip
BASELINE = {"schema": rivals.BASELINE, "results": [{"name": "add", "times": {"device": TIME}}]}
PROBED = {
    "schema": "mindtorch-npu/probe/1", "summary": "CANN 8.5",
    "functions": {"names": {"PRESENT": ["aclnnAdd"], "UNDECLARED": [], "DRIFTED": ["aclInit"]}},
}  # fmt: skip
Target = tuple[bytes, Callable[[Path], Any], tuple[type[Exception], ...]]


def damaged(seed: bytes, rng: random.Random) -> bytes:
    """`seed` with a few bytes changed, cut out, put in or copied, or a value of another kind."""
    body = bytearray(seed)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at, how = rng.randrange(len(body) + 1), rng.randrange(6)
        if how == 0 and at < len(body):
            body[at] = rng.randrange(256)
        elif how == 1:
            del body[at : at + rng.choice((1, 2, 8, 64))]
        elif how == 2:
            body[at:at] = rng.randbytes(rng.choice((1, 3, 9)))
        elif how == 3:
            body[at:at] = rng.choice(WORDS)
        elif how == 4:
            other = rng.randrange(len(body) + 1)
            body[at:at] = body[other : other + rng.choice((5, 40, 200))]
        elif b":" in body:
            start = rng.choice([i for i, byte in enumerate(body) if byte == ord(":")]) + 1
            end = next((i for i in range(start, len(body)) if body[i] in b",}]"), len(body))
            body[start:end] = rng.choice(WORDS)
    return bytes(body)


def _beside(arrays: bytes) -> Callable[[Path], Any]:
    """Reads a description, with sound arrays beside it."""

    def read(path: Path) -> Any:
        path.with_name("kept.npz").write_bytes(arrays)
        return bundle.load(path)

    return read


def _above(description: dict[str, Any]) -> Callable[[Path], Any]:
    """Reads arrays by a sound description."""

    def read(path: Path) -> Any:
        path.with_name("kept.json").write_text(json.dumps({**description, "arrays": path.name}))
        return bundle.load(path.with_name("kept.json"))

    return read


def recorded(folder: Path) -> list[recording_file.Chunk]:
    """The chunks of a recording of a small program, with its tensors."""
    path = folder / "sound.rec"
    program = "import mindtorch as t; (t.ones(3, device='npu') + 1).sum().tolist()"
    command = [sys.executable, "-m", "mindtorch_npu", "run", "--simulator", "--data", "all",
               "--record", str(path), "--", sys.executable, "-c", program]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return list(recording_file.chunks(path))


def attack_recording(folder: Path, rounds: int, seed: int) -> tuple[Counter[str], list[str]]:
    """As `attack`: a chunk is damaged inside its checksum, or its head lies about its size."""
    chunks, rng = recorded(folder), random.Random(seed)
    path, outcomes, bad = folder / "file.rec", Counter[str](), []
    for i in range(rounds):
        writer, struck = recording_file.Writer(path), rng.randrange(len(chunks))
        for number, chunk in enumerate(chunks):
            hit = number == struck
            writer.add(replace(chunk, data=damaged(chunk.data, rng)) if hit else chunk)
        writer.close()
        began = time.thread_time()
        try:
            opened = recording.open(path)
            page.page(opened, summary.document(opened, most=100))
            perfetto.write(opened, folder / "trace.json")
            list(opened.captured())
            outcomes["read"] += 1
        except recording_file.RecordingError as error:
            outcomes[type(error).__name__] += 1
        except Exception as error:
            bad.append(f"round {i}: {error!r}")
        if time.thread_time() - began > 2:
            bad.append(f"round {i}: more than 2 s")
    return outcomes, bad


def shown(path: Path) -> None:
    """Reads a journal and writes all that is told of one."""
    record = journal.read(path)
    for write in (html.page, junit.xml, markdown.text, json_report.text):
        write(record)


def _small_library() -> bytes:
    """A library of a few exports and needs."""
    root = bundled_simulator()
    assert root is not None
    return (root / "lib64/libascend_hal.so").read_bytes()


def _exported(path: Path) -> None:
    """Reads a library's tables; no content raises."""
    assert isinstance(elf.read(path).exports, frozenset)
    elf.undefined(path)


def _declared(path: Path) -> None:
    """Reads a header, and every row of it; no content raises."""
    declared = parse_text(path.read_bytes())
    for table in (
        declared.functions,
        declared.enums,
        declared.constants,
        declared.typedefs,
        declared.structs,
    ):
        list(table.values())
    assert all(row.reason for row in declared.skipped)


def _merged(path):
    fleet = merge.merge([path])
    if fleet.unread:
        raise journal.JournalError(fleet.unread[0].why)


def _as(suffix: str, reader: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Reads a file under a name that says its format."""
    return lambda path: reader(path.rename(path.with_suffix(suffix)))


def _json_report(lines: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        path.write_bytes(lines)
        return json_report.text(journal.read(path)).encode()


def _workbook() -> bytes:
    """The case file as a workbook."""
    import openpyxl

    book, content = openpyxl.Workbook(), io.BytesIO()
    for row in csv.reader(io.StringIO(CASES.decode())):
        book.active.append(row)
    book.save(content)
    return content.getvalue()


def targets() -> dict[str, Target]:
    """A sound file of each kind, how it is read, and what that may raise."""
    checkpoint = io.BytesIO()
    mindtorch.save({"a": mindtorch.ones(3, 4), "b": [1.5, {"k": "x"}]}, checkpoint)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        book = journal.Journal(path, journal.new_run())
        head = journal.header({"device": "npu:0", "mindtorch_npu": "0.1.0"}, {"level": "quick"}, 1)
        book.write("run", {**head, "node": "n"})
        book.write("plan", {"cases": ["add/out/1"], "seed": 0})
        book.write("start", {"case": "add/out/1", "seed": 0, "device": "npu:0"})
        book.result(Result("add/out/1", "add", "out", "PASS", "float32", "T0"))
        lines = path.read_bytes()
    legacy = io.BytesIO()
    mindtorch.save(
        {"a": mindtorch.ones(3, 4), "b": [1.5]}, legacy, _use_new_zipfile_serialization=False
    )
    tensors = mindtorch.load, (RuntimeError, EOFError, OSError, pickle.UnpicklingError)
    arrays = io.BytesIO()
    np.savez_compressed(arrays, input0=np.arange(6.0), input1=np.ones((2, 3), np.float16))
    kept = {"case": "add/out/1", "seed": 0, "arrays": "kept.npz",
            "dtypes": {"input0": "float64", "input1": "float16"},
            "schema": bundle.SCHEMA}  # fmt: skip
    read = (OSError, UnicodeDecodeError, ForeignError)
    return {
        "journal": (lines, shown, (journal.JournalError, *read)),
        "fleet": (lines, _merged, (journal.JournalError, *read)),
        "bundle": (json.dumps(kept).encode(), _beside(arrays.getvalue()), (bundle.BundleError,)),
        "arrays": (arrays.getvalue(), _above(kept), (bundle.BundleError,)),
        "known issues": (KNOWN, known.load, (known.KnownIssuesError, *read)),
        "known findings": (FINDINGS, findings.allowed, (click.UsageError,)),
        "JSON report": (_json_report(lines), shown, (journal.JournalError, *read)),
        "case file": (CASES, _as(".csv", case_file.read), (case_file.CaseFileError,)),
        "case workbook": (_workbook(), _as(".xlsx", case_file.read), (case_file.CaseFileError,)),
        "baseline": (json.dumps(BASELINE).encode(), rivals.baseline, (rivals.NoRivalError,)),
        "probe report": (
            json.dumps(PROBED).encode(), lambda p: diff.load(str(p)), (click.UsageError,)
        ),
        "compressed journal": (gzip.compress(lines), shown, (journal.JournalError, *read)),
        "library": (_small_library(), _exported, ()),
        "header": (HEADER, _declared, ()),
        "checkpoint": (checkpoint.getvalue(), *tensors),
        "legacy checkpoint": (legacy.getvalue(), *tensors),
    }  # fmt: skip


class Hang(BaseException):
    """A reader took 30 s of this process's time; no reader catches this."""


def _hang(_number: int, _frame: object) -> None:
    raise Hang


def attack(target: Target, rounds: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Outcomes by name, and what no reader may do: another error, or more than 2 s."""
    sound, read, allowed = target
    before = signal.signal(signal.SIGVTALRM, _hang)
    rng, outcomes, bad = random.Random(seed), Counter[str](), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        for i in range(rounds):
            path.write_bytes(damaged(sound, rng))
            began = time.thread_time()
            signal.setitimer(signal.ITIMER_VIRTUAL, 30)
            try:
                read(path)
                outcomes["read"] += 1
            except allowed as error:
                outcomes[type(error).__name__] += 1
            except (Exception, Hang) as error:
                bad.append(f"round {i}: {error!r}")
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            if time.thread_time() - began > 2:
                bad.append(f"round {i}: more than 2 s")
    signal.signal(signal.SIGVTALRM, before)
    return outcomes, bad


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--only", metavar="READER")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        attacks = {name: partial(attack, target) for name, target in targets().items()}
        attacks["recording"] = partial(attack_recording, Path(folder))
        if options.only not in (None, *attacks):
            parser.error(f"--only: one of {', '.join(attacks)}")
        names = [options.only] if options.only else list(attacks)
        failed = [_long(name, attacks[name], options) for name in names]
    return int(any(failed))


def _long(name: str, run: Callable[[int, int], Any], options: argparse.Namespace) -> int:
    """How many inputs were bad in the rounds of one reader."""
    began, seed, failed, totals = time.monotonic(), options.seed, 0, Counter[str]()
    while True:
        outcomes, bad = run(options.rounds, seed)
        totals.update(outcomes)
        failed += len(bad)
        if bad:
            print(f"{name}, seed {seed}:", *bad[:5], sep="\n    ", flush=True)
        seed += 1
        if time.monotonic() - began >= options.seconds:
            print(f"{name}, seeds {options.seed} to {seed - 1}: {dict(totals)}", flush=True)
            return failed


if __name__ == "__main__":
    sys.exit(main())
