"""torch.testing.FileCheck: that a text has given parts, in an order."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from .._tensor.types import Self

__all__ = ["FileCheck"]

_CONTEXT = 2  # lines of the text that an error shows before and after the place
_SIGNATURES = {
    "run": "arg0: str) -> None\n"
    "    2. (self: torch._C.FileCheck, arg0: torch._C.Graph) -> None\n"
    "    3. (self: torch._C.FileCheck, checks_file: str, test_file: str) -> None\n"
    "    4. (self: torch._C.FileCheck, checks_file: str, graph: torch._C.Graph) -> None",
    "check_count": "arg0: str, arg1: typing.SupportsInt | typing.SupportsIndex, arg2: bool)"
    " -> torch._C.FileCheck\n    2. (self: torch._C.FileCheck, str: str, count: typing.SupportsInt"
    " | typing.SupportsIndex, exactly: bool = False) -> torch._C.FileCheck",
}
_WORD = re.compile(r"#[ \t]{0,6}CHECK")
_LINE = re.compile(
    r"(?P<kind>-NEXT|-SAME|-NOT|-DAG|-SOURCE-HIGHLIGHTED|-REGEX|"
    r"-COUNT-(?P<exactly>EXACTLY-)?(?P<count>\d+)|): (?P<text>[^\n]*)"
)


class _Range(NamedTuple):
    """A part of the text, from `start` until before `end`."""

    start: int
    end: int


@dataclass(frozen=True)
class _Check:
    kind: str  # as lines of checks spell it: "", "-NEXT", …
    text: str
    count: int = 1

    def __str__(self) -> str:
        number = f"-{self.count}" if self.kind == "-COUNT" else ""
        return f"CHECK{self.kind}{number}: {self.text}"


class FileCheck:
    """Checks of a text, added one by one or read from lines `# CHECK: text`, and `run` in order.

    Each looks behind the place where the one before matched; `check_dag`s in a row may match in any
    order. RuntimeError for what is not found, or found where it must not be, with the place.
    """

    __module__ = "torch"

    def __init__(self) -> None:
        self._groups: list[list[_Check]] = []
        self._has_run = False

    def __repr__(self) -> str:
        return f"<torch.FileCheck object at {id(self):#x}>"

    def __del__(self) -> None:
        if not self._has_run and not sys.is_finalizing():
            checks = "".join(f"\t{check}\n" for group in self._groups for check in group)
            print(
                f"You have not run this instance of FileCheck!\nFileCheck checks:\n{checks}", end=""
            )

    def _add(self, name: str, kind: str, text: str, count: int = 1) -> Self:
        if not isinstance(text, str):
            self._refuse(name, text)
        self._has_run = False
        group = self._groups[-1] if self._groups else None
        if group and kind in ("-NOT", "-DAG") and group[0].kind == kind:
            group.append(_Check(kind, text))
        else:
            self._groups.append([_Check(kind, text, count)])
        return self

    def _refuse(self, name: str, *args: object) -> NoReturn:
        rest = _SIGNATURES.get(name, "arg0: str) -> torch._C.FileCheck")
        invoked = ", ".join(map(repr, (self, *args)))
        raise TypeError(
            f"{name}(): incompatible function arguments. The following argument types are"
            f" supported:\n    1. (self: torch._C.FileCheck, {rest}\n\nInvoked with: {invoked}"
        )

    def check(self, text: str) -> Self:
        """`text` comes next."""
        return self._add("check", "", text)

    def check_next(self, text: str) -> Self:
        """`text` is in the next line."""
        return self._add("check_next", "-NEXT", text)

    def check_same(self, text: str) -> Self:
        """`text` is in the same line."""
        return self._add("check_same", "-SAME", text)

    def check_not(self, text: str) -> Self:
        """`text` is not before the next match, or the end."""
        return self._add("check_not", "-NOT", text)

    def check_dag(self, text: str) -> Self:
        """`text` comes, before or after those of the neighbouring `check_dag`s."""
        return self._add("check_dag", "-DAG", text)

    def check_source_highlighted(self, text: str) -> Self:
        """`text` is underlined by `~` in the line below it."""
        return self._add("check_source_highlighted", "-SOURCE-HIGHLIGHTED", text)

    def check_regex(self, text: str) -> Self:
        """A match of the regular expression comes next."""
        return self._add("check_regex", "-REGEX", text)

    def check_count(self, text: str, count: int, exactly: bool = False) -> Self:
        """`text` comes `count` times, and no more before the next match if `exactly`."""
        if not isinstance(text, str) or not isinstance(count, int):
            self._refuse("check_count", text, count, exactly)
        if not (count or exactly):
            raise RuntimeError("Count == 0 && !exactly doesn't do anything")
        if count:
            self._add("check_count", "-COUNT", text, count)
        return self._add("check_count", "-NOT", text) if exactly else self

    def run(self, *texts: object) -> None:
        """Check a text or a graph; with two, the first holds the checks as `# CHECK` lines."""
        if not 1 <= len(texts) <= 2 or (len(texts) == 2 and not isinstance(texts[0], str)):
            self._refuse("run", *texts)
        text = texts[-1]
        if not isinstance(text, str):
            if isinstance(text, (int, float, bytes, list, tuple, dict, type(None))):
                self._refuse("run", *texts)
            text = str(text)
        self._has_run = True
        if len(texts) == 2:
            self._groups = []
            self._read(str(texts[0]))
            self._has_run = True
        if not self._groups:
            raise RuntimeError(
                "No checks have been added to this instance ofFilecheck! Check for bad input."
            )
        _Checking(text).all(self._groups)

    def _read(self, text: str) -> None:
        place = 0
        while word := _WORD.search(text, place):
            line = _LINE.match(text, word.end())
            if line is None:
                self._has_run = True
                excerpt = _excerpt(text, _Range(word.end(), word.end() + 1))
                raise RuntimeError(f"Could not parse check at:\n{excerpt}Check for bad input.")
            if line["count"] is None:
                self._add("run", line["kind"], line["text"])
            else:
                self.check_count(line["text"], int(line["count"]), line["exactly"] is not None)
            place = line.end()


class _Checking:
    """The checks of one text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def all(self, groups: list[list[_Check]]) -> None:
        last, absent = _Range(0, 0), list[_Check]()
        for group in groups:
            if group[0].kind == "-NOT":
                absent = group
                continue
            match = self._match(group, last.end)
            self._none_of(absent, _Range(last.end, match.start))
            last, absent = match, []
        self._none_of(absent, _Range(last.end, len(self.text) + 1))

    def _match(self, group: list[_Check], start: int) -> _Range:
        check = group[0]
        if check.kind == "-DAG":
            spans = [self._find(one.text, start, one) for one in group]
            return _Range(min(s.start for s in spans), max(s.end for s in spans))
        if check.kind == "-COUNT":
            spans = [self._find(check.text, start, check)]
            for _ in range(check.count - 1):
                spans.append(self._find(check.text, spans[-1].end, check))
            return _Range(spans[0].start, spans[-1].end)
        if check.kind == "-REGEX":
            return self._find_expression(check, start)
        if check.kind == "-SOURCE-HIGHLIGHTED":
            return self._find_underlined(check, start)
        if check.kind == "-NEXT":
            start = self._find("\n", start, check).end
        place = self._find(check.text, start, check)
        if check.kind:
            self._absent("\n", _Range(start, place.start), check)
        return place

    def _none_of(self, checks: list[_Check], span: _Range) -> None:
        for check in checks:
            self._absent(check.text, span, check)

    def _find(self, part: str, start: int, check: _Check) -> _Range:
        place = self.text.find(part, start)
        if place < 0:
            excerpt = _excerpt(
                self.text, _Range(start, len(part))
            )  # torch's end is the part's length
            raise RuntimeError(
                f"Expected to find {_quoted(part)} but did not find it\nSearched string:\n{excerpt}"
                f"From {check}\n"
            )
        return _Range(place, place + len(part))

    def _find_expression(self, check: _Check, start: int) -> _Range:
        match = re.compile(check.text).search(self.text, start)
        if match is None:
            raise RuntimeError(
                f"Expected to find regex {_quoted(check.text)} but did not find it\n"
                f"Searched string:\nFrom {check}\n"
            )
        return _Range(*match.span())

    def _find_underlined(self, check: _Check, start: int) -> _Range:
        size, place = len(check.text), self._find(check.text, start, check).start
        while place >= 0:
            column = place - (self.text.rfind("\n", 0, place) + 1)
            below = self.text.find("\n", place) + 1
            mark = _Range(below + column, below + column + size)
            if below and self.text[mark.start : mark.end] == "~" * size:
                return mark
            place = self.text.find(check.text, place + 1)
        excerpt = _excerpt(self.text, _Range(start, size))
        raise RuntimeError(
            f"Expected to find {_quoted(check.text)}highlighted but it is not.\n{excerpt}"
        )

    def _absent(self, part: str, span: _Range, check: _Check) -> None:
        place = self.text.find(part, span.start)
        if span.end >= span.start and 0 <= place <= span.end - len(part):
            excerpt = _excerpt(self.text, _Range(place, place + len(part)))
            raise RuntimeError(
                f"Expected to not find {_quoted(part)} but found it\n{excerpt}From {check}\n"
            )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _excerpt(text: str, span: _Range) -> str:
    """The lines around a span, what it covers underlined; torch's for spans that end early too."""
    if span.end - span.start == len(text):
        return text
    end = min(len(text), span.end)
    first = _lines_before(text, text.rfind("\n", 0, span.start) + 1)
    last = _lines_after(text, end)
    parts, line = [text[first : span.start]], span.start
    while line < end:
        stop = text.find("\n", line) % (len(text) + 1)  # without one, the end
        parts.append(text[line:stop] + "\n" + _underline(text, span.start, line, end, stop))
        line = stop + 1
    if rest := text[line : last if last >= line else None]:
        parts.append(rest if rest.endswith("\n") else rest + "\n")
    return "".join(parts)


def _underline(text: str, start: int, line: int, end: int, stop: int) -> str:
    begin, until = text.rfind("\n", 0, line) + 1, min(end, stop)
    blank = next((i for i in range(begin, until) if text[i] != " " and i >= start), until)
    if blank == until:
        return ""
    more = stop != end and bool(text[stop : end + 1].strip("\n "))
    return " " * (blank - begin) + "~" * (until - blank) + ("\n" if more else " <--- HERE\n")


def _lines_before(text: str, place: int) -> int:
    for _ in range(_CONTEXT):
        if place == 0:
            break
        place = text.rfind("\n", 0, place - 1) + 1
    return place


def _lines_after(text: str, place: int) -> int:
    place -= 1
    for _ in range(_CONTEXT + 1):
        place = text.find("\n", place + 1)
        if place < 0:
            return len(text)
    return place
