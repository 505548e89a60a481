"""Owns the verdict of one case as data, and the words for verdicts; refuses to compute any."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

# verdict -> (counts as failure, meaning). The order is that of reports, worst first.
VERDICTS: Final[dict[str, tuple[bool, str]]] = {
    "CRASH": (True, "the worker process died; the case was lost, the run went on"),
    "HANG": (True, "no answer within the time limit; the worker was killed"),
    "POISONED": (True, "the device was unusable afterwards; the worker was replaced"),
    "OOM": (True, "memory ran out"),
    "ERROR": (True, "an error where a result was expected"),
    "FAIL": (True, "the result breaks the rule of the operator's class"),
    "MISTRUSTED": (True, "the numbers pass, but a guard found that they prove nothing"),
    "FLAKY": (True, "failed at first, passed with every fresh seed"),
    "XPASS": (False, "a known issue that no longer fails: remove its entry"),
    "XFAIL": (False, "fails as a known-issue entry or a document says"),
    "UNSUPPORTED": (False, "not supported: neither header nor documents declare this combination"),
    "SKIP": (False, "nothing to compare; the reason is given"),
    "PASS": (False, "meets its rule, and no guard found a problem"),
}
NEUTRAL: Final = frozenset(("SKIP", "UNSUPPORTED"))
# Whose error a result is, where it is not the device's.
REFERENCE: Final = "reference"
FAILING: Final = frozenset(v for v, (fails, _) in VERDICTS.items() if fails)


@dataclass(frozen=True, slots=True)
class Result:
    """One case's verdict and what it rests on. `outcomes` is (tier, rule, passed, numbers).

    `device` and `node` say where it ran, `soc` as which product if not the run's, `digest` is that
    of its outputs' bits (asked for by comparisons of devices). `cause` is what a failure was shrunk
    to (see run/shrink.py), `pattern` where its wrong elements lie (see
    mindtorch_npu.judge.pattern). `standards` are verdicts of named standards beside ours, in words.
    `blame` is REFERENCE where a person's reference is wrong: the device has no verdict then.
    """

    case: str
    op: str
    form: str
    verdict: str
    dtype: str = ""
    tier: str = ""
    required: str = ""
    reason: str = ""
    guards: tuple[str, ...] = ()
    outcomes: tuple[tuple[str, str, bool, str], ...] = ()
    measure: Mapping[str, Any] | None = None
    inputs: tuple[str, ...] = ()
    aclnn: str = ""
    seconds: float = 0.0
    seed: int = 0
    issue: str = ""
    rechecks: tuple[str, ...] = ()
    cause: Mapping[str, Any] | None = None
    pattern: Mapping[str, Any] | None = None
    device: str = ""
    node: str = ""
    digest: str = ""
    soc: str = ""
    standards: tuple[str, ...] = ()
    blame: str = ""

    @property
    def failing(self) -> bool:
        return self.verdict in FAILING

    def with_(self, **changes: Any) -> Result:
        """A copy with other fields."""
        if not changes.keys() <= _FIELDS:
            raise TypeError(f"a result has no {', '.join(changes.keys() - _FIELDS)}")
        copy = object.__new__(Result)
        for name in self.__slots__:  # `replace` looks every field up again
            value = changes[name] if name in changes else getattr(self, name)
            object.__setattr__(copy, name, value)
        return copy

    def brief(self) -> Result:
        """A copy for counting, without what only a report of this case tells: a run of every
        operator at `full` has half a million results."""
        return replace(self, outcomes=(), measure=None, inputs=())

    def as_json(self) -> dict[str, Any]:
        """Plain data without empty fields."""
        data = {k: v for k in self.__slots__ if (v := getattr(self, k)) or k in _ALWAYS}
        data["seconds"] = round(self.seconds, 6)
        return data


_FIELDS: Final = frozenset(Result.__slots__)
_ALWAYS: Final = frozenset(("case", "op", "form", "verdict", "dtype", "seconds", "seed"))


_REPEATED: Final = frozenset(
    ("op", "form", "verdict", "dtype", "tier", "required", "aclnn", "device", "node", "soc")
)


def from_json(data: Mapping[str, Any]) -> Result:
    """The Result of a journal line; unknown fields are ignored, so that newer journals read.

    TypeError where a field is of another kind than Result's.
    """
    known = {k: v for k, v in data.items() if k in Result.__slots__}
    for each in fields(Result):
        if each.name in known and not _IS[str(each.type)](known[each.name]):
            raise TypeError(f"{each.name} is no {each.type}: {known[each.name]!r:.100}")
    for name in ("guards", "inputs", "rechecks", "standards"):
        known[name] = tuple(known.get(name, ()))
    known["outcomes"] = tuple((t, r, bool(p), n) for t, r, p, n in known.get("outcomes", ()))
    for name in _REPEATED & known.keys():  # one text for all results: a journal may have 10⁶
        known[name] = sys.intern(known[name])
    return Result(**known)


def _texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def _outcomes(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(each, list | tuple) and len(each) == 4 and _texts([each[0], each[1], each[3]])
        for each in value
    )


# What a field of Result may hold in a file, by its annotation.
_IS: Final[dict[str, Callable[[Any], bool]]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, int),
    "float": lambda value: isinstance(value, int | float),
    "tuple[str, ...]": _texts,
    "tuple[tuple[str, str, bool, str], ...]": _outcomes,
    "Mapping[str, Any] | None": lambda value: value is None or isinstance(value, dict),
}


@dataclass(slots=True)
class Counts:
    """How many results have each verdict."""

    by_verdict: dict[str, int] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        self.by_verdict[result.verdict] = self.by_verdict.get(result.verdict, 0) + 1

    @property
    def total(self) -> int:
        return sum(self.by_verdict.values())

    @property
    def failing(self) -> int:
        return sum(n for v, n in self.by_verdict.items() if v in FAILING)

    def ordered(self) -> list[tuple[str, int]]:
        """(verdict, count), PASS first, then worst first."""
        order = ["PASS", *(v for v in VERDICTS if v != "PASS")]
        return [(v, self.by_verdict[v]) for v in order if self.by_verdict.get(v)]
