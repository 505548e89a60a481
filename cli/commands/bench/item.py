"""Owns a workload as a work item: its case's name, and its times on a device as a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mindtorch.ops import OPS

from ...conformance.cases.case import BENCH, Case
from ...conformance.operators.find import subject
from ...conformance.record.result import Result
from ...recording.cases import MARK, subject as recorded
from .runner import Bench, BenchRequest
from .statistics import SamplingLimits
from .workloads import Workload, parse_shapes, shaped, small

KINDS: Final = ("device",)
_SECONDS: Final = 0.3


def name_of(work: Workload) -> str:
    """`add/bench/float16/1024x1024,1024x1024`; what it is called in a set comes last."""
    shapes = ",".join("x".join(map(str, s)) or "scalar" for s in work.shapes)
    return Case(work.op, BENCH, detail="/".join((work.dtype, shapes, work.label)).rstrip("/")).id


def workload(case: Case, recording: str, declared: Any) -> Workload:
    """The workload of a case; WorkloadError or UnknownSubjectError where there is none."""
    dtype, shapes, label, *_ = (*case.detail.split("/"), "", "")
    if MARK in case.op and recording:
        return replace(small(recorded(Path(recording), case.op, declared), dtype), op=case.op)
    row = case.op in OPS
    what = OPS[case.op] if row else subject(case.op, declared)
    own = small(what, dtype)
    sizes = tuple(parse_shapes(shapes)) if shapes else ()
    if sizes in ((), own.shapes):
        return replace(own, label=label)
    return replace(shaped(what, sizes, dtype, label), enlarged=row)


def bench(
    case: Case, seed: int, device: str, request: Mapping[str, Any], setup: Mapping[str, Any],
    declared: Any,
) -> Result:  # fmt: skip
    """Time a workload: PASS with its times in `measure`; FAIL where the result was wrong, ERROR
    where there was none."""
    recording = str(setup.get("recording") or "")
    work = workload(case, recording, declared)
    seconds = float(request.get("seconds", _SECONDS))
    kinds = tuple(request.get("kinds", KINDS))
    limits = SamplingLimits(min(1.0, seconds), seconds)
    timing = BenchRequest(
        device, kinds, limits=limits, recording=Path(recording) if recording else None
    )
    row = Bench(timing).row(work)
    base = Result(case.id, case.op, BENCH, "PASS", dtype=work.dtype, seed=seed)
    if row.problem:
        verdict = "FAIL" if row.problem.startswith("wrong result") else "ERROR"
        return base.with_(verdict=verdict, reason=row.problem, blame=row.blame)
    times = {kind: t.as_json() for kind, t in row.times.items()}
    spent = sum(t.median * t.n for t in row.times.values()) * 1e-6
    return base.with_(measure={"times": times, "doubt": row.doubt}, seconds=spent)
