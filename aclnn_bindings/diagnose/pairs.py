"""Which versions of frameworks their makers released for which CANN; judges what is installed.

Data: `pairs.json`, each row with its source. `cann` are the releases that a version was made for,
`also` more that its release notes call compatible, `with` the packages that it wants beside it.
Says nothing of versions that no row names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from .surroundings import Cause

PACKAGES: Final = ("torch_npu", "vllm-ascend", "triton-ascend", "mindspore")
Release = tuple[int, int]


def mismatches(cann: str | None, installed: Callable[[str], str | None]) -> Iterator[Cause]:
    """What of the installed packages was not made for CANN release `cann`, or for each other."""
    for package in PACKAGES:
        version = installed(package)
        pair = _pair(package, version) if version else None
        if pair is None:
            continue
        if cann and (here := _release(cann)):
            yield from _against_cann(f"{package} {version}", pair, cann, here)
        yield from _against_packages(f"{package} {version}", pair, installed)


def _against_cann(name: str, pair: Mapping[str, Any], cann: str, here: Release) -> Iterator[Cause]:
    releases = [r for text in _releases(pair) if (r := _release(text))]
    if here in releases:
        return
    # A torch_npu calls by name what CANN has: a newer CANN keeps its functions.
    newer = pair["package"] == "torch_npu" and here > max(releases)
    paired = pair["cann"].replace(" ", " or ")
    yield Cause(
        "note" if newer else "warning",
        f"{name} was released for CANN {paired}, not for CANN {cann}",
        f"install CANN {paired}{_instead(pair, here)}",
        _source(pair),
    )


def _instead(pair: Mapping[str, Any], here: Release) -> str:
    """The version for the CANN that is here: a build of the same one, else the newest."""
    fitting = [
        row["version"]
        for row in _data()["pairs"]
        if row["package"] == pair["package"] and here in map(_release, row["cann"].split())
    ]
    fitting.sort(key=lambda version: _base(version) != _base(pair["version"]))
    return f", or {pair['package']} {fitting[0]}" if fitting else ""


def _against_packages(
    name: str, pair: Mapping[str, Any], installed: Callable[[str], str | None]
) -> Iterator[Cause]:
    for package, wanted in pair.get("with", {}).items():
        version = installed(package)
        if version is not None and _base(version) != wanted:
            yield Cause(
                "warning",
                f"{name} was released for {package} {wanted}, not for {package} {version}",
                f"pip install {package}=={wanted}",
                _source(pair),
            )


def _pair(package: str, version: str) -> Mapping[str, Any] | None:
    """The row of a version; a development build counts as the version that it leads to."""
    public = re.sub(r"(\.dev\d+|\+.*)$", "", version)
    rows = {row["version"]: row for row in _data()["pairs"] if row["package"] == package}
    return rows.get(public)


def _releases(pair: Mapping[str, Any]) -> list[str]:
    return [*pair["cann"].split(), *pair.get("also", "").split()]


def _release(text: str) -> Release | None:
    """Major and minor number: candidates and patches of a release share its interface."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def _base(version: str) -> str:
    match = re.match(r"\d+\.\d+\.\d+", version)
    return match[0] if match else version


def _source(pair: Mapping[str, Any]) -> str:
    return str(_data()["sources"][pair["source"]])


@cache
def _data() -> Any:
    return json.loads((Path(__file__).parent / "pairs.json").read_text(encoding="utf-8"))
