"""The report of `probe` as JSON, schema `mindtorch-npu/probe/1` (`probe.schema.json`).

Adding a key keeps the schema's number; removing one or changing a meaning raises it.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aclnn_bindings import (
    Cause,
    Census,
    Install,
    Report,
    Status,
    Step,
    StepResult,
    product_of,
    support,
)
from aclnn_bindings.install import environment

from . import operators as probe_ops, text as probe_text
from .diff import InterfaceComparison

SCHEMA: Final = "mindtorch-npu/probe/1"
_DEVICE: Final = ("soc", "devices", "memory_total", "memory_free")


def report(
    report: Report,
    causes: Sequence[Cause],
    code: int,
    queried: Sequence[str],
    comparison: InterfaceComparison | None,
    environ: Mapping[str, str],
) -> dict[str, Any]:
    """The whole report; times in milliseconds, sizes in bytes."""
    data = {
        "schema": SCHEMA,
        "summary": probe_text.title(report),
        "exit_code": code,
        "host": _host(),
        "install": _install(report.install) if report.install else None,
        "search": [_step(step) for step in report.steps],
        "device": {name: report.fact(name) for name in _DEVICE},
        "declarations": _declarations(report),
        "libraries": _libraries(report),
        "functions": _functions(report.census),
        "ops": _ops(report.census, report.request.needed),
        "asked": [_queried(name, report) for name in queried],
        "smoke": [_result(step) for step in report.smoke],
        "causes": [
            {"severity": c.severity, "what": c.what, "fix": c.fix, "evidence": c.evidence}
            for c in causes
        ],
        "diff": diff_of(comparison) if comparison else None,
        "environment": environment.masked_variables(environ),
    }
    return environment.concealed(data, environ)


def _host() -> dict[str, str]:
    library, version = platform.libc_ver()
    return {
        "machine": platform.machine(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "libc": f"{library} {version}".strip(),
    }


def _install(install: Install) -> dict[str, Any]:
    versions = install.versions
    return {
        "root": str(install.root),
        "found_via": install.found_via,
        "kind": install.kind,
        "layout": install.layout,
        "include_dirs": [str(path) for path in install.include_dirs],
        "versions": {
            "toolkit": versions.toolkit,
            "source": versions.source,
            "driver": versions.driver,
            "firmware": versions.firmware,
            "opp": versions.opp,
            "kernels": list(versions.kernels),
        },
        "custom_packages": [
            {
                "name": vendor.name,
                "root": str(vendor.root),
                "found_via": vendor.found_via,
                "priority": vendor.priority,
                "version": vendor.version,
                "digest": vendor.digest,
                "library": str(vendor.library) if vendor.library else None,
                "problem": vendor.problem,
                "shadowed": vendor.shadowed,
            }
            for vendor in install.vendors
        ],
    }


def _step(step: Step) -> dict[str, Any]:
    path = str(step.path) if step.path else None
    return {"via": step.via, "path": path, "verdict": step.verdict, "detail": step.detail}


def _declarations(report: Report) -> dict[str, Any]:
    declared = report.declared
    return {
        "known": declared is not None,
        "source": report.declared_from,
        "functions": len(declared.functions) if declared else 0,
        "ops": len(declared.ops) if declared else 0,
        "not_understood": len(declared.skipped) if declared else 0,
        "skipped": [
            {"header": s.header, "line": s.line, "reason": s.reason}
            for s in (declared.skipped if declared else ())
        ],
    }


def _libraries(report: Report) -> list[dict[str, Any]]:
    loads = {step.name: step for step in report.loads}
    rows = []
    for library, table in report.files:
        load = loads.get(str(library.path))
        rows.append(
            {
                "name": library.name,
                "path": str(library.path),
                "role": library.role,
                "vendor": library.vendor,
                "size": table.size,
                "machine": table.machine,
                "soname": table.soname,
                "exports": len(table.exports),
                "needed": list(table.needed),
                "versions_needed": list(table.versions),
                "problem": table.problem,
                "load": _result(load) if load else None,
            }
        )
    return rows


def _functions(census: Census | None) -> dict[str, Any]:
    rows = list(census.functions.values()) if census else []
    names = {s.value: [f.name for f in rows if f.status is s] for s in Status}
    drift = [
        {"name": f.name, "effect": f.drift.effect, "detail": f.drift.detail}
        for f in rows
        if f.drift
    ]
    shadowed = {f.name: [f.library, *f.shadowed] for f in rows if f.shadowed}
    counts = {status: len(listed) for status, listed in names.items()}
    return {"counts": counts, "names": names, "drift": drift, "shadowed": shadowed}


def _ops(census: Census | None, needed: Sequence[str]) -> dict[str, Any]:
    ops = census.ops if census else {}
    rows = [
        {
            "name": op.name,
            "installed": op.installed,
            "declared": op.declared,
            "callable": op.callable,
            "library": op.library,
            "reason": op.reason,
        }
        for op in ops.values()
    ]
    keys = ("installed", "declared", "callable")
    return {
        "counts": {key: sum(bool(row[key]) for row in rows) for key in keys},
        "needed": list(needed),
        "needed_missing": [n for n in needed if n not in ops or not ops[n].callable],
        "rows": rows,
    }


def _queried(name: str, report: Report) -> dict[str, Any]:
    op = report.census.ops.get(name) if report.census else None
    signature = report.declared.ops.get(name) if report.declared else None
    documented = support(name, product_of(report.fact("soc") or ""))
    return {
        "name": name,
        "known": op is not None,
        "callable": bool(op and op.callable),
        "reason": op.reason if op else "not declared and not exported",
        "prototype": probe_ops.prototype(signature.workspace) if signature else None,
        "products": list(documented.products) if documented else [],
        "dtypes": {k: list(v) for k, v in documented.dtypes.items()} if documented else {},
    }


def _result(step: StepResult) -> dict[str, Any]:
    return {
        "name": step.name,
        "state": step.state,
        "ms": round(step.seconds * 1e3, 3),
        "detail": step.detail,
    }


def diff_of(comparison: InterfaceComparison) -> dict[str, Any]:
    difference = comparison.difference
    return {
        "reference": comparison.reference,
        "added": list(difference.added),
        "removed": list(difference.removed),
        "added_ops": list(difference.added_ops),
        "removed_ops": list(difference.removed_ops),
        "changed": [
            {"name": c.name, "what": c.what, "effect": c.effect, "detail": c.detail}
            for c in difference.changed
        ],
    }
