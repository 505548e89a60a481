"""Owns how processes find each other: at an address that a launcher names, or through a group.

A launcher may keep a store of its own at that port (torchrun does, and says so in
TORCHELASTIC_USE_AGENT_STORE): then rank 0 takes the first free port behind it, and the others look
there. Processes prove to each other that they have the key of the run, which is not sent.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from ._mesh import DistributedError, Mesh, receive, send
from ._run_key import proof, run_key

_RETRY_SECONDS: Final = 0.05
_HELLO_SECONDS: Final = 5.0
_BEHIND: Final = 16
_MOST: Final = 1 << 20
_MOST_CALLERS: Final = 256  # that are heard at once
_REMEDY: Final = (
    "processes of a run that see different files of their user, or are on several hosts, need the "
    "same MINDTORCH_RUN_TOKEN"
)
_NONSENSE: Final = (OSError, ValueError, TypeError, LookupError, RecursionError)


Heard = TypeVar("Heard")


class Address(NamedTuple):
    """Where a process listens, and the word by which those who call show that they belong here."""

    host: str
    port: int
    word: str


def _address(host: Any, port: Any, word: Any) -> Address:
    """ValueError for what no process of ours says."""
    if not (isinstance(host, str) and isinstance(port, int) and isinstance(word, str)):
        raise ValueError("no address")
    if not 0 < port < 1 << 16 or not 0 < len(word) <= 64:
        raise ValueError("no address")
    return Address(host, port, word)


def ports(port: int) -> tuple[int, ...]:
    """Where rank 0 may listen, in order."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() == "true":
        return tuple(range(port + 1, port + 1 + _BEHIND))
    return (port,)


def meet(host: str, port: int, rank: int, size: int, timeout: float) -> Mesh:
    """The mesh of all processes; DistributedError where not all come in time."""
    deadline = time.monotonic() + timeout
    connections: dict[int, socket.socket] = {}
    if size > 1:
        key = run_key(host, size)
        try:
            with socket.create_server(("", 0), backlog=size) as listening:
                here = Address("", listening.getsockname()[1], secrets.token_hex(16))
                if rank == 0:
                    table = _gather(ports(port), here, size, key, deadline)
                else:
                    table = _report(host, ports(port), rank, here, key, deadline)
                table[0] = table[0]._replace(host=host)
                connections = connect(listening, rank, table, deadline)
        except OSError as error:
            raise DistributedError(
                f"rank {rank} of {size} could not meet the others at {host}:{port}: {error}"
            ) from None
    return ready(rank, range(size), connections, timeout)


def meet_within(mesh: Mesh, ranks: Sequence[int], timeout: float, serial: int) -> Mesh | None:
    """The mesh of some of a mesh's ranks, with connections of its own; None for who is not one of
    them. Every rank of `mesh` calls this, with the same `ranks`."""
    member = mesh.rank in ranks
    with socket.create_server(("", 0), backlog=len(ranks)) as listening:
        here = [listening.getsockname()[1], secrets.token_hex(16)]
        reply = mesh.everywhere(f"new_group {serial} {list(ranks)}", json.dumps(here).encode())
        if not member:
            return None
        position = list(ranks).index(mesh.rank)
        table = [
            _address("" if r == mesh.rank else mesh.address_of(r), *json.loads(reply[r]))
            for r in ranks
        ]
        try:
            connections = connect(listening, position, table, time.monotonic() + timeout)
        except OSError as error:
            raise DistributedError(f"new_group {list(ranks)}: {error}") from None
    return ready(position, ranks, connections, timeout)


