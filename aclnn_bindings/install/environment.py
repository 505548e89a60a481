"""Owns which environment variables concern CANN, what it needs of them, and how they are shown.

Refuses to show values that it does not know. Source of the needed ones: set_env.sh of CANN 8.1.RC1.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from .describe import Install
from .file_queries import is_dir, why_absent

_CONCERNS: Final = re.compile(
    r"(ASCEND|ACL|MINDTORCH|HCCL|NPU|TASK_QUEUE|PYTORCH_NPU|DRIVER|TOOLCHAIN_HOME|TBE)"
)
# Values are shown of these variables alone, and only in the form that each has.
_PATHS: Final = frozenset((
    "ACLSIM_REPORT", "ASCEND_AICPU_PATH", "ASCEND_CACHE_PATH", "ASCEND_CUSTOM_OPP_PATH",
    "ASCEND_DRIVER_PATH", "ASCEND_HOME_PATH", "ASCEND_INSTALL_PATH", "ASCEND_OPP_PATH",
    "ASCEND_PROCESS_LOG_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_WORK_PATH", "ATB_HOME_PATH",
    "DRIVER_PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "MINDTORCH_CACHE_DIR", "MINDTORCH_CANN_HOME",
    "MINDTORCH_LAYERS", "TBE_IMPL_PATH", "TOOLCHAIN_HOME",
))  # fmt: skip
_NUMBERS: Final = frozenset((
    "ACLSIM_DEVICES", "ACLSIM_THREADS", "ACL_LAUNCH_BLOCKING", "ACL_TDT_QUEUE_DEPTH",
    "ASCEND_DEVICE_ID", "ASCEND_GLOBAL_EVENT_ENABLE", "ASCEND_GLOBAL_LOG_LEVEL",
    "ASCEND_LAUNCH_BLOCKING", "ASCEND_MAX_OP_CACHE_SIZE", "ASCEND_RT_VISIBLE_DEVICES",
    "ASCEND_SLOG_PRINT_TO_STDOUT", "ASCEND_VISIBLE_DEVICES", "HCCL_BUFFSIZE",
    "HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT", "HCCL_IF_BASE_PORT", "HCCL_INTRA_PCIE_ENABLE",
    "HCCL_INTRA_ROCE_ENABLE", "HCCL_NPU_SOCKET_PORT_RANGE", "HCCL_HOST_SOCKET_PORT_RANGE",
    "HCCL_RDMA_SL", "HCCL_RDMA_TC", "HCCL_RDMA_TIMEOUT", "HCCL_WHITELIST_DISABLE",
    "INF_NAN_MODE_ENABLE", "INF_NAN_MODE_FORCE_DISABLE", "LCCL_DETERMINISTIC", "MINDTORCH_NATIVE",
    "MINDTORCH_START_SECONDS", "MINDTORCH_STOP_ON_FAILURE", "MINDTORCH_TRUST_HEADERS",
    "NPU_ASD_ENABLE", "TASK_QUEUE_ENABLE",
))  # fmt: skip
_SETTINGS: Final = frozenset((
    "ACLSIM_FAULTS", "ACLSIM_GUARD", "ACLSIM_MEMORY", "ACLSIM_SOC", "ACLSIM_STREAM",
    "ACLSIM_STRICT", "ACLSIM_STRIKES", "HCCL_ALGO", "HCCL_DETERMINISTIC", "HCCL_OP_EXPANSION_MODE",
    "HCCL_SOCKET_IFNAME", "MINDTORCH_MEMORY_GUARD", "PYTORCH_NPU_ALLOC_CONF",
))  # fmt: skip
_RELEASE: Final = re.compile(r"\d{1,2}\.\d{1,2}[A-Za-z0-9.]{0,20}|\d{4}-\d{2}")
# An address or a query is no path; quotes and `$` are, as a slip of a shell leaves them.
_PATH: Final = re.compile(r"(?!//)[^?#&=@%<>|\\]*")
_NUMBER: Final = re.compile(r"[\d,. :-]{0,128}|true|false|on|off", re.IGNORECASE)
# Words and numbers such as `level0:NA;level1:ring` or `npu1/matmul:stuck@12`.
_WORD: Final = r"[A-Za-z_*-]{0,40}\d{0,6}[A-Za-z]{0,2}\d{0,2}"
_SETTING: Final = re.compile(rf"{_WORD}(?:[,:;/@=]{_WORD}){{0,64}}")
FAULTS: Final = (
    "tail|zeros|lastk|lowacc|nan|workspace|past|crash|hang|code|trap|random|long|minuszero|cutoff"
    "|dense|default|flip|stuck|slow|ends|ahead|spill|race|batch|split|hf32"
)
_FAULT: Final = rf"(?:npu\d{{1,4}}/)?[A-Za-z0-9*]{{1,64}}:(?:{FAULTS})(?:@\d{{1,9}})?"
_FAULTS: Final = re.compile(rf"{_FAULT}(?:,{_FAULT}){{0,64}}")
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
Value = TypeVar("Value")
_KNOWN: Final = _PATHS | _NUMBERS | _SETTINGS
_FORMS: Final = {**dict.fromkeys(_NUMBERS, _NUMBER), **dict.fromkeys(_SETTINGS, _SETTING),
                 "ACLSIM_RELEASE": _RELEASE}  # fmt: skip


def masked_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that concern CANN, by name; of known ones their values."""
    return {
        name: visible_value(name, value)
        for name, value in sorted(environ.items())
        if name in _KNOWN or _CONCERNS.match(name)
    }


