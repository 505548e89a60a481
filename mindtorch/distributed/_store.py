"""Owns the stores: bytes by key that threads, processes of a machine, or of several, share."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import socketserver
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, BinaryIO

from ._mesh import DistributedError

_POLL_SECONDS = 0.01
# What changes the values of a store, of what is asked of it.
_CHANGES = frozenset(("set", "add", "append", "compare_set", "delete_key", "queue_push",
                      "queue_pop"))  # fmt: skip


class DistStoreError(DistributedError):
    """A key that nobody set in time, or a store that is not reached."""


class QueueEmptyError(DistStoreError):
    """A value was asked of a queue that has none."""


class _SharedValues:
    """The values of a store, and what is done to them at once."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: dict[str, deque[bytes]] = {}
        self.members: dict[str, int] = {}
        self.lock = threading.RLock()

    def set(self, key: str, value: bytes) -> None:
        with self.lock:
            self.values[key] = value

    def read(self, key: str) -> bytes | None:
        return self.values.get(key)

    def add(self, key: str, amount: int) -> int:
        with self.lock:
            total = int(self.values.get(key, b"0")) + amount
            self.set(key, str(total).encode())
            return total

    def append(self, key: str, value: bytes) -> None:
        with self.lock:
            self.set(key, self.values.get(key, b"") + value)

    def queue_push(self, key: str, value: bytes) -> None:
        with self.lock:
            self.queues.setdefault(key, deque()).append(value)

    def queue_pop(self, key: str) -> bytes | None:
        with self.lock:
            queue = self.queues.get(key)
            return queue.popleft() if queue else None

    def queue_len(self, key: str) -> int:
        return len(self.queues.get(key, ()))

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        with self.lock:
            value = self.values.get(key)
            if value == expected or (value is None and not expected):
                self.set(key, desired)
            elif value is None:
                return expected
            return self.values[key]

    def join(self, key: str, world_size: int) -> None:
        """Count a caller; the key is there once `world_size` have come."""
        with self.lock:
            self.members[key] = self.members.get(key, 0) + 1
            if self.members[key] >= world_size:
                self.values[key] = b"1"

    def check(self, keys: Sequence[str]) -> bool:
        return all(key in self.values for key in keys)

    def delete_key(self, key: str) -> bool:
        with self.lock:
            return self.values.pop(key, None) is not None

    def num_keys(self) -> int:
        return len(self.values)

    def list_keys(self) -> list[str]:
        return list(self.values)


