"""Owns what `run` is asked for: frozen records of its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...choices import filled


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

    @property
    def needs_recording(self) -> bool:
        """Whether something reads a recording, whether or not it is kept."""
        output = self.output
        return bool(self.judging.verify or self.recording.data or output.summarize or output.html
                    or output.perfetto)  # fmt: skip

    @property
    def observes(self) -> bool:
        """Whether anything wants something of the program's calls."""
        return bool(self.needs_recording or self.judging.strict or self.faults
                    or self.recording.record)  # fmt: skip
