"""Owns events of launched programs: what happened, written to the logger of a destination."""

from __future__ import annotations

import inspect
import logging
import os
import socket
import traceback

from .api import Event, EventMetadataValue, EventSource, NodeState, RdzvEvent
from .handlers import get_logging_handler

__all__ = [
    "Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent",
    "construct_and_record_rdzv_event", "get_logging_handler", "record", "record_rdzv_event",
]  # fmt: skip

_loggers: dict[str, logging.Logger] = {}


def _get_or_create_logger(destination: str = "null") -> logging.Logger:
    """The logger of a destination, which tells no other; KeyError for one that has no handler."""
    if destination not in _loggers:
        logger = logging.getLogger(f"torchelastic-events-{destination}")
        logger.setLevel(os.environ.get("LOGLEVEL", "INFO"))
        logger.propagate = False
        logger.addHandler(get_logging_handler(destination))
        _loggers[destination] = logger
    return _loggers[destination]


def record(event: Event, destination: str = "null") -> None:
    """Write an event as JSON to a destination: null or console."""
    _get_or_create_logger(destination).info(event.serialize())


def record_rdzv_event(event: RdzvEvent) -> None:
    """Write what happened as processes met to its own destination, dynamic_rendezvous."""
    _get_or_create_logger("dynamic_rendezvous").info(event.serialize())


def construct_and_record_rdzv_event(
    run_id: str, message: str, node_state: NodeState, name: str = "", hostname: str = "",
    pid: int | None = None, master_endpoint: str = "", local_id: int | None = None,
    rank: int | None = None,
) -> None:  # fmt: skip
    """Write an event of the calling function, unless its destination takes none."""
    if isinstance(get_logging_handler("dynamic_rendezvous"), logging.NullHandler):
        return
    caller = inspect.stack()[1]
    event = RdzvEvent(
        name=f"{os.path.basename(caller.filename)}:{name or caller.function}",
        run_id=run_id,
        message=message,
        hostname=hostname or socket.getfqdn(),
        pid=pid or os.getpid(),
        node_state=node_state,
        master_endpoint=master_endpoint,
        rank=rank,
        local_id=local_id,
        error_trace=traceback.format_exc() if node_state == NodeState.FAILED else "",
    )
    record_rdzv_event(event)
