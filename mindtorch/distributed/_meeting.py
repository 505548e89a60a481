"""Owns how processes find each other: at an address that a launcher names, or through a group.

A launcher may keep a store of its own at that port (torchrun does, and says so in
TORCHELASTIC_USE_AGENT_STORE): then rank 0 takes the first free port behind it, and the others look
there. Processes of another run that listen there are told by their run's name.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Sequence
from typing import Final

from ._mesh import DistributedError, Mesh, receive, send

_RETRY_SECONDS: Final = 0.05
_HELLO_SECONDS: Final = 5.0
_BEHIND: Final = 16
_MOST: Final = 1 << 20
Address = tuple[str, int]


def ports(port: int) -> tuple[int, ...]:
    """Where rank 0 may listen, in order."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() == "true":
        return tuple(range(port + 1, port + 1 + _BEHIND))
    return (port,)


def token() -> str:
    """What tells this run from others: a launcher's name for it, and which attempt it is."""
    names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    return " ".join(os.environ.get(name, "") for name in names)


def meet(host: str, port: int, rank: int, size: int, timeout: float) -> Mesh:
    """The mesh of all processes; DistributedError where not all come in time."""
    deadline = time.monotonic() + timeout
    connections: dict[int, socket.socket] = {}
    if size > 1:
        try:
            with socket.create_server(("", 0), backlog=size) as listening:
                here = listening.getsockname()[1]
                if rank == 0:
                    table = _gather(ports(port), here, size, deadline)
                else:
                    table = _report(host, ports(port), rank, here, deadline)
                table[0] = (host, table[0][1])
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
        here = listening.getsockname()[1]
        reply = mesh.everywhere(f"new_group {serial} {list(ranks)}", json.dumps(here).encode())
        if not member:
            return None
        position = list(ranks).index(mesh.rank)
        table = [
            ("", 0) if r == mesh.rank else (mesh.address_of(r), int(json.loads(reply[r])))
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
    """A socket to every other place of `table`: lower ones are called, higher ones call."""
    connections: dict[int, socket.socket] = {}
    for place in range(rank):
        connections[place] = connected(table[place], deadline)
        send(connections[place], 0, "hello", str(rank).encode())
    while len(connections) < len(table) - 1:
        listening.settimeout(_left(deadline))
        peer, _ = listening.accept()
        peer.settimeout(_left(deadline))
        _, _, name = receive(peer, _MOST)
        connections[int(name)] = peer
    return connections


def _gather(
    choice: Sequence[int], here: int, size: int, deadline: float
) -> list[Address]:  # fmt: skip
    """Rank 0's part: where everybody listens, told to everybody."""
    table: dict[int, Address] = {0: ("", here)}
    waiting = []
    with _server(choice, size) as server:
        while len(table) < size:
            server.settimeout(_left(deadline))
            peer, address = server.accept()
            try:
                peer.settimeout(_HELLO_SECONDS)
                _, run, reply = receive(peer, _MOST)
                rank, listening = json.loads(reply)
                send(peer, 0, "welcome", token().encode())
            except (OSError, ValueError, TypeError):
                peer.close()  # somebody else, or of another run
                continue
            if run != token():
                peer.close()
                continue
            if rank in table:
                raise DistributedError(f"two processes say that they are rank {rank}")
            table[rank] = (address[0], int(listening))
            waiting.append(peer)
    ordered = [table[rank] for rank in range(size)]
    for peer in waiting:
        with peer:
            send(peer, 0, "table", json.dumps(ordered).encode())
    return ordered


def _server(choice: Sequence[int], size: int) -> socket.socket:
    """A server at the first free port; OSError where none is."""
    for port in choice[:-1]:
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), backlog=size)
    return socket.create_server(("", choice[-1]), backlog=size)


def _report(
    host: str, choice: Sequence[int], rank: int, here: int, deadline: float
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
                table = _request_addresses(master, rank, here, deadline)
                if table is not None:
                    return table
        if time.monotonic() > deadline:
            raise error
        time.sleep(_RETRY_SECONDS)


def _request_addresses(
    master: socket.socket, rank: int, here: int, deadline: float
) -> list[Address] | None:
    """What rank 0 tells; None for another program, or another run."""
    try:
        master.settimeout(min(_HELLO_SECONDS, _left(deadline)))
        send(master, 0, token(), json.dumps([rank, here]).encode())
        _, _, theirs = receive(master, _MOST)
        if theirs.decode("utf-8", "replace") != token():
            return None
    except (OSError, ValueError):
        return None
    master.settimeout(_left(deadline))
    _, _, reply = receive(master, _MOST)
    return [(name, port) for name, port in json.loads(reply)]


def connected(where: Address, deadline: float) -> socket.socket:
    """A connection to a server that may not be there yet."""
    while True:
        try:
            return socket.create_connection(where, _left(deadline))
        except (ConnectionError, socket.gaierror):
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())
