"""Owns connections between the processes of a group: one socket for each pair, frames of bytes.

Frames carry the number and the name of the call that they belong to: ranks that call different
things are told so instead of exchanging each other's bytes. Refuses to know what a tensor is.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

_HEAD: Final = struct.Struct("<QQI")  # number of the call, bytes that follow, length of its name
_RETRY_SECONDS: Final = 0.05


class DistributedError(RuntimeError):
    """Ranks could not meet, one is gone, or they call different things; the message names it."""


class Mesh:
    """Rank `rank` of `size` processes that meet at `host`:`port`; seconds until one gives up.

    DistributedError where not all come in time.
    """

    def __init__(self, host: str, port: int, rank: int, size: int, timeout: float) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self._calls = 0
        self._peers: dict[int, socket.socket] = {}
        self._sending = ThreadPoolExecutor(max(1, size - 1), thread_name_prefix="mesh")
        if size > 1:
            try:
                self._meet(host, port, time.monotonic() + timeout)
            except OSError as error:
                self.close()
                raise DistributedError(
                    f"rank {rank} of {size} could not meet the others at {host}:{port}: {error}"
                ) from None

    def _meet(self, host: str, port: int, deadline: float) -> None:
        """Rank 0 gathers where everybody listens and tells everybody; lower ranks are called."""
        listening = socket.create_server(("", 0), backlog=self.size)
        with listening:
            listening.settimeout(self.timeout)
            here = listening.getsockname()[1]
            table = (
                self._gather(port, here)
                if self.rank == 0
                else self._report(host, port, here, deadline)
            )
            for peer in range(self.rank):
                where = (host if peer == 0 else table[peer][0], int(table[peer][1]))
                self._peers[peer] = _connected(where, deadline)
                _send(self._peers[peer], 0, "hello", str(self.rank).encode())
            while len(self._peers) < self.size - 1:
                peer_socket, _ = listening.accept()
                peer_socket.settimeout(self.timeout)
                _, _, name = _receive(peer_socket)
                self._peers[int(name)] = peer_socket
        for peer_socket in self._peers.values():
            peer_socket.settimeout(self.timeout)
            peer_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _gather(self, port: int, here: int) -> list[tuple[str, int]]:
        table: dict[int, tuple[str, int]] = {0: ("", here)}
        waiting = []
        with socket.create_server(("", port), backlog=self.size) as server:
            server.settimeout(self.timeout)
            while len(table) < self.size:
                peer_socket, address = server.accept()
                peer_socket.settimeout(self.timeout)
                _, _, told = _receive(peer_socket)
                rank, listening = json.loads(told)
                if rank in table:
                    raise DistributedError(f"two processes say that they are rank {rank}")
                table[rank] = (address[0], listening)
                waiting.append(peer_socket)
        ordered = [table[rank] for rank in range(self.size)]
        for peer_socket in waiting:
            with peer_socket:
                _send(peer_socket, 0, "table", json.dumps(ordered).encode())
        return ordered

    def _report(self, host: str, port: int, here: int, deadline: float) -> list[tuple[str, int]]:
        with _connected((host, port), deadline) as master:
            master.settimeout(self.timeout)
            _send(master, 0, "here", json.dumps([self.rank, here]).encode())
            _, _, told = _receive(master)
        table: list[tuple[str, int]] = json.loads(told)
        return table

    def exchange(self, name: str, parts: Sequence[bytes]) -> list[bytes]:
        """Give part i to rank i; what every rank gave to this one, by rank."""
        self._calls += 1
        sent = {
            peer: self._sending.submit(_send, connection, self._calls, name, parts[peer])
            for peer, connection in self._peers.items()
        }
        got = [
            parts[peer] if peer == self.rank else self._take(peer, name)
            for peer in range(self.size)
        ]
        for peer, sending in sent.items():
            try:
                sending.result()
            except OSError as error:
                raise self._gone(peer, name, error) from None
        return got

    def everywhere(self, name: str, part: bytes) -> list[bytes]:
        """Give the same bytes to every rank."""
        return self.exchange(name, [part] * self.size)

    def send(self, peer: int, name: str, part: bytes) -> None:
        """To one rank, which receives it."""
        try:
            _send(self._peers[peer], 0, name, part)
        except OSError as error:
            raise self._gone(peer, name, error) from None

    def receive(self, peer: int, name: str) -> bytes:
        """From one rank, which sends it."""
        return self._take(peer, name, 0)

    def _take(self, peer: int, name: str, number: int | None = None) -> bytes:
        wanted = self._calls if number is None else number
        try:
            call, theirs, data = _receive(self._peers[peer])
        except OSError as error:
            raise self._gone(peer, name, error) from None
        if (call, theirs) != (wanted, name):
            raise DistributedError(
                f"rank {self.rank} calls {name} (call {wanted}), rank {peer} calls {theirs} "
                f"(call {call}): every rank must call the same, in the same order"
            )
        return data

    def _gone(self, peer: int, name: str, error: OSError) -> DistributedError:
        return DistributedError(f"{name}: rank {peer} is gone or silent: {error}")

    def close(self) -> None:
        """Leave; the others' next call says so."""
        self._sending.shutdown(wait=False)
        for connection in self._peers.values():
            connection.close()
        self._peers = {}


def _connected(where: tuple[str, int], deadline: float) -> socket.socket:
    """A connection to a server that may not be there yet."""
    while True:
        try:
            return socket.create_connection(where, max(0.1, deadline - time.monotonic()))
        except (ConnectionError, socket.gaierror):
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)


def _send(to: socket.socket, call: int, name: str, data: bytes) -> None:
    text = name.encode()
    to.sendall(_HEAD.pack(call, len(data), len(text)) + text)
    to.sendall(data)


def _receive(source: socket.socket) -> tuple[int, str, bytes]:
    call, size, length = _HEAD.unpack(_exactly(source, _HEAD.size))
    return call, _exactly(source, length).decode(), _exactly(source, size)


def _exactly(source: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = source.recv_into(view)
        if not count:
            raise ConnectionError("the connection was closed")
        view = view[count:]
    return bytes(data)
