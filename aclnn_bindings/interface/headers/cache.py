"""Owns parsed headers on disk, keyed by content; a file that is not as written is rebuilt."""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Final

from ..signature import Declarations
from ..user_dir import closed_to_others, is_changed_by_others, of_user, temporary
from .files import HeaderFile, find_headers, read_all
from .tables import SECTIONS, Image, declarations

_MAGIC: Final = "mindtorch-headers-1"
_MAX_FILES: Final = 32
# What is written here, and what a killed writer leaves of it.
_OUR_FILES: Final = re.compile(r"\.?[0-9a-f]{32}\.(rows|index)(\.[a-z0-9_]{8})?")
# A file changed this short before it was indexed may change again within one clock tick. The time
# is that of its inode, which whoever writes or replaces it changes too.
_SETTLED_NS: Final = 2_000_000_000
# Opening a pipe would wait for its writer.
_OPEN: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# More than all headers of an install come to.
_LARGEST: Final = 256 << 20
# How long one process waits for another that parses the same headers, in seconds.
_PATIENCE: Final = 60.0


def cache_folder() -> str:
    """Where caches are: MINDTORCH_CACHE_DIR, else mindtorch-npu in the user's cache folder."""
    if folder := os.environ.get("MINDTORCH_CACHE_DIR"):
        return os.path.abspath(folder)  # a child may stand elsewhere
    return str(of_user("XDG_CACHE_HOME", ".cache"))


def load(folders: Iterable[str | os.PathLike[str]], cache: bool = True) -> Declarations:
    """The declarations of all headers under some folders, from the cache when it has them.

    The key is the content of the headers; it is not read again while every header has the
    size, times and inode that it had. A cache that cannot be written is done without.
    """
    headers = find_headers(folders)
    if not cache:
        return declarations(_parse(headers))
    folder = Path(cache_folder(), "headers")
    if is_changed_by_others(folder):  # calls are made as it says
        folder = temporary() / "headers"
    return declarations(_Cache(str(folder)).image(headers))


def _parse(headers: Sequence[HeaderFile]) -> Image:
    from .tree import build

    return build(*read_all(headers))


def _parser_digest() -> bytes:
    """A digest of the parser itself: another parser may read the same headers differently."""
    digest = blake2b(_MAGIC.encode(), digest_size=16)
    here = os.path.dirname(__file__)
    above = os.path.dirname(here)
    names = [os.path.join(above, n) for n in ("abi.py", "overrides.py", "signature.py")]
    try:
        names += sorted(e.path for e in os.scandir(here) if e.name.endswith(".py"))
        for name in names:
            with open(name, "rb") as stream:
                digest.update(stream.read())
    except OSError:
        digest.update(b"sources not readable")
    digest.update(os.uname().machine.encode())
    return digest.digest()


