"""Owns what an event says: of a program, or of processes as they meet."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent"]

EventMetadataValue = str | int | float | bool | None


class EventSource(str, Enum):
    """Who says it."""

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(str, Enum):
    """What a machine does as processes meet."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class _AsJson:
    """What is the JSON of its fields as text."""

    def __str__(self) -> str:
        return self.serialize()

    def serialize(self) -> str:
        """JSON."""
        return json.dumps(dict(vars(self)))


@dataclass
class Event(_AsJson):
    """Something that happened; the time is in milliseconds."""

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = field(default_factory=dict)

    @staticmethod
    def deserialize(data: str | Event) -> Event:
        """An event of its JSON."""
        if isinstance(data, Event):
            return data
        values = json.loads(data)
        return Event(**values | {"source": EventSource[values["source"]]})


@dataclass
class RdzvEvent(_AsJson):
    """Something that happened as processes met."""

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""

    @staticmethod
    def deserialize(data: str | RdzvEvent) -> RdzvEvent:
        """An event of its JSON."""
        if isinstance(data, RdzvEvent):
            return data
        values = json.loads(data)
        return RdzvEvent(**values | {"node_state": NodeState[values["node_state"]]})
