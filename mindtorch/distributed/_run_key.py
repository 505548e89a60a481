"""Owns the key by which the processes of one run recognize each other, and the proofs made with it.

MINDTORCH_RUN_TOKEN is the secret of the key where it is set. Without it a run on one host has the
user's own: a random file in the state folder that nobody else may read. A run on several hosts
without MINDTORCH_RUN_TOKEN has no secret: its key tells runs apart and keeps nobody out.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_FILE: Final = "run-key"
_BYTES: Final = 32


def run_key(host: str, size: int) -> bytes:
    """The key of the run of `size` processes that meet at `host`: its name by the launcher, which
    attempt it is, and its secret."""
    names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MINDTORCH_RUN_TOKEN")
    digest = hashlib.sha256("\0".join(os.environ.get(name, "") for name in names).encode())
    if not os.environ.get("MINDTORCH_RUN_TOKEN") and _is_on_one_host(host, size):
        digest.update(_secret_of_user())
    return digest.digest()


def proof(key: bytes, role: str, *nonces: str) -> str:
    """What shows that its sender has the key; each role and each nonce has another one."""
    return hmac.new(key, "\0".join((role, *nonces)).encode(), "sha256").hexdigest()


def _is_on_one_host(host: str, size: int) -> bool:
    """Whether no process of the run can be elsewhere: the address is of this host alone, or the
    launcher started all of them here."""
    if os.environ.get("LOCAL_WORLD_SIZE") == str(size) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _secret_of_user() -> bytes:
    """The random bytes that this user's processes share on this host; none where no folder of the
    user can hold them."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.lstat()
            if _is_private(status, stat.S_IFDIR, stat.S_IWGRP | stat.S_IWOTH):
                return _read(folder / _FILE) or _create(folder / _FILE)
    return b""


def _folders() -> Iterator[Path]:
    with contextlib.suppress(RuntimeError):  # a user without a home
        state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        yield Path(state, "mindtorch-npu").expanduser()
    yield Path(tempfile.gettempdir(), f"mindtorch-npu-run-{os.geteuid()}")


def _read(path: Path) -> bytes:
    """What the file holds; nothing where it is missing, OSError where others can read it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        data = os.read(file, _BYTES + 1)
        if not _is_private(os.fstat(file), stat.S_IFREG, 0o077) or len(data) != _BYTES:
            raise PermissionError(f"{path} is not a private key")
        return data
    finally:
        os.close(file)


def _create(path: Path) -> bytes:
    """Write a new secret; of processes that do so at once, the first one's counts for all."""
    part = path.with_name(f".{_FILE}.{secrets.token_hex(8)}")
    file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, secrets.token_bytes(_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
    finally:
        os.close(file)
        part.unlink()
    return _read(path)


def _is_private(status: os.stat_result, kind: int, rights: int) -> bool:
    """Whether it is of this kind and of this user, and nobody else has any of `rights`."""
    is_of_user = status.st_uid == os.geteuid()
    return is_of_user and stat.S_IFMT(status.st_mode) == kind and not status.st_mode & rights
