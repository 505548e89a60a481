"""Owns outputs as bits: their digest, files named by it, and where two of them first differ.

Devices are compared by digest. A file is written for each digest that a case gives, so that a
difference that never comes again can still be looked at.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..record.result import Result

_SHIPPED: Final = 1 << 18  # bytes of outputs that a node of a cluster sends along with a note
_DIGEST: Final = re.compile("[0-9a-f]{1,32}")


@dataclass(frozen=True, slots=True)
class BitDifference:
    """Where two outputs first differ: `index` of result number `output`, the words in hex, how
    many elements differ, and the bits that flipped up (0 → 1) and down, over all elements."""

    output: int
    index: tuple[int, ...]
    got: str
    expected: str
    elements: int
    up: int
    down: int

    def as_json(self) -> dict[str, Any]:
        return {"output": self.output, "index": list(self.index), "got": self.got,
                "expected": self.expected, "elements": self.elements, "up": f"{self.up:x}",
                "down": f"{self.down:x}"}  # fmt: skip

    @property
    def text(self) -> str:
        """`at [3, 7] got 0x3f800001, expected 0x3f800000 (1 element differs)`."""
        where = f"at {list(self.index)}" + (f" of result {self.output}" if self.output else "")
        differ = "1 element differs" if self.elements == 1 else f"{self.elements} elements differ"
        return f"{where} got 0x{self.got}, expected 0x{self.expected} ({differ})"


def digest(arrays: list[Any]) -> str:
    """A name for the bits, shapes and dtypes of arrays; "" for no arrays."""
    if not arrays:
        return ""
    summed = hashlib.blake2b(digest_size=8)
    for array in arrays:
        summed.update(f"{array.dtype.name}{list(array.shape)}".encode())
        summed.update(np.ascontiguousarray(array).tobytes())
    return summed.hexdigest()


def file_of(folder: Path, case: str, seed: int, name: str) -> Path:
    """Where the outputs of a case with a digest are kept."""
    return folder / f"{zlib.crc32(f'{case}#{seed}'.encode()):08x}-{name}.npz"


def keep(folder: Path, result: Result, trial: Any) -> str:
    """The digest of a trial's outputs, which are written to `folder` unless they are there."""
    outputs = [np.asarray(a) for a in getattr(trial, "outputs", ())]
    name = digest(outputs)
    if name:
        path = file_of(folder, result.case, result.seed, name)
        if not path.exists():
            # Without room there is no first element to show; the digest still tells.
            with contextlib.suppress(OSError):
                store(path, outputs)
    return name


def store(path: Path, arrays: list[Any]) -> None:
    """Write arrays as words of their item size, whatever their dtype, in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{id(arrays):x}.part")
    with part.open("wb") as file:
        np.savez(file, *(words(a) for a in arrays))
    part.replace(path)


def packed(folder: Path, case: str, seed: int, names: Iterable[str]) -> dict[str, str]:
    """The files of some digests as text, for a host that does not see this one's disk; large ones
    are left out: the digest still tells."""
    paths = {name: file_of(folder, case, seed, name) for name in names if name}
    return {
        name: base64.b64encode(zlib.compress(path.read_bytes())).decode()
        for name, path in paths.items()
        if path.exists() and path.stat().st_size <= _SHIPPED
    }


def unpack(folder: Path, case: str, seed: int, outputs: Mapping[str, str]) -> None:
    """Write what `packed` gave on another host."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in outputs.items():
        if not _DIGEST.fullmatch(name):
            continue
        path = file_of(folder, case, seed, name)
        if not path.exists():
            with contextlib.suppress(OSError):
                path.write_bytes(zlib.decompress(base64.b64decode(text)))


def words(array: Any) -> Any:
    """The elements as unsigned integers; complex and wider ones as pairs in a last dimension."""
    array = np.ascontiguousarray(array)
    size = min(array.itemsize, 8)
    flat = array.reshape(-1).view(np.dtype(f"u{size}"))
    tail = (array.itemsize // size,) if array.itemsize > size else ()
    return flat.reshape(array.shape + tail)


def difference(folder: Path, case: str, seed: int, name: str, other: str) -> BitDifference | None:
    """Where the kept outputs of a case with digest `name` first differ from those with `other`."""
    paths = [file_of(folder, case, seed, digest) for digest in (name, other)]
    if not all(path.exists() for path in paths):
        return None
    with np.load(paths[0]) as got, np.load(paths[1]) as expected:
        return first([got[n] for n in got.files], [expected[n] for n in expected.files])


def first(got: list[Any], expected: list[Any]) -> BitDifference | None:
    """The first difference of arrays of words; None where they are equal, or of other shapes."""
    elements = up = down = 0
    at: tuple[int, tuple[int, ...], str, str] | None = None
    for number, (a, b) in enumerate(zip(got, expected, strict=False)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return None
        differs = a != b
        count = int(differs.sum())
        if not count:
            continue
        if at is None:
            index = tuple(int(i) for i in np.argwhere(differs)[0]) if a.ndim else ()
            width = 2 * a.itemsize
            at = (number, index, f"{int(a[index]):0{width}x}", f"{int(b[index]):0{width}x}")
        elements += count
        up |= int(np.bitwise_or.reduce((a & ~b)[differs]))
        down |= int(np.bitwise_or.reduce((b & ~a)[differs]))
    return None if at is None else BitDifference(*at, elements, up, down)
