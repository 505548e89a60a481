"""Owns a second worker process that runs the same cases, with work split over other numbers of
threads, and compares its bits with those that came here."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..record.result import Result
from .bits import difference, keep
from .process import Process, Setup

# Threads of the simulator's kernels in the second process, unless that is what this one has.
_THREADS: Final = "ACLSIM_THREADS"
_OTHERWISE: Final = "3"
_SECONDS: Final = 600.0


class Peer:
    """The second process of a worker, started when it is first asked; it ends with the worker."""

    def __init__(self, setup: Mapping[str, Any]) -> None:
        here = os.environ.get(_THREADS, "1")
        self.threads = _OTHERWISE if here != _OTHERWISE else "1"
        environ = {_THREADS: self.threads}
        self._process = Process(Setup(
            setup["device"], setup.get("home"), bool(setup.get("simulator")), environ=environ,
            soc=str(setup.get("soc") or ""), guard=bool(setup.get("guard")), peer=True,
        ))  # fmt: skip
        self._folder = tempfile.TemporaryDirectory(prefix="mindtorch-npu-")

    def compare(self, result: Result, trial: Any) -> Result:
        """The result of a case that passed here, failed where the other process gives other
        bits."""
        from .invariance import differing

        folder = Path(self._folder.name)
        here = keep(folder, result, trial)
        other = self._ask(result, folder)
        if isinstance(other, str):
            return result.with_(verdict="ERROR", tier="", reason=other)
        if other.get("digest", "") == here:
            return result
        if other["verdict"] != "PASS":
            reason = f"passes in one process, in another {other['verdict']}: {other.get('reason')}"
            return result.with_(verdict="FAIL", tier="none", reason=reason)
        first = difference(folder, result.case, result.seed, str(other.get("digest")), here)
        words = f"another process{self._split()} gives other bits: {first.text if first else ''}"
        return differing(trial, words.rstrip(": ")).with_(seconds=result.seconds)

    def _split(self) -> str:
        from mindtorch.npu import install

        simulated = install.cann().install.kind == "simulator"
        return f" with work split over {self.threads} threads" if simulated else ""

    def _ask(self, result: Result, folder: Path) -> dict[str, Any] | str:
        """The other process's result as data; what happened to it where there is none."""
        self._process.send({"cases": [result.case], "seed": result.seed, "bits": str(folder),
                            "once": True})  # fmt: skip
        while True:
            message = self._process.receive(_SECONDS)
            if not isinstance(message, dict):
                return f"a second process to compare with ended: {self._process.ending()}"
            if "fatal" in message:
                return f"a second process to compare with can't start: {message['fatal']}"
            if "result" in message:
                return dict(message["result"])
