"""Owns what goes between the processes of a group: frames of bytes, one socket for each pair.

Frames carry the number and the name of the call that they belong to: ranks that call different
things are told so instead of exchanging each other's bytes. A thread for each peer reads what
comes, so that messages between two ranks wait for nobody and pass collectives. Refuses to know
what a tensor is.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

_HEAD: Final = struct.Struct("<QQI")  # number of the call, bytes that follow, length of its name
_LONGEST_NAME: Final = 1 << 20
_LARGEST: Final = 1 << 40  # bytes of one frame
_MESSAGE: Final = 0  # the number of what `send` sends
Frame = tuple[int, str, bytes]


class DistributedError(RuntimeError):
    """Ranks could not meet, one is gone, or they call different things; the message names it."""


class _Peer:
    """The connection to one rank, and what has come from it."""

    def __init__(self, connection: socket.socket, changed: threading.Condition) -> None:
        self.connection, self._changed = connection, changed
        self.calls: deque[Frame] = deque()
        self.messages: dict[str, deque[bytes]] = {}
        self.end = ""
        self._writing = threading.Lock()
        threading.Thread(target=self._read, daemon=True, name="mesh").start()

    def _read(self) -> None:
        try:
            while True:
                call, name, data = receive(self.connection)
                with self._changed:
                    if call == _MESSAGE:
                        self.messages.setdefault(name, deque()).append(data)
                    else:
                        self.calls.append((call, name, data))
                    self._changed.notify_all()
        except OSError as error:
            with self._changed:
                self.end = str(error)
                self._changed.notify_all()
            self.connection.close()

    def write(self, call: int, name: str, data: bytes) -> None:
        with self._writing:
            send(self.connection, call, name, data)

    def close(self) -> None:
        """Say that nothing comes any more; what is still on its way arrives."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)


class Mesh:
    """Place `rank` among `ranks`, which are named by their ranks among all processes; `connections`
    by place; `timeout` is how many seconds a silent rank is waited for."""

    rank: int
    timeout: float

    def __init__(
        self, rank: int, ranks: Sequence[int], connections: Mapping[int, socket.socket],
        timeout: float,
    ) -> None:  # fmt: skip
        self.rank, self.ranks, self.timeout = rank, tuple(ranks), timeout
        self.size: int = len(self.ranks)
        self._calls = 0
        self._changed = threading.Condition()
        self._peers = {place: _Peer(c, self._changed) for place, c in connections.items()}

    def address_of(self, place: int) -> str:
        """Where a rank's host is, as this one sees it."""
        address: tuple[str, int] = self._peers[place].connection.getpeername()
        return address[0]

    def exchange(self, name: str, parts: Sequence[bytes]) -> list[bytes]:
        """Give part i to rank i; what every rank gave to this one, by rank."""
        self._calls += 1
        number = self._calls
        for place, peer in self._peers.items():
            try:
                peer.write(number, name, parts[place])
            except OSError as error:
                if not peer.calls:  # what it sent before it left says more
                    raise self._gone(place, name, str(error)) from None
        return [
            parts[place] if place == self.rank else self._take(place, number, name)
            for place in range(self.size)
        ]

    def everywhere(self, name: str, part: bytes) -> list[bytes]:
        """Give the same bytes to every rank."""
        return self.exchange(name, [part] * self.size)

    def send(self, place: int, name: str, part: bytes) -> None:
        """A message to one rank, which receives it by its name."""
        try:
            self._peers[place].write(_MESSAGE, name, part)
        except OSError as error:
            raise self._gone(place, name, str(error)) from None

    def receive(
        self, place: int | None, name: str, timeout: float | None = None
    ) -> tuple[int, bytes]:
        """(rank, message) of this name: from one rank, or for None from whichever sent one."""
        places = list(self._peers) if place is None else [place]

        def ready() -> bool:
            return any(self.has(p, name) or self._peers[p].end for p in places)

        self._wait(ready, name, places, timeout)
        with self._changed:
            for p in places:
                if self.has(p, name):
                    return p, self._peers[p].messages[name].popleft()
        raise self._gone(places[0], name, self._peers[places[0]].end)

    def has(self, place: int | None, name: str) -> bool:
        """Whether such a message is here."""
        places = self._peers if place is None else [place]
        return any(self._peers[p].messages.get(name) for p in places)

    def _take(self, place: int, number: int, name: str) -> bytes:
        peer = self._peers[place]
        self._wait(lambda: bool(peer.calls or peer.end), name, [place])
        with self._changed:
            if not peer.calls:
                raise self._gone(place, name, peer.end)
            call, theirs, data = peer.calls.popleft()
        if (call, theirs) != (number, name):
            raise DistributedError(
                f"rank {self.ranks[self.rank]} calls {name} (call {number}), rank "
                f"{self.ranks[place]} calls {theirs} (call {call}): every rank must call the same, "
                "in the same order"
            )
        return data

    def _wait(
        self, ready: Callable[[], bool], name: str, places: Sequence[int],
        timeout: float | None = None,
    ) -> None:  # fmt: skip
        limit = self.timeout if timeout is None else timeout
        with self._changed:
            if not self._changed.wait_for(ready, limit):
                raise self._gone(places[0], name, f"nothing came for {limit:g} s")

    def _gone(self, place: int, name: str, why: str) -> DistributedError:
        return DistributedError(f"{name}: rank {self.ranks[place]} is gone or silent: {why}")

    def close(self) -> None:
        """Leave; the others' next call says so."""
        for peer in self._peers.values():
            peer.close()


def send(to: socket.socket, call: int, name: str, data: bytes) -> None:
    """Write one frame."""
    text = name.encode()
    to.sendall(_HEAD.pack(call, len(data), len(text)) + text)
    to.sendall(data)


def receive(source: socket.socket, most: int | None = None) -> Frame:
    """Read one frame; ConnectionError at the end, or where it is longer than `most` bytes."""
    call, size, length = _HEAD.unpack(_exactly(source, _HEAD.size, most is None))
    if length > _LONGEST_NAME or size + length > (_LARGEST if most is None else most):
        raise ConnectionError("no frame of a group of processes came")
    waits = most is None
    return call, _exactly(source, length, waits).decode(), _exactly(source, size, waits)


def _exactly(source: socket.socket, size: int, waits: bool) -> bytes:
    """`size` bytes; who does not wait gives all of them the socket's own time limit."""
    data = bytearray(size)
    view = memoryview(data)
    limit = source.gettimeout()
    end = time.monotonic() + limit if limit is not None and not waits else None
    while view:
        if end is not None:
            source.settimeout(max(0.001, end - time.monotonic()))
        try:
            count = source.recv_into(view)
        except TimeoutError:
            if waits:
                continue
            raise
        if not count:
            raise ConnectionError("the connection was closed")
        view = view[count:]
    return bytes(data)
