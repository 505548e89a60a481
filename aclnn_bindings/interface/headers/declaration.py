"""Owns the split of a header's code into declarations, so that none gets lost."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from .markers import Markers
from .patterns import re
from .raw import Unit
from .source import HeaderSource
from .statement import SourcePosition, Statements
from .tokenizer import tokenize
from .tokens import NotUnderstood
from .words import ATTRIBUTES, TAGS

_CHUNK: Final = re.compile(r"[^;{}]*+[;{}]")
_BRACE: Final = re.compile(r"[{}]")
_LINKAGE: Final = re.compile(r'\bextern\s*"C(?:\+\+)?"\s*\Z')
_TAG: Final = re.compile(r"\b(?:struct|union|enum)\b")
_LONGEST: Final = 1_000_000
_DISPLAY_LIMIT: Final = 400
_MOST_ROWS: Final = 5000


class Chunks:
    """Reads the declarations of one header's code into its unit."""

    counted: int
    comment: int

    source: HeaderSource
    unit: Unit
    markers: Markers
    line: int

    def __init__(self, source: HeaderSource, unit: Unit, markers: Markers) -> None:
        self.source, self.unit, self.markers = source, unit, markers
        self.code: str = source.code.replace("\\\n", " \n")
        self.comment = 0
        self.line = 1
        self.counted = 0
        self.spans: list[tuple[int, int]] = []
        self.pack_starts: list[int] = [at for at, _ in source.packs]
        self.statements: Statements = Statements(source, unit, markers)

    def line_at(self, at: int) -> int:
        """The line of an offset; offsets must not decrease from call to call."""
        if at > self.counted:
            self.line += self.code.count("\n", self.counted, at)
            self.counted = at
        return self.line

    def doc_before(self, start: int, end: int) -> str:
        """The comments in `code[start:end]` joined."""
        comments, at = self.source.comments, self.comment
        lines = []
        while at < len(comments) and comments[at][0] <= end:
            if comments[at][0] >= start:
                lines.append(comments[at][1])
            at += 1
        self.comment = at
        return "\n".join(lines)

    def run(self) -> None:
        code, at = self.code, 0
        match = _CHUNK.match
        while chunk := match(code, at):
            if len(self.unit.skipped) > _MOST_ROWS:
                self.skip(at, len(code), f"not read: more than {_MOST_ROWS} rows before it")
                return
            end = chunk.end()
            closer = code[end - 1]
            text = chunk.group()
            start = at + len(text) - len(text.lstrip())
            if closer == ";":
                self.statement(at, start, end, code[start:end])
            elif closer == "}":
                self.close(start, end)
            else:
                end = self.brace(at, start, end)
            at = end
        rest = code[at:].strip()
        if rest:
            start = at + len(code[at:]) - len(code[at:].lstrip())
            self.skip(start, len(code), "declaration is not finished before the end of the file")

    # -- kinds of chunk -----------------------------------------------------------------------

    def skip(self, start: int, end: int, reason: str) -> None:
        self.unit.chunks += 1
        self.spans.append((start, end))
        text = self.source.restore(self.code[start : min(end, start + _DISPLAY_LIMIT)])
        self.unit.skip_at(self.line_at(start), text, reason)

    def close(self, start: int, end: int) -> None:
        if end - start > 1:
            self.skip(start, end, "'}' after something without ';'")
        elif self.unit.linkage:
            self.unit.linkage -= 1
        else:
            self.skip(start, end, "'}' without '{'")

    def brace(self, at: int, start: int, end: int) -> int:
        """Handles a chunk that stops at '{'; returns where the next one starts."""
        head = self.code[start : end - 1]
        if linkage := _LINKAGE.search(head):
            if before := linkage.start():
                self.skip(start, start + before, 'declaration is not finished before extern "C"')
            self.unit.linkage += 1
            return end
        stop = self.matching(end)
        if stop < 0:
            self.skip(start, len(self.code), "'{' is not closed before the end of the file")
            return len(self.code)
        if "=" in head or self.aggregate(head):
            semicolon = _CHUNK.match(self.code, stop)
            while semicolon and self.code[semicolon.end() - 1] == "{":
                stop = self.matching(semicolon.end())
                semicolon = _CHUNK.match(self.code, stop) if stop > 0 else None
            if semicolon is None or self.code[semicolon.end() - 1] != ";":
                stop = stop if stop > 0 else len(self.code)
                self.skip(start, stop, "declaration with '{…}' has no ';' after it")
                return stop
            stop = semicolon.end()
            self.statement(at, start, stop, self.code[start:stop])
            return stop
        self.body(at, start, stop, head)
        return stop

    def aggregate(self, head: str) -> bool:
        """Whether a '{' behind `head` opens a struct, union or enum, and not a function."""
        if not _TAG.search(head) or len(head) > _LONGEST:
            return False
        depth, group, tag = 0, "", False
        tokens = tokenize(head)
        for at, token in enumerate(tokens):
            if token == "(" and not depth:
                group = tokens[at - 1] if at else ""
            depth += (token == "(") - (token == ")")
            tag = tag or (not depth and token in TAGS)
        marker = group in ATTRIBUTES or group in self.markers.dropped
        return tag and (tokens[-1] != ")" or marker)

    def body(self, at: int, start: int, stop: int, head: str) -> None:
        """Handles a braced thing that needs no ';': a function's body, or C++."""
        if head.rstrip().endswith(")"):
            self.statement(at, start, stop, f"{head};", exported=False)
        else:
            self.skip(start, stop, "C++, or not a declaration")

    def matching(self, at: int) -> int:
        """The offset past the '}' that closes a '{' ending at `at`; -1 if there is none."""
        depth = 1
        for brace in _BRACE.finditer(self.code, at):
            depth += 1 if brace.group() == "{" else -1
            if not depth:
                return brace.end()
        return -1

    # -- statements ---------------------------------------------------------------------------

    def statement(self, at: int, start: int, end: int, text: str, exported: bool = True) -> None:
        """Declares what one complete declaration says, or notes why not."""
        if text == ";":
            return
        place = SourcePosition(
            self.line_at(start), self.doc_before(at, start), self.pack_at(start), exported
        )
        if len(text) > _LONGEST:
            self.skip(start, end, f"longer than {_LONGEST} characters")
            return
        try:
            if not exported or not self.statements.prototype(text, place):
                self.statements.declare(text, place)
        except NotUnderstood as error:
            self.skip(start, end, str(error))
        except RecursionError:
            self.skip(start, end, "nested too deep")
        else:
            self.unit.chunks += 1
            self.spans.append((start, end))

    def pack_at(self, at: int) -> int:
        """The maximal alignment that #pragma pack sets at an offset, 0 if none."""
        index = bisect_right(self.pack_starts, at) - 1 if self.pack_starts else -1
        return self.source.packs[index][1] if index >= 0 else 0


