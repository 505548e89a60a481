"""Makes a recording into cases of `check`: one per distinct launch, on any install."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from ..conformance.run.subject import UnknownSubjectError
from . import subjects
from .judging import for_recorded_data
from .reader import open_recording
from .values import NotAskableError

# Between an operator and the number of a launch among its distinct ones: `aclnnAdd#2`.
MARK: Final = "#"
_FORM: Final = "functional/s0"
_NO_DATA: Final[Mapping[str, Sequence[Any]]] = {}


@dataclass(frozen=True, slots=True)
class Distinct:
    """One distinct launch: how often, and the elements of its inputs where they were kept."""

    name: str
    arguments: Mapping[str, Any]
    before: Mapping[str, Sequence[Any]]
    count: int


@cache
def distinct(path: Path) -> dict[str, Distinct]:
    """Case subject (`aclnnAdd#2`) → launch; launches that all failed are left out.

    Numbers follow the first calls, so that they are the same on any machine.
    """
    recording = open_recording(path)
    contents: dict[str, Mapping[str, Sequence[Any]]] = {}
    for launch in recording.captured():
        contents.setdefault(_key(launch.call.name, launch.call.arguments), launch.before)
    by_call: dict[str, Distinct] = {}
    numbers: dict[str, int] = {}
    for one in sorted(recording.launches(), key=lambda one: one.first):
        if one.failures == one.count or not one.arguments:
            continue
        number = numbers[one.name] = numbers.get(one.name, -1) + 1
        before = contents.get(_key(one.name, one.arguments), _NO_DATA)
        by_call[f"{one.name}{MARK}{number}"] = Distinct(one.name, one.arguments, before, one.count)
    return by_call


def _key(name: str, arguments: Mapping[str, Any]) -> str:
    relevant = {
        k: v for k, v in arguments.items() if k not in ("stream", "workspaceSize", "preparedBy")
    }
    return f"{name} {relevant!r}"


def subject(path: Path, name: str, declarations: Any) -> Any:
    """The subject of a distinct launch; UnknownSubjectError for one that the recording lacks."""
    launch = distinct(path).get(name)
    if launch is None:
        raise UnknownSubjectError(f"{name}: {path} has no such launch")
    judged = subjects.subject(launch.name, [(launch.arguments, launch.before)], declarations)
    if launch.before:
        judged.laws = lambda: {"functional": for_recorded_data}
    return judged


def case_ids(path: Path, declarations: Any) -> tuple[list[str], dict[str, str]]:
    """Ids of the launches that can be asked about, and why others cannot, by operator."""
    ids: list[str] = []
    refused: dict[str, str] = {}
    for name, launch in distinct(path).items():
        try:
            subject(path, name, declarations)
        except (UnknownSubjectError, NotAskableError) as error:
            refused.setdefault(launch.name, str(error))
            continue
        ids.append(f"{name}/{_FORM}")
    return ids, refused
