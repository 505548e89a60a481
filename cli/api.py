"""Owns checking from programs: `from mindtorch_npu import check, assert_conforms`.

Nothing is printed and nothing exits. Cases run in worker processes as they do under the command,
so that a crash or a hang of an operator costs one case and not the caller.
"""

from __future__ import annotations

import inspect
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .conformance.record.result import Result

SCHEMA: Final = "mindtorch-npu/python-report/1"
Golden = Callable[..., Any] | str | Path


@dataclass(frozen=True)
class Failure:
    """One failing case: what it was shrunk to, its worst element, and how to run it again."""

    case: str
    verdict: str
    reason: str
    cause: str
    inputs: tuple[str, ...]
    again: str
    saved: str = ""

    def text(self) -> str:
        """Two lines for a person."""
        return f"{self.verdict} {self.case}: {self.cause or self.reason}\n  again: {self.again}"


@dataclass(frozen=True)
class CheckReport:
    """What a check gave. `passed`: something was judged, and nothing failed."""

    operators: tuple[str, ...]
    counts: Mapping[str, int]
    failures: tuple[Failure, ...]
    unjudged: tuple[str, ...]
    assumed: Mapping[str, tuple[str, ...]]
    environment: Mapping[str, Any]
    seconds: float

    @property
    def passed(self) -> bool:
        return not self.failures and not self.unjudged and bool(self.counts)

    def text(self) -> str:
        """The report in words: failures first, then what was not judged."""
        lines = [f.text() for f in self.failures]
        lines += [
            f"not judged: {name}: every case is UNSUPPORTED or SKIP" for name in self.unjudged
        ]
        counts = ", ".join(f"{n} {v}" for v, n in self.counts.items())
        return "\n".join([*lines, f"{', '.join(self.operators)}: {counts or 'no case'}"])

    def as_json(self) -> dict[str, Any]:
        """Plain data; docs/python_api.md describes the schema."""
        return {
            "schema": SCHEMA, "passed": self.passed, "operators": list(self.operators),
            "counts": dict(self.counts), "unjudged": list(self.unjudged),
            "failures": [dict(vars(f)) for f in self.failures],
            "assumed": {k: list(v) for k, v in self.assumed.items()},
            "environment": dict(self.environment), "seconds": self.seconds,
        }  # fmt: skip


def check(
    operators: str | Sequence[str], *, golden: Golden | Sequence[Golden] = (),
    level: str = "quick", dtypes: Sequence[str] = (), home: str | Path | None = None,
    simulator: bool = False, device: str = "npu:0", seed: int = 0, jobs: int = 1,
    timeout: float = 60.0, save: str | Path | None = None,
) -> CheckReport:  # fmt: skip
    """Check operators (rows of mindtorch or `aclnn…` names) against references.

    `golden`: a module-level function whose parameters are the header's, or files of references.
    `timeout` is seconds for one case, `save` a folder for failing cases. Raises
    UnknownSubjectError, NothingSelectedError, GoldenError, EnvironmentFailedError.
    """
    from .conformance.operators import golden_files
    from .conformance.run import engine

    names = (operators,) if isinstance(operators, str) else tuple(operators)
    with references(golden), tempfile.TemporaryDirectory(prefix="mindtorch-check-") as folder:
        run = _begin(names, level, dtypes, _setup(home, simulator, device, timeout), seed, jobs,
                     Path(folder) / "journal.jsonl", save)  # fmt: skip
        results = list(run.results())
        assumed = golden_files.assumptions(names, engine.declarations(run.request.setup))
        return _report(names, results, run.environment, run.seconds, save, assumed)


def assert_conforms(operators: str | Sequence[str], **options: Any) -> CheckReport:
    """`check`, with an AssertionError that names the causes where it does not pass."""
    report = check(operators, **options)
    if not report.passed:
        raise AssertionError(report.text())
    return report


@contextmanager
def references(golden: Golden | Sequence[Golden]) -> Iterator[None]:
    """References for the operators that are judged inside, in this process and its workers."""
    import os

    from .conformance.operators import golden_files

    several: Iterable[Any] = golden if isinstance(golden, list | tuple) else (golden,)
    before = os.environ.get(golden_files.VARIABLE)
    try:
        golden_files.export(tuple(_place(g) for g in several))
        yield
    finally:
        if before is None:
            os.environ.pop(golden_files.VARIABLE, None)
        else:
            os.environ[golden_files.VARIABLE] = before


def _place(golden: Any) -> str:
    """Where workers find a reference: a path, or a function's file and name."""
    if isinstance(golden, str | Path):
        return str(golden)
    name = getattr(golden, "__qualname__", "")
    file = inspect.getsourcefile(golden) if callable(golden) else None
    if file is None or not name.isidentifier():
        raise TypeError(f"golden={golden!r}: expected a file, or a function at the top level of "
                        "a module: workers import it by its file and name")  # fmt: skip
    return f"{file}:{name}"


def _setup(home: Any, simulator: bool, device: str, timeout: float) -> Any:
    from .conformance.run.process import Setup

    return Setup(device, str(home) if home else None, simulator, timeout=timeout)


def _begin(
    names: tuple[str, ...], level: str, dtypes: Sequence[str], setup: Any, seed: int, jobs: int,
    journal: Path, save: Any,
) -> Any:  # fmt: skip
    from .conformance.cases.case import LEVELS
    from .conformance.cases.cases import CaseFilter
    from .conformance.run import engine

    if level not in LEVELS:
        raise ValueError(f"level={level!r}: expected one of {', '.join(LEVELS)}")
    ops = engine.find_ops(names, (), False)
    options = {"save": str(Path(save).resolve())} if save else {}
    request = engine.RunRequest(ops, CaseFilter(level, tuple(dtypes)), setup, seed, jobs=jobs,
                             options=options)  # fmt: skip
    return engine.begin(request, journal)


def _report(
    names: tuple[str, ...], results: Sequence[Result], environment: Mapping[str, Any],
    seconds: float, save: Any, assumed: Mapping[str, tuple[str, ...]],
) -> CheckReport:  # fmt: skip
    from .conformance.record.result import NEUTRAL

    judged = {r.op for r in results if r.verdict not in NEUTRAL and "contract" not in r.form}
    failures = tuple(failure(r, save, environment) for r in results if r.failing)
    return CheckReport(names, Counter(r.verdict for r in results), failures,
                  tuple(n for n in names if n not in judged), assumed, environment,
                  round(seconds, 3))  # fmt: skip


def failure(
    result: Result, save: Any = None, environment: Mapping[str, Any] = MappingProxyType({})
) -> Failure:
    """A failing result in words."""
    from .conformance.record.journal import place_words, repro

    cause = str(result.cause["text"]) if result.cause else ""
    return Failure(result.case, result.verdict, result.reason, cause, result.inputs,
                   repro(result.case, result.seed, place_words({}, environment)),
                   str(save) if save else "")  # fmt: skip