def read_declarations(source: HeaderSource, unit: Unit, markers: Markers) -> Chunks:
    """Fills `unit` with the declarations of `source`; what is not understood goes to `skipped`."""
    for line, text, condition in source.inactive:
        _note_inactive(unit, line, text, condition)
    chunks = Chunks(source, unit, markers)
    chunks.run()
    if unit.linkage:
        unit.skip_at(chunks.line_at(len(source.code)), 'extern "C" {', "is not closed")
    return chunks


def _note_inactive(unit: Unit, line: int, text: str, condition: str) -> None:
    """One row for every declaration that a false conditional removed."""
    reason = f"not active: {condition}"
    if "__cplusplus" in condition:
        reason = f"C++ only: {condition}"
    at = counted = rows = 0
    while chunk := _CHUNK.match(text, at):
        start = at + len(chunk.group()) - len(chunk.group().lstrip())
        end = chunk.end()
        piece = text[start:end]
        at = end
        if piece in ("}", ";") or (piece[-1] == "{" and _LINKAGE.match(piece[:-1])):
            continue
        if piece[-1] == "{":
            at = _balanced_end(text, end)
            more = _CHUNK.match(text, at)
            if more and more.group().strip() == ";":
                at = more.end()
        rows += 1
        if rows > _MOST_ROWS:
            at = start
            break
        line += text.count("\n", counted, start)
        counted = start
        unit.chunks += 1
        unit.skip_at(line, text[start : min(at, start + _DISPLAY_LIMIT)], reason)
    if text[at:].strip():
        unit.chunks += 1
        line += text.count("\n", counted, at)
        unit.skip_at(line, text[at : at + _DISPLAY_LIMIT], reason)


def _balanced_end(text: str, at: int) -> int:
    depth = 1
    for brace in _BRACE.finditer(text, at):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return brace.end()
    return len(text)
