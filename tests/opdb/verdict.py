"""Owns the verdict on an entry: equal, wrong, absent, refused, or not torch's either.

`device`: a wrong call that only the device met, as it ran.
"""

import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

import mindtorch

from .compare import Different, compare
from .entries import Case, Entry
from .translate import AbsentName

# What an entry is tried in that claims none of the dtypes asked for, before others.
FIRST = (torch.complex64, torch.int64)
RANK = ("equal", "untested", "device", "refused", "wrong", "absent")


class Slow(RuntimeError):
    """A case ran past its time."""


@dataclass
class Verdict:
    """What became of an entry's cases; `reasons` counts by text of what is not equal."""

    name: str
    kind: str
    verdict: str = "untested"
    cases: int = 0
    equal: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def add(self, what: str, reason: str, label: str) -> None:
        self.cases += 1
        self.equal += what == "equal"
        worst = max(RANK.index(what), RANK.index(self.verdict) if self.cases > 1 else 0)
        self.verdict = RANK[worst]
        if what != "equal":
            text = f"{what}: {reason}"
            self.reasons[text] = self.reasons.get(text, 0) + 1
            self.labels.setdefault(text, label)


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Slow is raised where the body takes longer."""

    def stop(*_: Any) -> None:
        raise Slow(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _brief(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0][:160]
    return f"{type(error).__name__}: {text}"


def _absent(error: BaseException) -> bool:
    return isinstance(error, AbsentName) or (
        isinstance(error, AttributeError) and "mindtorch" in str(error)
    )


def judge(entry: Entry, device: str, dtypes: list[torch.dtype], limit: int) -> Verdict:
    """Every case of the entry in the dtypes that it claims (its first one where none is)."""
    verdict = Verdict(entry.name, entry.kind)
    claimed = [d for d in dtypes if d in entry.dtypes]
    claimed = claimed or sorted(entry.dtypes, key=lambda d: (d not in FIRST, str(d)))[:1]
    for dtype in claimed:
        cases = entry.cases(dtype, limit)
        while True:
            try:
                case = next(cases, None)
            except Exception:  # the database itself fails on this machine
                break
            if case is None:
                break
            _try(entry, case, device, verdict)
    return verdict


def _try(entry: Entry, case: Case, device: str, verdict: Verdict) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with within(60):
                expected, slopes = case.run(torch, "cpu")
        except Exception:  # torch refuses: nothing to hold against
            return
        try:
            with within(60):
                result, ours = case.run(mindtorch, device)
                compare(result, expected, entry.values)
                for i, (a, b) in enumerate(zip(ours, slopes, strict=False)):
                    _slope(a, b, entry.values, i)
        except Different as error:
            text = re.sub(r" at \(.*", "", str(error)) if "expected" in str(error) else str(error)
            verdict.add("wrong", str(error) if len(str(error)) < 200 else text, case.label)
        except Exception as error:
            if device == "meta" and _meta_refuses(case):
                verdict.add("equal", "", case.label)
            else:
                verdict.add("absent" if _absent(error) else "refused", _brief(error), case.label)
        else:
            verdict.add("equal", "", case.label)


def _slope(got: Any, expected: Any, values: bool, i: int) -> None:
    what = f"gradient of input {i}"
    if expected is None or got is None:
        known = expected if expected is not None else got
        if known is not None and bool(
            (known != 0).any().item() if known.device.type != "meta" else 0
        ):
            raise Different(f"{what}: {'missing' if got is None else 'there'}")
        return
    compare(got, expected, values, what)


def _meta_refuses(case: Case) -> bool:
    """Whether torch has no such call on meta either."""
    try:
        case.run(torch, "meta")
    except Exception:
        return True
    return False


def judge_errors(entry: Entry, device: str) -> Verdict:
    """The entry's wrong calls: the class always, and the text up to addresses."""
    verdict = Verdict(entry.name, entry.kind)
    try:
        given = list(entry.errors())
    except Exception:
        return verdict
    for case, _ in given:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = _raised(case, torch, "cpu")
            if expected is None:
                continue
            got = _raised(case, mindtorch, device)
        if got is None:
            verdict.add("wrong", f"no error, expected {_brief(expected)}", case.label)
        elif type(got).__name__ in ("AclDeviceError", "AclDeviceLostError"):
            verdict.add("device", f"as it ran ⟂ {_brief(expected)}", case.label)
        elif isinstance(got, AbsentName):
            verdict.add("absent", str(got), case.label)
        elif type(got).__name__ not in [c.__name__ for c in type(expected).__mro__[:1]]:
            reason = f"class: {_brief(got)} ⟂ {_brief(expected)}"
            verdict.add("wrong", reason, case.label)
        elif _words(got) != _words(expected):
            verdict.add("refused", f"text: {_brief(got)} ⟂ {_brief(expected)}", case.label)
        else:
            verdict.add("equal", "", case.label)
    return verdict


def _words(error: BaseException) -> str:
    text = str(error).split("\nException raised")[0].split("C++ CapturedTraceback")[0]
    return text.strip().split("\n")[0]


def _raised(case: Case, lib: Any, device: str) -> BaseException | None:
    try:
        with within(30):
            case.run(lib, device)
            if lib is not torch and device == "npu":
                mindtorch.npu.synchronize()
    except Exception as error:
        if lib is not torch and device == "npu":
            _settle()
        return error
    return None


def _settle() -> None:
    """Wait for what is queued, and begin anew where it failed."""
    try:
        mindtorch.npu.synchronize()
    except RuntimeError:
        mindtorch.npu.restart_device(0)
