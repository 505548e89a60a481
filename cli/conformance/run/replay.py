"""Owns running a saved case again, with its saved inputs."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from aclnn_bindings.install import simulated

from ..cases.case import parse
from ..operators.golden_files import with_sources
from ..record.bundle import load
from ..record.journal import place_words
from ..record.result import Result
from .worker import Worker


def replay(path: Path, device: str, home: Any, simulator: bool) -> tuple[Result, list[str]]:
    """Run a saved case with its saved inputs, in this process; also the options that say where."""
    data, arrays = load(path)
    setup = {"device": device, "home": str(home) if home else None, "simulator": simulator,
             "guard": True}  # fmt: skip
    if data.get("recording"):
        setup["recording"] = str(path.parent / data["recording"])
    if data.get("cases"):
        setup["cases"] = str(data["cases"])
    _become(data.get("environment", {}))
    worker = Worker(setup, io.StringIO())
    worker.hello()
    result, _ = worker.run(parse(data["case"]), int(data["seed"]), arrays)
    return result, place_words(with_sources(setup), worker.environment)


def _become(environment: Any) -> None:
    """Have a simulator be the product that it was when the case was saved, if it knows it."""
    soc = environment.get("soc") if isinstance(environment, dict) else None
    if environment and environment.get("kind") == "simulator" and soc in simulated.products():
        os.environ.setdefault("ACLSIM_SOC", str(soc))
