"""Reads what a person pastes: codes, message ids, calls, shapes, devices and stack of a log.

Takes tracebacks of frameworks, CANN's messages and plog files; refuses to judge what it reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from ..interface.signature import WORKSPACE_SUFFIX
from ..runtime import message_ids, results
from ..runtime.status import StatusCodes

_T = TypeVar("_T")

# Digits of a time, an address or a process are no code: a word of failure stands before it.
_CODE: Final = re.compile(
    r"(?:code|err(?:or|no)?|ret(?:urn(?:s|ed)?)?|result|fail(?:ed|ure)?|status|->)"
    r"[^\n\d]{0,24}(?<![\d.\-])([1-5]\d{5})(?![\d\-]|\.\d)",
    re.IGNORECASE,
)
_BARE: Final = re.compile(r"(?<![\w.\-:])([1-5]\d{5})(?![\w\-:]|\.\d)")
_NAME: Final = re.compile(r"\bACL(?:NN|RT|DVPP)?_ERR(?:OR)?_\w+")
_CALL: Final = re.compile(r"\b(aclnn[A-Z]\w+|Hccl[A-Z]\w+|acl(?:rt|mdl|op)?[A-Z]\w+)", re.ASCII)
_SHAPE: Final = re.compile(r"\[\s*\d+(?:\s*,\s*\d+)+\s*,?\s*\]")
_DTYPE: Final = re.compile(r"\bDT_[A-Z]+\d*\b")
_SOC: Final = re.compile(r"\bAscend(?:910|310|950)\w*(?:_\w+)?\b|\bsocVersion \[(\w+)\]")
_DEVICE: Final = re.compile(r"\b[Dd]evice(?:Id|_id|:|\s)\s*\[?(\d+)\b")
_RELEASE: Final = re.compile(
    r"(?:\bCANN[ :=]*(?:version[ :=]*)?|\bversion\s*=\s*|/cann-|/ascend-toolkit/)"
    r"(\d{1,2}\.\d+(?:\.(?:RC)?\d+)?(?:\.?(?:alpha|beta)\.?\d*)?)",
    re.IGNORECASE,
)
_FRAME: Final = re.compile(r'File "([^"\n]+)", line (\d+), in (\S+)')
_EXCEPTION: Final = re.compile(
    r"(?:^|[\s\])])((?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)): ([^\n]{1,120})",
    re.MULTILINE,
)
_SOURCE: Final = re.compile(r"\[FUNC:(\w+)\]\s?\[FILE:([\w.]+)\]\s?\[LINE:(\d+)\]")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a log says, each in the order in which it first appears.

    `codes` are number and symbol, `results` family and number, as of HcclResult; `frames` are
    Python's, innermost last; `sources` are the places inside CANN; `exceptions` are Python's, with
    their messages.
    """

    codes: tuple[tuple[int, str], ...] = ()
    results: tuple[tuple[str, int], ...] = ()
    ids: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    socs: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()

    @property
    def operators(self) -> tuple[str, ...]:
        """The ACLNN operators among the calls."""
        return tuple(call for call in self.calls if call.startswith("aclnn"))


def read(text: str, names: StatusCodes | None = None) -> Reading:
    """Everything that can be recognised in `text`."""
    known = (names or StatusCodes()).names()
    return Reading(
        codes=_once(_codes(text, known)),
        results=_once(results.read(text)),
        ids=_once(m[1] for m in message_ids.PATTERN.finditer(text) if message_ids.of_id(m[1])),
        calls=_once(m[1].removesuffix(WORKSPACE_SUFFIX) for m in _CALL.finditer(text)),
        shapes=_once(re.sub(r"\s", "", m[0]) for m in _SHAPE.finditer(text))[:8],
        dtypes=_once(m[0] for m in _DTYPE.finditer(text))[:8],
        socs=_once(m[1] or m[0] for m in _SOC.finditer(text)),
        devices=_once(m[1] for m in _DEVICE.finditer(text)),
        releases=_once(m[1] for m in _RELEASE.finditer(text)),
        frames=_once(f"{m[1]}:{m[2]} {m[3]}" for m in _FRAME.finditer(text))[-3:],
        sources=_once(f"{m[2]}:{m[3]} {m[1]}" for m in _SOURCE.finditer(text))[:4],
        exceptions=_once(f"{m[1]}: {m[2].strip()}" for m in _EXCEPTION.finditer(text))[:4],
    )


def _codes(text: str, known: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    numbers = {name: number for number, name in known.items()}
    places: dict[int, int] = {}
    patterns = (_CODE, _BARE) if "\n" not in text.strip() else (_CODE,)
    for pattern in patterns:
        for match in pattern.finditer(text):
            places.setdefault(int(match[1]), match.start(1))
    for match in _NAME.finditer(text):
        if match[0] in numbers:
            places.setdefault(numbers[match[0]], match.start())
    for number in sorted(places, key=places.__getitem__):
        if number in known:
            yield number, known[number]


def _once(items: Iterator[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(items))
