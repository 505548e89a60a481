"""Names what is wrong with results and with how they came: accusations, each a kind and a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..judge.precision import Array

# What an operator can be accused of; the text of an accusation says what was seen.
KINDS: Final[Mapping[str, str]] = {
    "unwritten": "leaves elements of its result unwritten",
    "input": "gives an input's elements as its result",
    "earlier": "gives the result of an earlier launch",
    "constant": "gives a constant",
    "size": "computes a fixed number of elements",
    "other operators": "launches other operators of ACLNN",
    "phase 1": "computes in GetWorkspaceSize",
    "late": "works on after its stream was waited for",
    "writes": "writes where it may not",
    "refuses": "refuses a call that the reference's declaration allows",
    "process": "starts processes or reaches into them",
    "channel": "writes to the grader's own pipe",
    "log": "tampers with the log of calls",
    "exit": "ends its process",
    "crash": "crashes",
    "hang": "hangs",
    "limit": "uses more than it may",
}
# Elements that a result needs at least to be taken for another's, and how many are looked at.
_LEAST, _SOME = 12, 256


@dataclass(frozen=True, slots=True)
class Accusation:
    """What an operator did that no honest one does, or how it ended."""

    kind: str
    text: str


@dataclass(slots=True)
class Seen:
    """One launch with its results: as they came, the reference's, and what memory held before."""

    got: Sequence[Array]
    expected: Sequence[Array]
    before: Sequence[Array]
    inputs: Mapping[str, Array]


def explain(seen: Seen, earlier: Sequence[Seen]) -> list[Accusation]:
    """What wrong results are instead."""
    accusations = []
    for k, (got, before) in enumerate(zip(seen.got, seen.before, strict=True)):
        if not got.size:
            continue
        for accusation in (
            _unwritten(k, got, before),
            _input(k, got, seen.inputs),
            _earlier(k, got, [e for e in earlier if len(e.got) > k]),
            _constant(k, got, seen.expected[k]),
        ):
            if accusation is not None:
                accusations.append(accusation)
                break
    return accusations


def _bits(array: Array) -> Array:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).reshape(flat.size, -1)


def _unwritten(k: int, got: Array, before: Array) -> Accusation | None:
    if got.dtype == np.bool_:
        return None
    untouched = (_bits(got) == _bits(before)).all(-1)
    count = int(untouched.sum())
    if not count:
        return None
    if count == got.size:
        return Accusation("unwritten", f"result {k} is not written at all")
    first = int(np.argmax(untouched))
    if untouched[first:].all():
        words = f"only the first {first} of {got.size} elements of result {k} are written"
        return Accusation("size", words)
    return Accusation("unwritten", f"{count} of {got.size} elements of result {k} are not written")


def _input(k: int, got: Array, inputs: Mapping[str, Array]) -> Accusation | None:
    for name, array in inputs.items():
        if array.shape == got.shape and array.dtype == got.dtype and _same(got, array):
            return Accusation("input", f"result {k} is a copy of {name}")
    return None


def _earlier(k: int, got: Array, earlier: Sequence[Seen]) -> Accusation | None:
    flat = np.ascontiguousarray(got).reshape(-1)
    for launch in earlier:
        other = np.ascontiguousarray(launch.got[k]).reshape(-1)
        both = min(flat.size, other.size)
        if (
            flat.dtype == other.dtype
            and _differing(other[:both])
            and _same(flat[:both], other[:both])
        ):
            return Accusation("earlier", f"result {k} is that of an earlier launch")
    return None


def _constant(k: int, got: Array, expected: Array) -> Accusation | None:
    flat = np.ascontiguousarray(got).reshape(-1)
    if _differing(np.ascontiguousarray(expected).reshape(-1)) and _same(flat[1:], flat[:-1]):
        return Accusation("constant", f"each element of result {k} is {flat[0]}")
    return None


def _differing(flat: Array) -> bool:
    """Whether elements differ so much that another result can't be the same by chance."""
    return flat.size >= _LEAST and np.unique(_bits(flat[:_SOME]), axis=0).shape[0] >= _LEAST // 2


def _same(a: Array, b: Array) -> bool:
    return a.shape == b.shape and bool((_bits(a) == _bits(b)).all())


def merged(accusations: Sequence[Accusation]) -> list[Accusation]:
    """One accusation of each kind, in the order in which they came; a size that changes from launch
    to launch is no fixed one."""
    firsts = {a.text.partition(" of ")[0] for a in accusations if a.kind == "size"}
    merged_ones: dict[str, Accusation] = {}
    for accusation in accusations:
        kind = accusation.kind
        if kind == "size" and len(firsts) > 1:
            kind = "unwritten"
        merged_ones.setdefault(kind, Accusation(kind, accusation.text))
    return list(merged_ones.values())


def described(accusation: Accusation) -> str:
    """`computes in GetWorkspaceSize: …`."""
    return f"{KINDS[accusation.kind]}: {accusation.text}"


def as_json(accusations: Sequence[Accusation]) -> list[dict[str, Any]]:
    return [{"kind": a.kind, "text": described(a)} for a in accusations]
