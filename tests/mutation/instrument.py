"""Owns the text of instrumented sources: every site switched at run time, and where each went."""

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from .sites import Site

_RANK = {"statement": 0, "after": 1, "values": 2, "expression": 3}
_NS = "aclsim_mutants::"


@dataclass(slots=True)
class Rendered:
    """Instrumented text, and which bytes of it belong to which mutants, innermost last."""

    text: str = ""
    places: list[tuple[int, int, tuple[int, ...]]] = field(default_factory=list)

    def ids_at(self, line: int, column: int) -> tuple[int, ...]:
        """The mutants whose text a compiler's position (from 1) falls into: the innermost."""
        lines = self.text.encode().split(b"\n")
        at = sum(len(x) + 1 for x in lines[: line - 1]) + column - 1
        inside = [p for p in self.places if p[0] <= at < p[1]]
        if inside:
            return min(inside, key=lambda p: p[1] - p[0])[2]
        begin = sum(len(x) + 1 for x in lines[: line - 1])
        end = begin + len(lines[line - 1]) if line <= len(lines) else begin
        return tuple(i for p in self.places if p[0] < end and p[1] > begin for i in p[2])


def rendered(source: bytes, sites: Sequence[Site], dropped: Collection[int]) -> Rendered:
    """The source with `sites` switchable, but for the mutants in `dropped`."""
    live = [s for s in sites if any(s.base + k not in dropped for k in range(len(s.changes)))]
    live.sort(key=lambda s: (s.start, -s.end, _RANK[s.form]))
    out = _Writer(source, dropped)
    out.put('#include "mutants.h"\n')
    out.span(0, len(source), live)
    return Rendered("".join(out.parts), out.places)


def _plain(text: str) -> str:
    """Without comments that would swallow what follows."""
    return re.sub(r"//[^\n]*", "", text)


class _Writer:
    def __init__(self, source: bytes, dropped: Collection[int]) -> None:
        self.source, self.dropped = source, dropped
        self.parts: list[str] = []
        self.places: list[tuple[int, int, tuple[int, ...]]] = []
        self.at = 0

    def put(self, text: str) -> None:
        self.parts.append(text)
        self.at += len(text.encode())

    def span(self, start: int, end: int, sites: Sequence[Site]) -> None:
        """Source bytes [start, end) with the sites that lie in them, which nest."""
        starts = [s.start for s in sites]
        i = 0
        while i < len(sites):
            site = sites[i]
            j = bisect_right(starts, site.end - 1, lo=i) if site.end > site.start else i + 1
            inner = sites[i + 1 : j]
            self.put(self.source[start : site.start].decode())
            self.site(site, inner)
            start, i = site.end, max(j, i + 1)
        self.put(self.source[start:end].decode())

    def site(self, site: Site, inner: Sequence[Site]) -> None:
        begin = self.at
        ids = tuple(range(site.base, site.base + len(site.changes)))
        getattr(self, f"as_{site.form}")(site, inner)
        self.places.append((begin, self.at, ids))

    def alternative(self, site: Site, k: int, text: str) -> None:
        begin = self.at
        self.put(_plain(text))
        self.places.append((begin, self.at, (site.base + k,)))

    def as_expression(self, site: Site, inner: Sequence[Site]) -> None:
        count = len(site.changes)
        live = [k for k in range(count) if site.base + k not in self.dropped]
        self.put(f"({_NS}on({site.base}, {count}) ? (")
        for k in live[:-1]:
            self.put(f"{_NS}is({site.base + k}) ? (")
            self.alternative(site, k, site.changes[k].text)
            self.put(") : ")
        self.put("(")
        self.alternative(site, live[-1], site.changes[live[-1]].text)
        self.put(")) : (")
        self.span(site.start, site.end, inner)
        self.put("))")

    def as_values(self, site: Site, inner: Sequence[Site]) -> None:
        self.put(f"{_NS}values({site.base}, {len(site.changes)}, ")
        self.span(site.start, site.end, inner)
        self.put(")")

    def as_after(self, site: Site, inner: Sequence[Site]) -> None:
        self.put(f"{_NS}after({site.base}, ")
        self.span(site.start, site.end, inner)
        self.put(")")

    def as_statement(self, site: Site, inner: Sequence[Site]) -> None:
        text = site.changes[0].text
        self.put(f"{{ if ({_NS}on({site.base}, 1)) {{ ")
        self.alternative(site, 0, text)
        self.put(" } else { ")
        self.span(site.start, site.end, inner)
        self.put(" } }")
