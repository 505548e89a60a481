"""Owns which environment variables concern CANN, what it needs of them, and how they are shown.

Refuses to show secrets. Source of the needed ones: set_env.sh of CANN 8.1.RC1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from .describe import Install
from .places import is_dir

_CONCERNS: Final = re.compile(
    r"(ASCEND|ACL|MINDTORCH|HCCL|NPU|TASK_QUEUE|PYTORCH_NPU|DRIVER|TOOLCHAIN_HOME|TBE)"
)
_ALWAYS: Final = ("LD_LIBRARY_PATH", "LD_PRELOAD")
_SECRET: Final = re.compile(
    r"(TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_?KEY|(^|_)(KEY|AUTH|AK|SK)$)",
    re.IGNORECASE,
)
_USER_INFO: Final = re.compile(r"(\w+://)[^/@\s:]+(:[^/@\s]*)?@")
_ASSIGNED: Final = re.compile(
    r"((?:token|secret|password|passwd|key|signature|sig)=)[^&;\s]+", re.IGNORECASE
)
MASK: Final = "***"


def shown(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that concern CANN, by name, values with secrets masked."""
    return {
        name: masked(name, value)
        for name, value in sorted(environ.items())
        if name in _ALWAYS or _CONCERNS.match(name)
    }


def masked(name: str, value: str) -> str:
    """`value` without what looks like a secret, by the variable's name or its own form."""
    if _SECRET.search(name):
        return MASK
    return _ASSIGNED.sub(rf"\1{MASK}", _USER_INFO.sub(rf"\1{MASK}@", value))


def unset(install: Install, environ: Mapping[str, str]) -> dict[str, str]:
    """What the toolkit's set_env.sh would export for CANN itself and `environ` lacks, by name.

    The loader has read LD_LIBRARY_PATH when a process starts, so that is not among them.
    """
    if install.kind != "cann":
        return {}
    root = str(install.root)
    wanted = {"ASCEND_HOME_PATH": root, "ASCEND_AICPU_PATH": root}
    if is_dir(install.root / "opp"):
        wanted["ASCEND_OPP_PATH"] = str(install.root / "opp")
    return {name: value for name, value in wanted.items() if not environ.get(name)}


def misplaced_opp(install: Install, environ: Mapping[str, str]) -> str:
    """What is wrong with ASCEND_OPP_PATH, from which CANN takes kernels and tilings; "" if nothing.

    Layouts: `<root>/opp`, or a link to it from another name of the same install.
    """
    opp = environ.get("ASCEND_OPP_PATH", "")
    if install.kind != "cann" or not opp:
        return ""
    if not is_dir(Path(opp)):
        return f"ASCEND_OPP_PATH={opp} does not exist"
    own = install.root / "opp"
    if is_dir(own) and os.path.realpath(own) != os.path.realpath(opp):
        return f"ASCEND_OPP_PATH={opp} is of another install than {install.root}"
    return ""
