"""Owns a host's diagnosis as a work item: what `probe` says there, as a result."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aclnn_bindings import Report, Request, causes, probe as look
from aclnn_bindings.install.environment import concealed

from ...conformance.cases.case import PROBE, Case
from ...conformance.record.result import Result
from . import needs
from .text import title

CASE = Case("install", PROBE).id


def probe(case: Case, seed: int, setup: Mapping[str, Any]) -> Result:
    """Diagnose this host: FAIL where something needs to be mended, findings in `measure`."""
    started = time.monotonic()
    home = Path(setup["home"]) if setup.get("home") else None
    report = look(Request(home, bool(setup.get("simulator")), None, needs.needed_by_check()))
    likely = concealed(causes(report, os.environ), os.environ)
    errors = [cause for cause in likely if cause.severity == "error"]
    reason = errors[0].what if errors else "" if report.install else "no CANN install"
    measure = {
        "title": title(report), "versions": _versions(report),
        "devices": report.fact("devices") or 0,
        "causes": [
            {"severity": c.severity, "what": c.what, "fix": c.fix, "evidence": c.evidence}
            for c in likely
        ],
    }  # fmt: skip
    return Result(case.id, case.op, PROBE, "FAIL" if reason else "PASS", reason=reason, seed=seed,
                  measure=measure, seconds=time.monotonic() - started)  # fmt: skip


def _versions(report: Report) -> dict[str, str]:
    """What of it a fleet should have in common, by the names of a run's environment."""
    if report.install is None:
        return {}
    versions = report.install.versions
    return {"cann": str(report.install.version or ""), "driver": versions.driver or "",
            "firmware": versions.firmware or "", "kernels": versions.opp or "",
            "soc": str(report.fact("soc") or ""), "kind": report.install.kind}  # fmt: skip
