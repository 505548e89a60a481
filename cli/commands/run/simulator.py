"""What `run` sets for the bundled simulator; refuses it on any other install."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from aclnn_bindings.install import simulated
from aclnn_bindings.install.describe import Install

from .options import RunTarget

_VARIABLES: Final = {
    "soc": "ACLSIM_SOC", "devices": "ACLSIM_DEVICES", "memory": "ACLSIM_MEMORY",
}  # fmt: skip


def size(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Bytes as the simulator reads them; refuses what it would ignore with a warning."""
    if value is None or re.fullmatch(r"[1-9][0-9]*[KMGT]?", value, re.IGNORECASE):
        return value
    raise click.BadParameter(f"{value!r} is no size; give bytes, or such as 512M or 4G")


def environment(install: Install, target: RunTarget) -> dict[str, str]:
    """This process's variables, less what would lead a program away from a simulator, and with
    what was asked of it; click.UsageError for that on another install."""
    environ = dict(os.environ)
    requests = {n: getattr(target, n) for n in _VARIABLES}
    settings = {_VARIABLES[n]: str(v) for n, v in requests.items() if v is not None}
    if install.kind != "simulator":
        if settings:
            name = next(n for n in _VARIABLES if requests[n] is not None)
            raise click.UsageError(
                f"--{name} is the simulator's; {install.root} is none; add --simulator"
            )
        return environ
    for name in simulated.CLEARED:
        environ.pop(name, None)
    tools = install.root / "tools" / "profiler" / "bin"
    environ["PATH"] = os.pathsep.join(filter(None, [str(tools), environ.get("PATH", "")]))
    environ["ASCEND_OPP_PATH"] = str(install.root / "opp")
    return environ | settings


def checks_itself(install: Install, environ: Mapping[str, str]) -> bool:
    """Whether strict mode is the simulator's: it is not where ACLSIM_STRICT says `off`."""
    return install.kind == "simulator" and environ.get("ACLSIM_STRICT") != "off"


def strict(mode: str, report: Path, allowed: Sequence[Path]) -> dict[str, str]:
    """Variables that have the simulator check, and append its findings to `report`."""
    return {
        "ACLSIM_STRICT": mode,
        "ACLSIM_REPORT": str(report),
        "ACLSIM_ALLOW": os.pathsep.join(str(path.absolute()) for path in allowed),
    }
