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
from .places import is_dir, why_absent

_CONCERNS: Final = re.compile(
    r"(ASCEND|ACL|MINDTORCH|HCCL|NPU|TASK_QUEUE|PYTORCH_NPU|DRIVER|TOOLCHAIN_HOME|TBE)"
)
_ALWAYS: Final = ("LD_LIBRARY_PATH", "LD_PRELOAD")
_SECRET: Final = re.compile(
    r"(TOKEN|SECRET|PASS|PWD|CRED|PRIVATE|COOKIE|BEARER|JWT|SIGNATURE|API_?KEY|ACCESS_?KEY"
    r"|(^|_)(KEY|AUTH|AUTHORIZATION|AK|SK|SIG|PIN|PW)$)",
    re.IGNORECASE,
)
_WORDS: Final = (
    r"[\w.-]{0,40}(?:token|secret|pass|pwd|cred|key|signature|sig|auth|cookie)[\w.-]{0,40}"
)
_QUOTE: Final = r"""\\{0,3}["']?"""  # of JSON within JSON too
# What stands before a secret, which ends where the second pattern of a pair no longer matches.
_BEFORE: Final = tuple(
    re.compile(rf"({before}){secret}", re.IGNORECASE)
    for before, secret in (
        # the rest of a header's line, which may have many parts
        (rf"(?:authorization|cookie){_QUOTE}\s*[=:]\s*{_QUOTE}", r"""[^"'\r\n]+"""),
        (r"\b(?:bearer|basic)\s+", r"[\w.~+/=-]{6,}"),
        # name=value, name: value, "name": "value", of one line or of JSON; lists and objects whole
        (rf"{_QUOTE}{_WORDS}{_QUOTE}\s*[=:]\s*{_QUOTE}(?:(?:digest|token)\s+)?",
         r"""(?:\[[^\]]*\]?|\{[^}]*\}?|[^&;,\s"'}\\\[{]+)"""),
        (rf"--{_WORDS}\s+|\bpass(?:word|wd|phrase)\s+", r"[^\s*]\S*"),  # a command's, a .netrc's
        (r"(?:\s|^)-u\s+[^\s:]+:", r"\S+"),  # curl's
        (r"\b(?:sshpass|mysql\w*|mariadb\w*)\b[^\n]{0,200}?\s-p\s?", r"[^\s*]\S*"),
        (r"\bhooks\.slack\.com/services/|\bdiscord(?:app)?\.com/api/webhooks/", r"\S+"),
    )
)  # fmt: skip
_USER_INFO: Final = re.compile(r"\b(\w{1,20}://)[^/\s]+@|(\b[\w.%+-]{1,64}:)[^\s/:@]+@")
_PEM: Final = re.compile(r"-----BEGIN [^-]*PRIVATE KEY-----.*?(-----END [^-]*-----|\Z)", re.DOTALL)
# Keys that services hand out, known by their first letters, and JSON web tokens.
_ISSUED: Final = re.compile(
    r"\b(gh[oprsu]_\w{16,}|github_pat_\w{16,}|gl[a-z]{2,5}-[\w-]{16,}|hf_\w{16,}|sk-[\w-]{16,}"
    r"|[prs]k_(?:live|test)_\w{16,}|xox[a-z]-[\w-]{16,}|npm_\w{16,}|pypi-[\w-]{16,}"
    r"|dckr_[a-z]+_[\w-]{16,}|dapi[0-9a-f]{32}|ya29\.[\w-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|AIza[\w-]{30,}|LTAI\w{12,}|A[KS]IA[0-9A-Z]{12,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*)"
)
MASK: Final = "***"


def masked_variables(environ: Mapping[str, str]) -> dict[str, str]:
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
    value = _ISSUED.sub(MASK, _PEM.sub(MASK, value))
    value = _USER_INFO.sub(lambda url: f"{url[1] or url[2]}{MASK}@", value)
    for before in _BEFORE:
        value = before.sub(rf"\1{MASK}", value)
    return value


def unset(install: Install, environ: Mapping[str, str]) -> dict[str, str]:
    """What the toolkit's set_env.sh would export for CANN itself and `environ` lacks, by name.

    The loader has read LD_LIBRARY_PATH when a process starts, so that is not among them.
    """
    if install.kind != "cann":
        return {}
    root = str(install.root)
    settings = {"ASCEND_HOME_PATH": root, "ASCEND_AICPU_PATH": root}
    if is_dir(install.root / "opp"):
        settings["ASCEND_OPP_PATH"] = str(install.root / "opp")
    return {name: value for name, value in settings.items() if not environ.get(name)}


def misplaced_opp(install: Install, environ: Mapping[str, str]) -> str:
    """What is wrong with ASCEND_OPP_PATH, from which CANN takes kernels and tilings; "" if nothing.

    Layouts: `<root>/opp`, or a link to it from another name of the same install.
    """
    opp = environ.get("ASCEND_OPP_PATH", "")
    if install.kind != "cann" or not opp:
        return ""
    if not is_dir(Path(opp)):
        return f"ASCEND_OPP_PATH: {why_absent(Path(opp))}"
    local = install.root / "opp"
    if is_dir(local) and os.path.realpath(local) != os.path.realpath(opp):
        return f"ASCEND_OPP_PATH={opp} is of another install than {install.root}"
    return ""
