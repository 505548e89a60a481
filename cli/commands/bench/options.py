"""Owns what `bench` is asked for: frozen records of its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...choices import filled
from ..check.options import TargetOptions


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """What is timed: operators, named sets, the launches of a recording."""

    ops: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    recording: Path | None = None
    shapes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Several devices: how often each times a workload, and where the run is recorded."""

    rounds: int
    ray: str | None
    book: Path | None
    prometheus: Path | None


@dataclass(frozen=True, slots=True)
class BenchOutput:
    """The files that are written."""

    json_file: Path | None
    plot: Path | None
    md: Path | None
    html: Path | None

    def pages(self, prometheus: Path | None) -> dict[str, Path | None]:
        """The files of a fleet, by the name of their option."""
        return {"html": self.html, "md": self.md, "json_file": self.json_file,
                "prometheus": prometheus}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """A run. `seconds` caps the sampling of one number; `fail_on` is the verdict that fails."""

    workloads: WorkloadOptions
    target: TargetOptions
    fleet: FleetOptions
    output: BenchOutput
    host_only: bool
    cold: bool
    against: str | None
    fail_on: str | None
    seconds: float
    peak: float | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> BenchOptions:
        """The records of click's values."""
        names = ("host_only", "cold", "against", "fail_on", "seconds", "peak")
        return cls(filled(WorkloadOptions, values), filled(TargetOptions, values),
                   filled(FleetOptions, values), filled(BenchOutput, values),
                   **{name: values[name] for name in names})  # fmt: skip
