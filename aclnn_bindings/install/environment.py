"""Owns which environment variables concern CANN and how they are shown; refuses to show secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

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
