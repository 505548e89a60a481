"""Owns torch._logging's names: levels of the loggers under `torch`; no compiler tells anything."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

__all__ = ["getArtifactLogger", "set_logs", "warning_once"]


def set_logs(*, all: int | None = None, modules: dict[str, Any] | None = None, **what: Any) -> None:
    """Levels of loggers: of all of torch's, of `modules`; what a compiler would tell is ignored."""
    levels = {"torch": all, **(modules or {})}
    for name, level in levels.items():
        if level is not None:
            logging.getLogger(name).setLevel(level)


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:  # noqa: N802
    """The logger of what a compiler makes."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


@cache
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """A warning, the first time it is told."""
    logger_obj.warning(*args, **kwargs)
