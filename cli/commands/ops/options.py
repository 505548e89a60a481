"""What `ops` is asked for, as a frozen record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class OpsOptions:
    """What to list, and in which form."""

    names: tuple[str, ...]
    families: tuple[str, ...]
    as_json: bool
    as_md: bool
    site: Path | None
    results: Path | None = None
    hosts: bool = False
