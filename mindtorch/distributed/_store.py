"""Owns HashStore: values by key within one process, for groups of one and for tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta

from ._mesh import DistributedError


class Store:
    """What processes that meet share: bytes by key (torch.distributed.Store)."""


class HashStore(Store):
    """A store that the threads of one process share."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._changed = threading.Condition(threading.RLock())
        self.timeout = timedelta(seconds=300)

    def set_timeout(self, timeout: timedelta) -> None:
        """How long `get` and `wait` wait for a key."""
        self.timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Keep a value."""
        with self._changed:
            self._values[key] = value.encode() if isinstance(value, str) else bytes(value)
            self._changed.notify_all()

    def get(self, key: str) -> bytes:
        """A value; DistributedError where nobody sets it in time."""
        self.wait([key])
        return self._values[key]

    def add(self, key: str, amount: int) -> int:
        """Count up; a key that nobody has set begins at 0."""
        with self._changed:
            total = int(self._values.get(key, b"0")) + amount
            self._values[key] = str(total).encode()
            self._changed.notify_all()
            return total

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Set the key where it has the expected value, or where none is there or expected."""
        with self._changed:
            value = self._values.get(key)
            if value == expected_value.encode() or (value is None and not expected_value):
                self.set(key, desired_value)
            elif value is None:
                return expected_value.encode()
            return self._values[key]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Until all keys are set; DistributedError where that takes longer than `timeout`."""
        limit = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + limit.total_seconds()
        with self._changed:
            while not self.check(keys):
                if not self._changed.wait(max(deadline - time.monotonic(), 0)):
                    waited = int(limit.total_seconds() * 1000)
                    raise DistributedError(
                        f"wait timeout after {waited}ms, keys: {', '.join(f'/{k}' for k in keys)}"
                    )

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are set."""
        return all(key in self._values for key in keys)

    def delete_key(self, key: str) -> bool:
        """Whether there was such a key."""
        with self._changed:
            return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        """How many keys are set."""
        return len(self._values)
