"""Owns timers of blocks of code: a client tells a server of them, which ends who is too late."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import getframeinfo, stack
from typing import Any

__all__ = ["RequestQueue", "TimerClient", "TimerRequest", "TimerServer", "configure", "expires"]
logger = logging.getLogger(__name__)


class TimerRequest:
    """A worker's block that has to end by a time; a negative time says that it ended."""

    __slots__ = ["expiration_time", "scope_id", "worker_id"]

    def __init__(self, worker_id: Any, scope_id: str, expiration_time: float) -> None:
        self.worker_id, self.scope_id = worker_id, scope_id
        self.expiration_time = expiration_time

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimerRequest) and (
            (self.worker_id, self.scope_id, self.expiration_time)
            == (other.worker_id, other.scope_id, other.expiration_time)
        )


class TimerClient(ABC):
    """Tells of blocks of this process."""

    @abstractmethod
    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """A block began, which has to end by a time."""

    @abstractmethod
    def release(self, scope_id: str) -> Any:
        """A block ended."""


class RequestQueue(ABC):
    """What clients told."""

    @abstractmethod
    def size(self) -> int:
        """How many requests are there."""

    @abstractmethod
    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """Up to `size` of them, those that come in `timeout` seconds."""


class TimerServer(ABC):
    """A thread that looks every `max_interval` seconds, or when it is told of blocks, who is late.

    A worker that could not be ended is tried again; one whose end raised counts as ended.
    """

    def __init__(
        self, request_queue: RequestQueue, max_interval: float, daemon: bool = True
    ) -> None:
        super().__init__()
        self._request_queue, self._max_interval = request_queue, max_interval
        self._daemon = daemon
        self._watchdog_thread: threading.Thread | None = None
        self._stop_signaled = False

    @abstractmethod
    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Keep the times of blocks that began, and forget those that ended."""

    @abstractmethod
    def clear_timers(self, worker_ids: set[Any]) -> None:
        """Forget all blocks of workers."""

    @abstractmethod
    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        """Blocks that had to end by a time, by workers."""

    @abstractmethod
    def _reap_worker(self, worker_id: Any) -> bool:
        """End a worker; whether it is at its end."""

    def _reap_worker_no_throw(self, worker_id: Any) -> bool:
        try:
            return self._reap_worker(worker_id)
        except Exception:
            logger.exception("_reap_worker() raised: the worker counts as ended")
            return True

    def _watchdog_loop(self) -> None:
        while not self._stop_signaled:
            try:
                self._run_watchdog()
            except Exception:
                logger.exception("Error running watchdog")

    def _run_watchdog(self) -> None:
        count = max(1, self._request_queue.size())
        self.register_timers(self._request_queue.get(count, self._max_interval))
        late = self.get_expired_timers(time.time())
        for worker, timers in late.items():
            logger.info("Reaping worker_id=[%s]: %s", worker, [t.scope_id for t in timers])
        self.clear_timers({worker for worker in late if self._reap_worker_no_throw(worker)})

    def start(self) -> None:
        """Begin to look."""
        self._watchdog_thread = threading.Thread(target=self._watchdog_loop, daemon=self._daemon)
        self._watchdog_thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop_signaled = True
        if self._watchdog_thread:
            self._watchdog_thread.join(self._max_interval)
            self._watchdog_thread = None


_clients: list[TimerClient] = []


def configure(timer_client: TimerClient) -> None:
    """What `expires` tells where it names no client."""
    _clients[:] = [timer_client]


@contextmanager
def expires(
    after: float, scope: str | None = None, client: TimerClient | None = None
) -> Iterator[None]:
    """A block that has to end in `after` seconds, else a server may end the process.

    RuntimeError without a client.
    """
    if client is None and not _clients:
        raise RuntimeError("Configure timer client before using countdown timers.")
    at = _clients[0] if client is None else client
    if scope is None:
        caller = getframeinfo(stack()[1][0])
        scope = f"{caller.filename}#{caller.lineno}"
    at.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        at.release(scope)
