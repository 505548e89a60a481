"""torch.multiprocessing.queue: the standard library's queues, which carry tensors by memory.

Its connections pickle by ForkingPickler, which `mindtorch.multiprocessing` tells of tensors.
"""

from multiprocessing.queues import Queue, SimpleQueue
from multiprocessing.reduction import ForkingPickler
from pickle import loads
from typing import Any

__all__ = ["ConnectionWrapper", "Queue", "SimpleQueue"]


class ConnectionWrapper:
    """A connection whose objects are pickled as tensors are sent."""

    def __init__(self, conn: Any):
        self.conn = conn

    def send(self, obj: object) -> None:
        """Send an object."""
        self.conn.send_bytes(ForkingPickler.dumps(obj))

    def recv(self) -> Any:
        """Wait for an object."""
        return loads(self.conn.recv_bytes())

    def __getattr__(self, name: str) -> Any:
        if "conn" in self.__dict__:
            return getattr(self.conn, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'conn'")