class Store:
    """What processes that meet share: bytes by key (torch.distributed.Store)."""

    timeout = timedelta(seconds=300)

    def _call(self, name: str, *args: Any) -> Any:
        """Do what the table's method of that name does."""
        raise NotImplementedError(f"{type(self).__name__} has no {name}")

    def set_timeout(self, timeout: timedelta) -> None:
        """How long `get` and `wait` wait for a key."""
        self.timeout = timeout

    def _refuse(self, name: str, kinds: str, result: str, *args: Any) -> None:
        """TypeError in torch's words."""
        home = "torch._C._distributed_c10d"
        shown_as = f"<{home}.{type(self).__name__} object at {id(self):#x}>"
        raise TypeError(
            f"{name}(): incompatible function arguments. The following argument types are"
            f" supported:\n    1. (self: {home}.Store, {kinds}) -> {result}\n\nInvoked with:"
            f" {', '.join([shown_as, *map(repr, args)])}"
        )

    def set(self, key: str, value: str | bytes) -> None:
        """Keep a value; TypeError unless key and value are texts."""
        if not isinstance(key, str) or not isinstance(value, str | bytes):
            self._refuse("set", "arg0: str, arg1: str", "None", key, value)
        self._call("set", key, _as_bytes(value))

    def get(self, key: str) -> bytes:
        """A value; DistStoreError where nobody sets it in time."""
        self.wait([key])
        value: bytes = self._call("read", key)
        return value

    def add(self, key: str, amount: int) -> int:
        """Count up; a key that nobody has set begins at 0; TypeError for no number."""
        if not isinstance(key, str) or not hasattr(amount, "__index__"):
            number = "typing.SupportsInt | typing.SupportsIndex"
            self._refuse("add", f"arg0: str, arg1: {number}", "int", key, amount)
        total: int = self._call("add", key, int(amount))
        return total

    def append(self, key: str, value: str | bytes) -> None:
        """Put a value behind the key's."""
        self._call("append", key, _as_bytes(value))

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Set the key where it has the expected value, or where none is there or expected."""
        pair = _as_bytes(expected_value), _as_bytes(desired_value)
        value: bytes = self._call("compare_set", key, *pair)
        return value

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Keep the values of keys."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Until all keys are set; DistStoreError where that takes longer than `timeout`."""
        limit = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + limit.total_seconds()
        while not self.check(keys):
            if time.monotonic() > deadline:
                raise self._too_late(keys, limit)
            time.sleep(_POLL_SECONDS)

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Until `world_size` calls were made with this key; an error as of `wait` else."""
        if not isinstance(key, str) or not hasattr(world_size, "__index__"):
            self._refuse(
                "barrier", "key: str, world_size: typing.SupportsInt | typing.SupportsIndex,"
                " timeout: datetime.timedelta | None = None", "None", key, world_size,
            )  # fmt: skip
        self._meet(key, int(world_size), timeout)

    def _meet(self, key: str, world_size: int, timeout: timedelta | None) -> None:
        last = f"{key}/last_member"
        if self.add(f"{key}/num_members", 1) == world_size:
            self.set(last, "1")
        self.wait([last], timeout)

    def _too_late(self, keys: Sequence[str], limit: timedelta) -> Exception:
        waited, names = int(limit.total_seconds() * 1000), ", ".join(f"/{key}" for key in keys)
        return DistStoreError(f"wait timeout after {waited}ms, keys: {names}")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are set."""
        return bool(self._call("check", list(keys)))

    def delete_key(self, key: str) -> bool:
        """Whether there was such a key."""
        return bool(self._call("delete_key", key))

    def num_keys(self) -> int:
        """How many keys are set."""
        return int(self._call("num_keys"))

    def list_keys(self) -> list[str]:
        """The keys that are set."""
        return list(self._call("list_keys"))

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at a queue's end."""
        self._call("queue_push", key, _as_bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """A queue's first value; QueueEmptyError where it has none, after a while with `block`."""
        deadline = time.monotonic() + self.timeout.total_seconds()
        while (value := self._call("queue_pop", key)) is None:
            if not block or time.monotonic() > deadline:
                raise QueueEmptyError("queue is empty")
            time.sleep(_POLL_SECONDS)
        popped: bytes = value
        return popped

    def queue_len(self, key: str) -> int:
        """How many values a queue has."""
        return int(self._call("queue_len", key))

    def clone(self) -> Store:
        """Another store of the same values."""
        raise NotImplementedError(f"{type(self).__name__} has no clone")

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are one request each in torch."""
        return True


class HashStore(Store):
    """A store that the threads of one process share."""

    def __init__(self) -> None:
        self._table = _SharedValues()

    def _call(self, name: str, *args: Any) -> Any:
        return getattr(self._table, name)(*args)

    def clone(self) -> HashStore:
        store = HashStore()
        store._table, store.timeout = self._table, self.timeout
        return store

    def _too_late(self, keys: Sequence[str], limit: timedelta) -> Exception:
        return DistStoreError("Wait timeout")


class PrefixStore(Store):
    """Another store's keys that begin with `prefix/`."""

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.underlying_store = prefix, store
        self.timeout = store.timeout

    def clone(self) -> PrefixStore:
        return PrefixStore(self.prefix, self.underlying_store.clone())

    def _call(self, name: str, *args: Any) -> Any:
        key, *rest = args or (None,)
        if isinstance(key, list):
            return self.underlying_store._call(name, [f"{self.prefix}/{k}" for k in key], *rest)
        if key is None:
            return self.underlying_store._call(name)
        return self.underlying_store._call(name, f"{self.prefix}/{key}", *rest)

    def _too_late(self, keys: Sequence[str], limit: timedelta) -> Exception:
        names = [f"{self.prefix}/{key}" for key in keys]
        return self.underlying_store._too_late(names, limit)


class FileStore(Store):
    """A store that the processes of one machine share by a file, which grows by each change.

    The last of `world_size` processes removes the file.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self.path, self._world_size = file_name, world_size
        self._table, self._read = _SharedValues(), 0
        self._call("add", "cleanup/", 1)

    def _call(self, name: str, *args: Any) -> Any:
        with self._locked() as file:
            file.seek(self._read)
            for line in file:
                change, *values = _decoded(line)
                getattr(self._table, change)(*values)
            result = getattr(self._table, name)(*args)
            if name in _CHANGES:
                file.write(_encoded([name, *args]) + b"\n")
                file.flush()
            self._read = file.tell()
        return result

    def get(self, key: str) -> bytes:
        """A value; RuntimeError where nobody sets it in time."""
        try:
            return super().get(key)
        except RuntimeError:
            waited = int(self.timeout.total_seconds() * 1000)
            text = f"Timeout waiting for key: {key} after {waited} ms"
            raise RuntimeError(text) from None

    def clone(self) -> FileStore:
        return FileStore(self.path, self._world_size)

    def delete_key(self, key: str) -> bool:
        """True, as torch's store of a file says of keys that were never there too."""
        self._call("delete_key", key)
        return True

    @contextlib.contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        with open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # which closing ends
            yield file

    def _too_late(self, keys: Sequence[str], limit: timedelta) -> Exception:
        return RuntimeError("Wait timeout")

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if self._call("add", "cleanup/", -1) <= 0 < self._world_size:
                os.remove(self.path)


class TCPStore(Store):
    """A store that processes reach at `host:port`, where the one with `is_master` keeps it.

    Frames are JSON: nothing that arrives is run. Whoever reaches the port may read and write.
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = Store.timeout, wait_for_workers: bool = True,
        multi_tenant: bool = False, master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:  # fmt: skip
        self.host, self.timeout = host_name, timeout
        self._server = _Server(("", port), _Handler) if is_master else None
        self.port: int = self._server.server_address[1] if self._server else port
        if self._server:
            threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._lock = threading.Lock()
        self._socket = self._connected()
        if wait_for_workers and world_size:
            self.add("init/", 1)
            deadline = time.monotonic() + timeout.total_seconds()
            while is_master and self.add("init/", 0) < world_size:
                if time.monotonic() > deadline:
                    raise DistStoreError(
                        f"Timed out after {int(timeout.total_seconds()) + 1} seconds waiting for"
                        f" clients. {self.add('init/', 0)}/{world_size} clients joined."
                    )
                time.sleep(_POLL_SECONDS)

    libuvBackend = True  # noqa: N815 - torch's name

    def _meet(self, key: str, world_size: int, timeout: timedelta | None) -> None:
        self._call("join", key, world_size)
        try:
            self.wait([key], timeout)
        except DistStoreError as error:
            waited = str(error).removeprefix("wait").partition(",")[0]
            raise DistStoreError(f"barrier{waited}, key: {key}") from None

    def clone(self) -> TCPStore:
        return TCPStore(self.host, self.port, timeout=self.timeout, wait_for_workers=False)

    def _connected(self) -> socket.socket:
        deadline = time.monotonic() + self.timeout.total_seconds()
        while True:
            try:
                return socket.create_connection((self.host, self.port), timeout=5)
            except OSError as error:
                if time.monotonic() > deadline:
                    waited = int(self.timeout.total_seconds() * 1000)
                    raise DistributedError(
                        f"The client socket has timed out after {waited}ms while trying to connect"
                        f" to ({self.host}, {self.port})."
                    ) from error
                time.sleep(_POLL_SECONDS)

    def _call(self, name: str, *args: Any) -> Any:
        with self._lock:
            _send(self._socket, [name, *args])
            answer = _receive(self._socket)
        if answer is None:
            raise DistStoreError(f"the store at {self.host}:{self.port} is gone")
        return answer[0]

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._socket.close()
            if self._server is not None and not sys.is_finalizing():  # its thread is gone then
                self._server.shutdown()
                self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads = True, True

    def __init__(self, *args: Any) -> None:
        self.table = _SharedValues()
        super().__init__(*args)


class _Handler(socketserver.BaseRequestHandler):
    """One client's requests, by turns."""

    server: _Server
    _METHODS = frozenset(name for name in vars(_SharedValues) if not name.startswith("_"))

    def handle(self) -> None:
        while (request := _receive(self.request)) is not None:
            name, *args = request
            if name not in self._METHODS:
                return
            _send(self.request, [getattr(self.server.table, name)(*args)])


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _encoded(values: list[Any]) -> bytes:
    def bare(value: object) -> object:
        if isinstance(value, bytes):
            return {"bytes": value.decode("latin-1")}
        return [bare(v) for v in value] if isinstance(value, list) else value

    return json.dumps(bare(values)).encode()


def _decoded(data: bytes) -> list[Any]:
    def of(pairs: dict[str, str]) -> bytes:
        return pairs["bytes"].encode("latin-1")

    values: list[Any] = json.loads(data, object_hook=of)
    return values


def _send(connection: socket.socket, values: list[Any]) -> None:
    data = _encoded(values)
    connection.sendall(struct.pack("!Q", len(data)) + data)


def _receive(connection: socket.socket) -> list[Any] | None:
    """The next frame; None where the other end is gone."""
    connection.settimeout(None)
    try:
        head = connection.recv(8, socket.MSG_WAITALL)
        if len(head) < 8:
            return None
        size, data = struct.unpack("!Q", head)[0], b""
        while len(data) < size:
            part = connection.recv(min(size - len(data), 1 << 20))
            if not part:
                return None
            data += part
    except OSError:
        return None
    return _decoded(data)
