"""Owns what a run is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..cases.cases import CaseFilter
from ..cases.shard import CaseShard
from ..record import known
from ..record.result import Result
from .pool import Scheduler, Setup

# Makes a scheduler for a setup and a number of jobs.
Maker = Callable[[Setup, int], Scheduler]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What is asked for. `ops` names rows and operators, `every` adds every operator exported;
    `parts` are those of `ops` that others are made of, which other products' need not be checked;
    `raw` names ACLNN functions whose contract alone is checked. `shard` is the part of the cases
    that this run is for; `compare` runs each of them on every device and lets those vote, for
    `minutes` of soaking if that is not 0; `scheduler` makes another one than the local pool;
    `items` are the options of work beside checking, which every device gets and none votes on;
    `budget`, where it is not 0, are the seconds after which no more cases are dealt: those that
    tell most come first; `extra` are cases that a budget may leave out unnoticed, after those of
    `only`; `soak_until`, of `time.monotonic`, has a soak use the rest of the time."""

    ops: tuple[str, ...]
    plan: CaseFilter
    setup: Setup
    seed: int = 0
    fresh_seeds: int = 0
    jobs: int = 2
    only: tuple[str, ...] = ()
    every: bool = False
    raw: tuple[str, ...] = ()
    every_raw: bool = False
    done: Mapping[str, Result] = field(default_factory=dict)
    issues: tuple[known.Issue, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    save: str = ""
    shard: CaseShard = field(default_factory=CaseShard)
    compare: bool = False
    minutes: float = 0.0
    run: str = ""
    scheduler: Maker | None = None
    items: Mapping[str, Any] = field(default_factory=dict)
    design: bool = False
    budget: float = 0.0
    extra: tuple[str, ...] = ()
    soak_until: float = 0.0
    parts: tuple[str, ...] = ()
