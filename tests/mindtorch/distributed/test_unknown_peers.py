"""Strangers at the ports of a group are dropped, and the group goes on."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from mindtorch.distributed import _meeting, _mesh, _run_key

HEAD = struct.Struct("<QQI")
DEEP = b"[" * 100_000


def frame(name: bytes, data: bytes) -> bytes:
    return HEAD.pack(0, len(data), len(name)) + name + data


KEY = bytes(32)
STRANGERS = {
    "says nothing": b"",
    "half a head": b"\0" * 7,
    "a web client": b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    "an endless frame": HEAD.pack(0, 1 << 60, 4) + b"name",
    "an endless name": HEAD.pack(0, 1, (1 << 32) - 1),
    "a name that is no text": frame(b"\xff\xfe", b"[]"),
    "no JSON": frame(b"hello", b"{"),
    "deep JSON": frame(b"hello", DEEP),
    "another kind": frame(b"hello", b"null"),
    "an object": frame(b"hello", b'{"rank": 1}'),
    "a rank that is a text": frame(b"hello", b'["1", 80, "word"]'),
    "a rank that is none": frame(b"hello", b'[99, 80, "word"]'),
    "a negative rank": frame(b"hello", b'[-1, 80, "word"]'),
    "rank 0": frame(b"hello", b'[0, 80, "word"]'),
    "a port that is none": frame(b"hello", b'[1, 70000, "word"]'),
    "no word": frame(b"hello", b'[1, 80, ""]'),
    "both parts at once": frame(b"hello", b"") + frame(b"proof", b'[1, 80, "word"]'),
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def call(port: int, data: bytes) -> None:
    """What a stranger does: connects, says `data`, leaves."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as peer:
                peer.sendall(data)
                return
        except (ConnectionError, TimeoutError):
            time.sleep(0.01)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_meeting, "_HELLO_SECONDS", 0.5)
    for name in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE"):
        monkeypatch.delenv(name, raising=False)


def test_strangers_at_the_master_port_do_not_end_the_meeting() -> None:
    port = free_port()
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(_meeting.meet, "127.0.0.1", port, 0, 2, 30)
        for data in STRANGERS.values():
            call(port, data)
        second = pool.submit(_meeting.meet, "127.0.0.1", port, 1, 2, 30)
        meshes = [first.result(60), second.result(60)]
        given = [pool.submit(m.everywhere, "x", bytes([m.rank])) for m in meshes]
        assert [g.result(30) for g in given] == [[b"\0", b"\1"]] * 2
    for mesh in meshes:
        mesh.close()


def test_silent_strangers_keep_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_meeting, "_HELLO_SECONDS", 8)
    port = free_port()
    with contextlib.ExitStack() as silent, ThreadPoolExecutor(2) as pool:
        first = pool.submit(_meeting.meet, "127.0.0.1", port, 0, 2, 30)
        call(port, b"")
        for _ in range(40):
            silent.enter_context(socket.create_connection(("127.0.0.1", port), 5))
        second = pool.submit(_meeting.meet, "127.0.0.1", port, 1, 2, 30)
        for meeting in (first, second):
            meeting.result(5).close()


def overheard(port: int, strangers: contextlib.ExitStack) -> socket.socket:
    """A stranger that repeats what a process of an earlier run said, and holds the connection."""
    peer = strangers.enter_context(socket.create_connection(("127.0.0.1", port), 5))
    peer.sendall(frame(b"nonce", b"") + frame(b"proof", b'[1, 44985, "word"]'))
    return peer


def protocol(port: int, strangers: contextlib.ExitStack) -> socket.socket:
    """A stranger that speaks the protocol with the key that it would have: no secret in it."""
    peer = strangers.enter_context(socket.create_connection(("127.0.0.1", port), 5))
    _mesh.send(peer, 0, "nonce", b"")
    _, theirs, _ = _mesh.receive(peer)
    key = _run_key.run_key("another.host", 2)
    _mesh.send(peer, 0, _run_key.proof(key, "caller", "nonce", theirs), b'[1, 44985, "word"]')
    return peer


@pytest.mark.parametrize("stranger", [overheard, protocol])
def test_who_does_not_have_the_key_is_dropped(
    stranger: Callable[[int, contextlib.ExitStack], socket.socket],
) -> None:
    port = free_port()
    with contextlib.ExitStack() as strangers, ThreadPoolExecutor(2) as pool:
        first = pool.submit(_meeting.meet, "127.0.0.1", port, 0, 2, 30)
        call(port, b"")
        for _ in range(4):
            stranger(port, strangers)
        time.sleep(0.2)
        second = pool.submit(_meeting.meet, "127.0.0.1", port, 1, 2, 30)
        for meeting in (first, second):
            meeting.result(20).close()


def test_a_false_rank_0_gets_neither_the_key_nor_an_address() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        _mesh.send(theirs, 0, "nonce", b"0" * 64)
        here = _meeting.Address("", 80, "word")
        assert _meeting._request_addresses(ours, 1, here, KEY, time.monotonic() + 5) is None
        ours.close()
        assert b"word" not in theirs.recv(1000)
        assert theirs.recv(1000) == b""


def test_strangers_at_a_data_port_do_not_end_the_meeting() -> None:
    """A stranger that guesses a rank does not know the port's word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        table = [_meeting.Address("127.0.0.1", port, "word"), _meeting.Address("", 1, "other")]
        deadline = time.monotonic() + 30
        for data in (*STRANGERS.values(), frame(b"hello", b"1"), frame(b"word", b"x"),
                     frame(b"word", b"7")):  # fmt: skip
            threading.Thread(target=call, args=(port, data)).start()
        time.sleep(0.3)
        threading.Thread(target=call, args=(port, frame(b"word", b"1"))).start()
        assert list(_meeting.connect(listening, 0, table, deadline)) == [1]


@pytest.mark.parametrize("answer", ["null", "[[1]]", '[["h", 0, "w"]]', "{", "[" * 5000])
def test_a_master_that_answers_nonsense_is_passed(answer: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def master() -> None:
            peer, _ = server.accept()
            with peer:
                nonce = _mesh.receive(peer, 1 << 20)[1]
                evidence = _run_key.proof(KEY, "rank 0", nonce, "welcome").encode()
                _mesh.send(peer, 0, "welcome", evidence)
                _mesh.receive(peer, 1 << 20)  # unread bytes would reset the connection
                _mesh.send(peer, 0, "table", answer.encode())

        asked = pool.submit(master)
        with socket.create_connection(server.getsockname()) as peer:
            here = _meeting.Address("", 80, "word")
            assert _meeting._request_addresses(peer, 1, here, KEY, time.monotonic() + 5) is None
        asked.result(10)


def test_a_caller_that_drips_bytes_is_dropped_in_time() -> None:
    done = threading.Event()

    def drip(caller: socket.socket) -> None:
        while not done.wait(0.05):
            caller.sendall(b"\0")

    ours, theirs = socket.socketpair()
    with ours, theirs, ThreadPoolExecutor(1) as pool:
        dripping = pool.submit(drip, theirs)
        start = time.monotonic()
        assert _meeting._caller(ours, "word", start + 30) == -1
        assert time.monotonic() - start < 3
        done.set()
        dripping.result(10)
