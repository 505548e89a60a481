"""The form of advice on a failure: cause, remedy, next command, source; knows no failure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remedy:
    """A likely cause and what to do; `run` is the next command, `{op}` in it the operator."""

    cause: str
    fix: str
    run: str = ""
    source: str = ""

    def __str__(self) -> str:
        return f"{self.cause}: {self.fix}"