class _Cache:
    """One folder with row files named by content, and index files named by place."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def image(self, headers: Sequence[HeaderFile]) -> Image:
        """The image of some headers, read or built."""
        parser = _parser_digest()
        index, states, newest = _place(headers, parser)
        key = self.indexed(index, states)
        if key is not None and (image := self.read(key)) is not None:
            return image
        texts, unread = read_all(headers)
        key = _content_key(texts, unread, parser)
        image = self.read(key)
        if image is None:
            with self.alone(key):
                image = self.read(key) or self.build(key, texts, unread)
        if time.time_ns() - newest > _SETTLED_NS:
            self.write(f"{index}.index", _sealed(json.dumps([states, key])))
        return image

    def build(self, key: str, texts: dict[str, bytes], unread: dict[str, str]) -> Image:
        """The image of headers parsed now, and kept."""
        from .tree import build

        image = build(texts, unread)
        self.write(f"{key}.rows", _encode(image))
        self.prune()
        return image

    def make(self) -> None:
        """The folder, made; OSError where it is a link, by which others choose where we write."""
        with closed_to_others():  # parents take the umask, not the mode
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
        if os.path.islink(self.folder):
            raise NotADirectoryError(f"{self.folder} is a link")

    @contextmanager
    def alone(self, key: str) -> Iterator[None]:
        """While this lasts, other processes wait that want the same headers parsed.

        It is done without where the folder cannot be written or its file system has no locks.
        """
        path = os.path.join(self.folder, f"{key}.lock")
        try:
            self.make()
            lock = os.open(path, _OPEN | os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            yield
            return
        try:
            _lock(lock)
            yield
        finally:
            with suppress(OSError):  # those who wait hold the file, and find the rows
                os.unlink(path)
            os.close(lock)

    def indexed(self, index: str, states: str) -> str | None:
        """The content key of headers whose files have not been touched since."""
        text = self.text(f"{index}.index")
        if text is None:
            return None
        known, key = json.loads(text)
        return str(key) if known == states else None

    def text(self, name: str) -> str | None:
        """The verified text of a cache file; None if it is missing, foreign or damaged, or no file
        that is written here."""
        try:
            handle = os.open(os.path.join(self.folder, name), _OPEN | os.O_RDONLY)
            with open(handle, "rb") as stream:
                facts = os.fstat(stream.fileno())
                if facts.st_uid not in (os.geteuid(), 0) or facts.st_size > _LARGEST:
                    return None
                seal, _, payload = stream.read(_LARGEST).partition(b"\n")
        except OSError:
            return None
        if seal != _seal(payload):
            return None
        return payload.decode("utf-8", "surrogatepass")

    def read(self, key: str) -> Image | None:
        """The image of a row file, its rows still text."""
        text = self.text(f"{key}.rows")
        if text is None:
            return None
        head, *lines = text.split("\n")
        headers, params, names, skipped = json.loads(head)
        rows = iter(lines)
        image = Image(headers, list(islice(rows, params)))
        for section in SECTIONS:
            image.named[section] = dict(zip(names[section], rows, strict=False))
        image.skipped = list(islice(rows, skipped))
        return image

    def write(self, name: str, data: bytes) -> None:
        """Puts a file in place at once, so that no reader sees a part of it."""
        try:
            self.make()
            handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(data)
                os.replace(temporary, os.path.join(self.folder, name))
            except BaseException:
                with suppress(FileNotFoundError):  # an interrupt may come once it is in its place
                    os.unlink(temporary)
                raise
        except OSError:
            return

    def prune(self) -> None:
        """Removes all but the newest of its own files, whatever else lies in the folder."""
        try:
            files = [
                (entry.stat(follow_symlinks=False).st_mtime, entry.path)
                for entry in os.scandir(self.folder)
                if _OUR_FILES.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
            ]
            for _, path in sorted(files, reverse=True)[2 * _MAX_FILES :]:
                os.unlink(path)
        except OSError:
            return


def _lock(file: int) -> None:
    """Lock `file`, unless it stays locked for longer than `_PATIENCE` or cannot be."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        except OSError:
            return
        else:
            return


def _seal(payload: bytes) -> bytes:
    return f"{_MAGIC} {blake2b(payload, digest_size=16).hexdigest()}".encode()


def _sealed(text: str) -> bytes:
    payload = text.encode("utf-8", "surrogatepass")
    return _seal(payload) + b"\n" + payload


def _encode(image: Image) -> bytes:
    dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    names = {section: list(image.named[section]) for section in SECTIONS}
    lines = [dump([image.headers, len(image.params), names, len(image.skipped)])]
    lines += [dump(row) for row in image.params]
    for section in SECTIONS:
        lines += [dump(row) for row in image.named[section].values()]
    lines += [dump(row) for row in image.skipped]
    return _sealed("\n".join(lines))


def _place(headers: Sequence[HeaderFile], parser: bytes) -> tuple[str, str, int]:
    """Names of the headers as one digest, their states as another, and the newest change."""
    where = blake2b(parser, digest_size=16)
    states = blake2b(digest_size=16)
    newest = 0
    for header in headers:
        where.update(f"{header.name}\0{header.path}\0".encode("utf-8", "surrogateescape"))
        try:
            now = os.stat(header.path)
        except OSError:
            states.update(b"gone")
            continue
        newest = max(newest, now.st_ctime_ns)  # an archive may bring any time of change of content
        state = (now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino, now.st_dev)
        states.update(repr(state).encode())
    return where.hexdigest(), states.hexdigest(), newest


def _content_key(texts: dict[str, bytes], unread: dict[str, str], parser: bytes) -> str:
    digest = blake2b(parser, digest_size=16)
    for name, data in texts.items():
        digest.update(f"{name}\0{len(data)}\0".encode("utf-8", "surrogateescape"))
        digest.update(data)
    for name, reason in unread.items():
        digest.update(f"{name}\0{reason}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
