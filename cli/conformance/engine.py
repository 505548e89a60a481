"""Owns a run from selection to record: which cases, dealt how, recorded where; prints nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from . import journal, known
from .case import Case, parse
from .cases import Plan, cases
from .pool import Batch, Pool, Setup
from .result import Counts, Result

_BATCH: Final = 40


class NothingSelectedError(ValueError):
    """The selection is empty; the message says what was asked and what there is."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. `ops` names rows; `raw` names ACLNN functions without one."""

    ops: tuple[str, ...]
    plan: Plan
    setup: Setup
    seed: int = 0
    fresh_seeds: int = 0
    jobs: int = 2
    only: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    every_raw: bool = False
    done: Mapping[str, Result] = field(default_factory=dict)
    issues: tuple[known.Issue, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    save: str = ""


@dataclass(slots=True)
class Run:
    """A run in progress: iterate `results()`; everything is in the journal as well."""

    request: Request
    pool: Pool
    environment: dict[str, Any]
    batches: list[Batch]
    total: int
    journal: journal.Journal
    counts: Counts = field(default_factory=Counts)
    seconds: float = 0.0
    done: int = 0

    def results(self) -> Iterator[Result]:
        """Every result, those of a resumed journal first; the journal gets an end line."""
        started = time.monotonic()
        interrupted = True
        try:
            for result in self.request.done.values():
                yield self._take(result)
            for found in self.pool.results(self.batches):
                result = known.apply(found, self.request.issues, self.environment)
                self.journal.result(result)
                self.seconds = time.monotonic() - started
                yield self._take(result)
            interrupted = False
        finally:
            self.seconds = time.monotonic() - started
            self.pool.stop()
            self.journal.write("end", {"seconds": round(self.seconds, 3), "replaced":
                               self.pool.replaced, "interrupted": interrupted})  # fmt: skip

    def _take(self, result: Result) -> Result:
        self.counts.add(result)
        self.done += 1
        return result


def begin(request: Request, path: Path) -> Run:
    """Start a worker, select the cases, write the journal's header.

    EnvironmentFailedError when no worker starts; NothingSelectedError for an empty selection.
    """
    pool = Pool(request.setup, request.jobs)
    environment = pool.open()
    try:
        selected = list(select(request, environment))
        if not selected:
            raise NothingSelectedError(
                "nothing selected: no case matches these operators and restrictions"
            )
        batches = list(_batches(request, selected))
        total = sum(len(b.cases) for b in batches) + len(request.done)
        book = journal.Journal(path)
        if not request.done:
            book.write("run", journal.header(environment, request.options, total))
    except BaseException:
        pool.stop()
        raise
    return Run(request, pool, environment, batches, total, book)


def select(request: Request, environment: Mapping[str, Any]) -> Iterator[Case]:
    """The cases of the request, in a stable order."""
    if request.only:
        yield from (parse(name) for name in request.only)
        return
    yield from _of_rows(request, environment)
    if request.raw or request.every_raw:
        yield from _of_functions(request)


def _of_rows(request: Request, environment: Mapping[str, Any]) -> Iterator[Case]:
    if not request.ops:
        return
    from .claims import claimed
    from .subject import row

    declared = declarations(request.setup)
    for name in request.ops:
        op = row(name)
        dtypes = claimed(op, declared, str(environment.get("soc", "")))
        yield from cases(op, dtypes, request.plan)


def _of_functions(request: Request) -> Iterator[Case]:
    from .contract import cases_of

    declared = declarations(request.setup)
    if declared is None:
        raise NothingSelectedError("raw mode calls ACLNN functions: it needs an npu device")
    for name in request.raw or tuple(declared.ops):
        signature = declared.ops.get(name)
        if signature is None:
            near = ", ".join(get_close_matches(name, list(declared.ops), 3))
            raise NothingSelectedError(
                f"{name}: the install at hand declares no such operator"
                + (f"; near: {near}" if near else "")
            )
        yield from cases_of(signature)


def declarations(setup: Setup) -> Any:
    """What the install declares that workers open; None for other devices than npu."""
    if not setup.device.startswith("npu"):
        return None
    import aclnn_bindings

    return aclnn_bindings.open(setup.home, simulator=setup.simulator).declarations


def _batches(request: Request, selected: Sequence[Case]) -> Iterator[Batch]:
    """Batches of neighbours, one operator's cases together; fresh seeds repeat the cases."""
    options: dict[str, Any] = {}
    if request.save:
        options["save"] = request.save
    names = [case.id for case in selected]
    # Small enough that the last batches end together.
    size = max(1, min(_BATCH, len(names) // (4 * request.jobs) or 1))
    for seed in range(request.seed, request.seed + 1 + request.fresh_seeds):
        named = names if seed == request.seed else [c for c in names if "/meta/" not in c]
        named = [c for c in named if journal.key_of(c, seed) not in request.done]
        for i in range(0, len(named), size):
            yield Batch(tuple(named[i : i + size]), seed, options)


def find_ops(names: Sequence[str], families: Sequence[str], every: bool) -> tuple[str, ...]:
    """Row names for what was typed: names, base names, ACLNN names, families of rows.

    NothingSelectedError for a name that no row has, with the nearest ones.
    """
    from mindtorch.ops import OPS

    sampled = [n for n, op in OPS.items() if op.samples is not None]
    if every:
        return tuple(sampled)
    found: dict[str, None] = {}
    for family in families:
        members = [n for n in sampled if family_of(OPS[n]) == family]
        if not members:
            known_families = sorted({family_of(OPS[n]) for n in sampled})
            raise NothingSelectedError(f"--family {family}: one of {', '.join(known_families)}")
        found.update(dict.fromkeys(members))
    for name in names:
        found.update(dict.fromkeys(_named(name, OPS, sampled)))
    return tuple(found)


def _named(name: str, ops: Mapping[str, Any], sampled: Sequence[str]) -> list[str]:
    wanted = name.removesuffix("_") if name not in ops else name
    found = [n for n in sampled if wanted in (n, n.partition(".")[0].strip("_"))]
    found = found or [n for n in sampled if any(c.name == name for c in ops[n].aclnn)]
    if found:
        return found
    if wanted in ops:
        raise NothingSelectedError(f"{name}: its row has no samples, so there is nothing to run")
    near = get_close_matches(wanted, [*ops], 3)
    raise NothingSelectedError(
        f"{name}: no such operator"
        + (f"; near: {', '.join(near)}" if near else "")
        + "; `mindtorch-npu ops` lists them"
    )


def family_of(op: Any) -> str:
    """The module that declares a row: pointwise, linalg, indexing …"""
    for source in (op.infer, op.cpu, op.body, op.samples):
        module = getattr(source, "__module__", "") or ""
        if module.startswith("mindtorch.ops.") and module.rpartition(".")[2] not in _SHARED:
            return module.rpartition(".")[2]
    return "other"


_SHARED: Final = frozenset(("rules", "samples", "spec"))
Progress = Callable[[Run, Result], None]
