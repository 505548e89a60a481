"""Owns the snapshot that stands beside every verdict: versions, device, float modes, switches."""

from __future__ import annotations

import os
import platform
import time
from typing import Any, Final

from aclnn_bindings.install import simulated
from aclnn_bindings.install.environment import visible_value
from aclnn_bindings.install.products import product_of
from aclnn_bindings.install.vendors import digest

from ..record.journal import node

# What changes results or times.
SWITCHES: Final = (
    "ACL_LAUNCH_BLOCKING", "ACLSIM_FAULTS", "ACLSIM_SOC", "ACLSIM_STREAM", "ACLSIM_STRICT",
    "ASCEND_LAUNCH_BLOCKING", "HCCL_DETERMINISTIC", "INF_NAN_MODE_ENABLE",
    "INF_NAN_MODE_FORCE_DISABLE", "LCCL_DETERMINISTIC",
)  # fmt: skip


def snapshot(cann: Any, device: str) -> dict[str, Any]:
    """Environment of a run on `device` of an opened install (None for the cpu)."""
    facts: dict[str, Any] = {
        "device": device,
        "node": node(),
        "clock": round(time.time(), 3),
        "mindtorch_npu": _version("mindtorch-npu"),
        "python": platform.python_version(),
        "numpy": _version("numpy"),
        "host": f"{platform.system()} {platform.machine()}",
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
        "switches": {
            name: visible_value(name, os.environ[name]) for name in SWITCHES if name in os.environ
        },
    }
    if cann is None:
        return {**facts, "install": "none", "kind": "cpu", "cann": "", "soc": ""}
    install = cann.install
    soc = _soc(cann)
    return {
        **facts,
        **_custom(install),
        "install": str(install.root),
        "found_via": install.found_via,
        "kind": install.kind,
        "cann": str(install.version or ""),
        "soc": soc,
        "driver": install.versions.driver or "",
        "firmware": install.versions.firmware or "",
        "kernels": install.versions.opp or "",
        "devices": cann.runtime.device_count(),
        "modes": modes(soc),
    }


def _custom(install: Any) -> dict[str, Any]:
    """Packages of custom operators, and kernels that stand for theirs: path and digest."""
    packages = {str(v.library): v.digest for v in install.vendors if v.library}
    kernels = {one: digest(simulated.kernel_file(one)) for one in simulated.kernels()}
    return {k: v for k, v in {"packages": packages, "kernels": kernels}.items() if v}


def modes(soc: str) -> dict[str, str]:
    """Float modes in force; cubeMathType is an argument of each call.

    910, 310P and 310B saturate, 950 gives infinities, A2 and A3 do what is asked
    (aclrtFloatOverflowMode document, CANN 9.1).
    """
    product = product_of(soc)
    overflow = "saturates" if product in ("910", "310p", "310b") else "gives Inf"
    if product in ("910b", "A3") and os.environ.get("INF_NAN_MODE_ENABLE", "1") == "0":
        overflow = "saturates"
    return {
        "HF32": "where a case asks for it (cubeMathType)",
        "overflow": overflow,
        "deterministic": os.environ.get("HCCL_DETERMINISTIC", "as the operators default to"),
    }


def _soc(cann: Any) -> str:
    return str(cann.soc_name())


def _version(package: str) -> str:
    from importlib.metadata import (  # costs an import that a report does not need
        PackageNotFoundError,
        version,
    )

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def summary(facts: dict[str, Any]) -> str:
    """One line: `simulator 9.1.0 · Ascend910B3 · npu:0`, and switches that are set."""
    switches = [f"{k}={v}" for k, v in facts.get("switches", {}).items()]
    if facts.get("kind") == "cpu":
        return " · ".join(["cpu", *switches])
    name = "bundled simulator" if facts.get("kind") == "simulator" else "CANN"
    parts = [f"{name} {facts.get('cann', '')}".strip(), facts.get("soc", ""),
             facts.get("device", "?")]  # fmt: skip
    packages = [f"{path} sha256 {sha}" for path, sha in facts.get("packages", {}).items()]
    return " · ".join([*(p for p in parts if p), *packages, *switches])
