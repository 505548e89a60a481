"""Owns running a saved case again, with its saved inputs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ..cases.case import parse
from ..record.bundle import load
from ..record.result import Result
from .worker import Worker


def replay(path: Path, device: str, home: Any, simulator: bool) -> Result:
    """Run a saved case with its saved inputs, in this process."""
    data, arrays = load(path)
    setup = {"device": device, "home": str(home) if home else None, "simulator": simulator}
    if data.get("recording"):
        setup["recording"] = str(path.parent / data["recording"])
    worker = Worker(setup, io.StringIO())
    worker.hello()
    return worker.run(parse(data["case"]), int(data["seed"]), arrays)[0]