def visible_value(name: str, value: str) -> str:
    """`value` where the variable is known and the value has its form, else MASK; entries of a list
    of paths one by one."""
    if name in _PATHS:
        return ":".join(_path(entry) for entry in _entries(value))
    form = _FORMS.get(name)
    if name == "ACLSIM_FAULTS" and _FAULTS.fullmatch(value):  # `add:flip@9` looks like a password
        return value
    return value if form is not None and form.fullmatch(value) and _plain(value) else MASK


def concealed(value: Value, environ: Mapping[str, str]) -> Value:
    """A text, or the texts in tuples, lists, dicts and dataclasses, without values of `environ`
    that `visible_value` would mask, wherever they are quoted."""
    return cast(Value, _without(value, sorted(_secrets(environ), key=len, reverse=True)))


def _without(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(_without(item, secrets) for item in value)
    if isinstance(value, dict):
        return {key: _without(item, secrets) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.init]
        return replace(value, **{n: _without(getattr(value, n), secrets) for n in names})
    return value


def visible_command(words: Sequence[str]) -> list[str]:
    """A command line to record: its program, names of options and of a module, short numbers, and
    files that are there. Every other word may be a secret and is MASK."""
    visible_words = [words[0] if _is_program(words[0]) else _argument(words[0])] if words else []
    for before, word in pairwise(words):
        module = before == "-m" and re.fullmatch(r"[A-Za-z_][\w.]{0,80}", word)
        visible_words.append(word if module else _argument(word))
    return visible_words


def _is_program(word: str) -> bool:
    return (
        re.fullmatch(r"[A-Za-z][\w.+-]{0,40}", word) is not None and shutil.which(word) is not None
    )


def _argument(word: str) -> str:
    option, equals, value = word.partition("=")
    if re.fullmatch(r"-[A-Za-z]|--[A-Za-z][\w-]{0,40}", option):
        return option + equals + (_operand(value) if equals else "")
    return _operand(word)


def _operand(word: str) -> str:
    if re.fullmatch(r"-{0,2}|-?\d{1,5}(\.\d{1,5})?(e-?\d{1,3})?", word):
        return word
    is_file = len(word) < _LONGEST_PATH and "\0" not in word and os.path.lexists(word)
    return word if is_file and _plain(word) else MASK


def _entries(value: str) -> list[str]:
    """Of a list of paths; an address stays whole."""
    return re.split(r":(?!//)|;", value)


def _path(entry: str) -> str:
    return entry if _PATH.fullmatch(entry) and "://" not in entry and _plain(entry) else MASK


def _plain(value: str) -> bool:
    return masked(value) == value


_SHORTEST: Final = 4  # what is shorter may stand in any text by chance
_LONGEST_PATH: Final = 4096


def _secrets(environ: Mapping[str, str]) -> set[str]:
    """Values and entries of the variables that concern CANN that are not to be shown, and the same
    as paths."""
    secrets = set[str]()
    for name, value in environ.items():
        if name in _PATHS:
            secrets |= {entry for entry in _entries(value) if _path(entry) == MASK}
        elif _CONCERNS.match(name) and visible_value(name, value) == MASK:
            secrets.add(value)
    secrets |= {str(Path(secret)) for secret in secrets} | {repr(s)[1:-1] for s in secrets}
    return {secret for secret in secrets if len(secret) >= _SHORTEST}


def masked(value: str) -> str:
    """`value` without what looks like a secret by its own form."""
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
