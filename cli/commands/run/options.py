"""Owns what `run` is asked for: frozen records of its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from ...choices import filled

_KEEPERS: Final = "a recording: --record FILE, --summary, --verify, --html or --perfetto"


def is_sweep(fault: str) -> bool:
    """Whether a fault is one call of many runs after the other."""
    return re.match(r"sweep\b", fault) is not None


@dataclass(frozen=True, slots=True)
class RunTarget:
    """The install that the program meets, and what its simulator is to be."""

    simulator: bool = False
    home: Path | None = None
    soc: str | None = None
    devices: int | None = None
    memory: str | None = None


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """What goes into a recording; `record` is the file that keeps it."""

    record: Path | None = None
    data: tuple[str, ...] = ()
    data_limit: int | None = None
    device_time: bool = False
    stacks: bool = False


@dataclass(frozen=True, slots=True)
class JudgingOptions:
    """What is judged: misuse of the API (`strict`), and results of launches (`verify`)."""

    strict: str | None = None
    allow: tuple[str, ...] = ()
    verify: str | None = None
    save: Path | None = None
    allow_unjudged: bool = False


@dataclass(frozen=True, slots=True)
class RunOutput:
    """What is shown of a recording, and where."""

    summarize: bool = False
    html: Path | None = None
    perfetto: Path | None = None

    @property
    def reads_recording(self) -> bool:
        """Whether something is shown of the calls, whether or not a recording is kept."""
        return bool(self.summarize or self.html or self.perfetto)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """A run of `command`, with the rules of `faults` that break its calls."""

    command: tuple[str, ...]
    faults: tuple[str, ...] = ()
    target: RunTarget = RunTarget()
    recording: RecordingOptions = RecordingOptions()
    judging: JudgingOptions = JudgingOptions()
    output: RunOutput = RunOutput()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> RunOptions:
        """The records of click's values."""
        return cls(values["command"], values["faults"], filled(RunTarget, values),
                   filled(RecordingOptions, values), filled(JudgingOptions, values),
                   filled(RunOutput, values))  # fmt: skip

    def require_agreement(self) -> None:
        """click.UsageError for an option that would be ignored."""
        recording, judging = self.recording, self.judging
        keeps = bool(recording.record or judging.verify or self.output.reads_recording)
        for option, is_set, adds_to, is_possible in (
            ("--device-time", recording.device_time, _KEEPERS, keeps),
            ("--stacks", recording.stacks, _KEEPERS, keeps),
            ("--data", recording.data, _KEEPERS, keeps),
            ("--data-limit", recording.data_limit, "--data or --verify",
             recording.data or judging.verify),
            ("--save", judging.save, "--verify", judging.verify),
            ("--allow", judging.allow, "--strict", judging.strict),
        ):  # fmt: skip
            if is_set and not is_possible:
                raise click.UsageError(f"{option} adds to {adds_to}, which is not asked for")
        if any(is_sweep(spec) for spec in self.faults) and (
            len(self.faults) > 1 or keeps or judging.strict
        ):
            raise click.UsageError(
                "--fault sweep runs the program many times: no other fault, recording or check "
                "goes with it"
            )

    @property
    def needs_recording(self) -> bool:
        """Whether something reads a recording, whether or not it is kept."""
        return bool(self.judging.verify or self.recording.data or self.output.reads_recording)

    @property
    def observes(self) -> bool:
        """Whether anything wants something of the program's calls."""
        return bool(self.needs_recording or self.judging.strict or self.faults
                    or self.recording.record)  # fmt: skip
