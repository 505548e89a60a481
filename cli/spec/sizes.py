"""Owns sizes: their roles, which own the boundaries that are worth trying, and shape strings.

A shape is written as jaxtyping writes it: `B S 2*H` (each part without spaces is an expression),
`*B` for any number of dims, `*#S` for dims that may be 1 or absent, `M@E` for a size that differs
from member to member of a list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Final

from .errors import DeclarationError
from .expressions import Named, expression

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Role:
    """What a size counts: its plain level, and the levels of `quick` and of `full` beside them.

    A level is a size, or sizes joined by `x` where the name stands for several dims (`-`: none).
    `most` is the document's limit.
    """

    name: str
    plain: str
    quick: tuple[str, ...]
    full: tuple[str, ...] = ()
    most: int = 0

    def __call__(self, *levels: int | str, most: int = 0) -> Role:
        """The role with these levels, the first plain, and limit."""
        levels_ = tuple(str(n) for n in levels) or (self.plain, *self.quick)
        return replace(self, plain=levels_[0], quick=levels_[1:], full=() if levels else self.full,
                       most=most or self.most)  # fmt: skip

    def levels(self, full: bool) -> tuple[str, ...]:
        """All levels, the plain one first, within the limit."""
        every = dict.fromkeys((self.plain, *self.quick, *(self.full if full else ())))
        return tuple(n for n in every if not self.most or max(dims_of(n), default=0) <= self.most)


def _role(name: str, levels: str, full: str = "") -> Role:
    plain, *quick = levels.split()
    return Role(name, plain, tuple(quick), tuple(full.split()))


# Boundaries: vector registers, a core's rows, tiles, blocks of pages, and what 16 bits count.
row = _role("row", "5 1 8 33 65 257 513 1025 4097", "2 7 9 16 17 31 64 127 256 512 1024 2049 65537")
column = _role("row", "7 1 16 33 129 260 1032", "2 8 9 31 64 65 257 513 4100")
batch = _role("batch", "2 1 3 5", "4 17 33")
rows = _role("rows", "4 1 3 17 65 130", "2 8 9 33 257 1025")
seq = _role("sequence", "6 1 17 33 130", "2 7 16 64 65 127 257 513")
tokens = _role("tokens", "8 1 3 33 130 1030", "2 7 16 64 257 4099")
heads = _role("heads", "2 1 3", "4 5 8 9")
group = _role("group", "2 1 4", "3 8")
head_dim = _role("head dim", "16 64 72 128", "8 32 40 80 96 192 256")
experts = _role("experts", "4 1 3 8 65", "2 16 33 129 257")
topk = _role("top k", "2 1 3", "4 8")
members = _role("list length", "3 1 2 8", "5 16 51")
channels = _role("channels", "3 1 8 17 65", "2 4 16 32 33 129")
space = _role("space", "7 1 8 17 33", "2 5 16 31 65")
window = _role("window", "3 1 2 5", "4 7")
pages = _role("pages", "4 1 9", "2 33")
page = _role("page", "16 128", "32 64 256")
leading = _role("leading dims", "3 - 1 2x3 65 2x1x3", "1x2 17 257 2x2x2x2")
shape = _role("shape", "3x5 - 1 7 2x3x4 1025 33x65 1x9 2x1x3x2",
              "2 8 257 4097 17x33 257x3 2x3x1x2x2 65537")  # fmt: skip

# Letters that need no entry in `sizes(…)`.
KNOWN: Final[Mapping[str, Role]] = {
    "B": batch, "S": seq, "T": tokens, "H": row, "N": column, "M": rows, "K": row, "D": head_dim,
    "E": experts, "C": channels, "L": members, "W": space, "*B": leading, "*N": row, "*S": shape,
}  # fmt: skip


@lru_cache(4096)
def dims_of(level: str) -> Dims:
    """`2x3` -> (2, 3); `-` -> ()."""
    return () if level == "-" else tuple(int(n) for n in level.split("x"))


def text_of(dims: Sequence[int]) -> str:
    """The level of some dims."""
    return "x".join(map(str, dims)) or "-"


@dataclass(frozen=True, slots=True)
class ShapePart:
    """One part of a shape: an expression; several dims; whether they broadcast; whose member."""

    text: str
    several: bool = False
    broadcast: bool = False
    member: str = ""

    @property
    def names(self) -> frozenset[str]:
        """Size names that it reads; `*B` for several dims."""
        return frozenset((f"*{self.text}",)) if self.several else expression(self.text).names


_PART: Final = re.compile(r"(\*?)(#?)([^@]+)(?:@(\w+))?")


@lru_cache(4096)
def parts_of(text: str) -> tuple[ShapePart, ...]:
    """The parts of a shape string; DeclarationError for one that can't be read."""
    parts = []
    for token in text.split():
        match = _PART.fullmatch(token)
        if match is None:
            raise DeclarationError(f"shape {text!r}: {token!r} is no size")
        several, broadcast, body, member = match.groups()
        expression(body)
        parts.append(ShapePart(body, bool(several), bool(broadcast), member or ""))
    return tuple(parts)


def resolve(text: str, sizes: Named, member: int = 0, ones: str = "") -> Dims:
    """The dims of a shape string; `ones` says how broadcast dims are reduced here."""
    dims: list[int] = []
    for part in parts_of(text):
        if part.several:
            sizes_ = tuple(sizes[f"*{part.text}"])
            sizes_ = differing(sizes_, member) if part.member else sizes_
            dims += reduced(sizes_, ones) if part.broadcast else sizes_
            continue
        value = expression(part.text)(sizes)
        if not isinstance(value, int) or value < 0:
            raise DeclarationError(f"shape {text!r}: {part.text} is {value!r}, no size")
        dims.append(differing((value,), member)[0] if part.member else value)
    return tuple(dims)


def differing(dims: Dims, member: int) -> Dims:
    """The dims of a list's member: those of the first, then others around them; empty ones beside
    an empty first one alone."""
    if not member or not dims:
        return dims
    least = min(1, dims[0])
    return (max(least, dims[0] + (member % 3) * (1 if member % 2 else 2) - member % 2), *dims[1:])


def reduced(dims: Dims, how: str) -> Dims:
    """Dims that broadcast to `dims`: "" as they are, "ones" all 1, "first", "middle" or "last" one
    of them 1, "lower" without the first, "scalar" none."""
    if how == "scalar":
        return ()
    if how == "lower":
        return dims[1:]
    if how == "ones":
        return (1,) * len(dims)
    at = {"first": 0, "middle": len(dims) // 2, "last": len(dims) - 1}.get(how, -1)
    return tuple(1 if i == at else n for i, n in enumerate(dims))


def volume(dims: Sequence[int]) -> int:
    """Elements of a shape."""
    return prod(dims)