def ready(
    rank: int, ranks: Sequence[int], connections: dict[int, socket.socket], timeout: float
) -> Mesh:
    """A mesh over connections, which send small frames at once."""
    for connection in connections.values():
        connection.settimeout(timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Mesh(rank, ranks, connections, timeout)


def connect(
    listening: socket.socket, rank: int, table: Sequence[Address], deadline: float
) -> dict[int, socket.socket]:
    """A socket to every other place of `table`: lower ones are called, higher ones call.

    Who calls and does not say this process's word, which only the others were told, is dropped.
    """
    connections: dict[int, socket.socket] = {}
    for place in range(rank):
        connections[place] = connected(table[place], deadline)
        send(connections[place], 0, table[place].word, str(rank).encode())
    word = table[rank].word
    with _callers(listening, lambda peer, _: _caller(peer, word, deadline), deadline) as callers:
        while len(connections) < len(table) - 1:
            peer, place = next(callers)
            if place in range(rank + 1, len(table)) and place not in connections:
                connections[place] = peer
            else:
                peer.close()
    return connections


@contextlib.contextmanager
def _callers(
    listening: socket.socket, hear: Callable[[socket.socket, str], Heard], deadline: float
) -> Iterator[Iterator[tuple[socket.socket, Heard]]]:
    """Who calls, and what `hear` gives of each, in the order in which they have spoken: one that
    is silent keeps nobody waiting. OSError where nobody has spoken at `deadline`."""
    spoken: queue.SimpleQueue[tuple[socket.socket, Heard]] = queue.SimpleQueue()
    free = threading.BoundedSemaphore(_MOST_CALLERS)

    def listen(peer: socket.socket, host: str) -> None:
        try:
            spoken.put((peer, hear(peer, host)))
        finally:
            free.release()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while free.acquire():
                peer, address = listening.accept()
                threading.Thread(target=listen, args=(peer, address[0]), daemon=True).start()

    def answers() -> Iterator[tuple[socket.socket, Heard]]:
        while True:
            try:
                yield spoken.get(timeout=_left(deadline))
            except queue.Empty:
                raise TimeoutError(f"nobody called who belongs here; {_REMEDY}") from None

    listening.settimeout(None)
    threading.Thread(target=accept, daemon=True, name="callers").start()
    try:
        yield answers()
    finally:
        listening.shutdown(socket.SHUT_RDWR)  # ends the thread that accepts


def _caller(peer: socket.socket, word: str, deadline: float) -> int:
    """The place of who calls; -1 for a stranger."""
    try:
        peer.settimeout(min(_HELLO_SECONDS, _left(deadline)))
        _, theirs, place = receive(peer, _MOST)
        return int(place) if secrets.compare_digest(theirs.encode(), word.encode()) else -1
    except _NONSENSE:
        return -1


def _gather(
    choice: Sequence[int], here: Address, size: int, key: bytes, deadline: float
) -> list[Address]:
    """Rank 0's part: where everybody listens, told to everybody."""
    table = {0: here}
    waiting = []
    with (
        _server(choice, size) as server,
        _callers(
            server, lambda peer, host: _introduction(peer, host, size, key), deadline
        ) as callers,
    ):
        while len(table) < size:
            peer, greeting = next(callers)
            if greeting is None:
                peer.close()  # somebody else, or of another run
                continue
            rank, listening = greeting
            if rank in table:
                raise DistributedError(f"two processes say that they are rank {rank}")
            table[rank] = listening
            waiting.append(peer)
    ordered = [table[rank] for rank in range(size)]
    for peer in waiting:
        with peer:
            send(peer, 0, "table", json.dumps(ordered).encode())
    return ordered


def _introduction(
    peer: socket.socket, host: str, size: int, key: bytes
) -> tuple[int, Address] | None:
    """A caller's rank and address; None for one that does not prove that it is of this run."""
    try:
        peer.settimeout(_HELLO_SECONDS)
        theirs, ours = receive(peer, _MOST)[1], secrets.token_hex(16)
        send(peer, 0, ours, proof(key, "rank 0", theirs, ours).encode())
        _, answer, reply = receive(peer, _MOST)
        if not secrets.compare_digest(answer, proof(key, "caller", theirs, ours)):
            return None
        rank, port, word = json.loads(reply)
        listening = _address(host, port, word)
    except _NONSENSE:
        return None
    return (rank, listening) if isinstance(rank, int) and 0 < rank < size else None


def _server(choice: Sequence[int], size: int) -> socket.socket:
    """A server at the first free port; OSError where none is."""
    for port in choice[:-1]:
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), backlog=size)
    return socket.create_server(("", choice[-1]), backlog=size)


def _report(
    host: str, choice: Sequence[int], rank: int, here: Address, key: bytes, deadline: float
) -> list[Address]:
    """The others' part: rank 0 is looked for at every port until it answers."""
    while True:
        error: OSError = ConnectionError("nobody answered")
        for port in choice:
            try:
                master = socket.create_connection(
                    (host, port), min(_HELLO_SECONDS, _left(deadline))
                )
            except OSError as refused:
                error = refused
                continue
            with master:
                table = _request_addresses(master, rank, here, key, deadline)
                if table is not None:
                    return table
                error = ConnectionError(f"who answered at port {port} is of another run; {_REMEDY}")
        if time.monotonic() > deadline:
            raise error
        time.sleep(_RETRY_SECONDS)


def _request_addresses(
    master: socket.socket, rank: int, here: Address, key: bytes, deadline: float
) -> list[Address] | None:
    """What rank 0 tells; None for another program, or another run."""
    ours = secrets.token_hex(16)
    try:
        master.settimeout(min(_HELLO_SECONDS, _left(deadline)))
        send(master, 0, ours, b"")
        _, theirs, evidence = receive(master, _MOST)
        if not secrets.compare_digest(evidence, proof(key, "rank 0", ours, theirs).encode()):
            return None
        reply = json.dumps([rank, here.port, here.word]).encode()
        send(master, 0, proof(key, "caller", ours, theirs), reply)
    except _NONSENSE:
        return None
    master.settimeout(_left(deadline))
    _, _, reply = receive(master, _MOST)
    try:
        return [_address(*row) for row in json.loads(reply)]
    except _NONSENSE:
        return None


def connected(where: Address, deadline: float) -> socket.socket:
    """A connection to a server that may not be there yet."""
    while True:
        try:
            return socket.create_connection((where.host, where.port), _left(deadline))
        except (ConnectionError, socket.gaierror):
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())
