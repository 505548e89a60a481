"""Owns the text of one header: decoding, comments, literals and lines; knows no declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .patterns import re
from .preprocessor import Preprocessor
from .raw import Macro, Unit

_LEXEME: Final = re.compile(
    r"""
    /\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?                  # block comment, maybe not closed
  | //[^\n\\]*+(?:\\.[^\n\\]*+)*+                         # line comment
  | "[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?                      # string
  | '[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'?                      # character
  | \#[^\n\\/"']*+(?:(?:\\.?|/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?|//[^\n\\]*+(?:\\.[^\n\\]*+)*+|/
      |"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'?)[^\n\\/"']*+)*+
    """,
    re.X | re.S,
)
_COMMENT: Final = re.compile(
    r"""("[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?)|/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?|//.*+""", re.X
)
_PLAIN_STRING: Final = re.compile(r'"[\w .%-]*"')
_PLACEHOLDER: Final = re.compile(r'"@(\d+)"')


@dataclass(slots=True)
class HeaderSource:
    """A header without comments and directives; lines are kept, so offsets give line numbers.

    `comments` are (offset in code, text); `code` holds what the conditionals leave active.
    """

    code: str = ""
    comments: list[tuple[int, str]] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)
    inactive: list[tuple[int, str, str]] = field(default_factory=list)
    packs: list[tuple[int, int]] = field(default_factory=list)

    def restore(self, text: str) -> str:
        """`text` of `code` with its literals in place of their placeholders."""
        return _PLACEHOLDER.sub(lambda m: self.literals[int(m[1])], text)


def decode(data: bytes) -> str:
    """Text of a header: UTF-8, else UTF-16 by its mark, else GB 18030; newlines become LF."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            try:
                text = data.decode("gb18030")
            except UnicodeDecodeError:
                text = data.decode("utf-8", "replace")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def uncomment(directive: str) -> str:
    """A directive on one line and without comments."""
    if "\\" in directive:
        directive = directive.replace("\\\n", " ")
    if "/" in directive:
        directive = _COMMENT.sub(lambda m: m[1] or " ", directive)
    return directive


class _Scan:
    """One pass over a header's text, which fills a `HeaderSource`."""

    def __init__(self, text: str, preprocessor: Preprocessor) -> None:
        self.text = text
        self.preprocessor = preprocessor
        self.source = HeaderSource()
        self.out: list[str] = []
        self.size = 0
        self.dead: list[str] = []
        self.dead_start = 0

    def emit(self, piece: str) -> None:
        if self.preprocessor.active:
            self.out.append(piece)
            self.size += len(piece)
        else:
            self.dead.append(piece)

    def blank(self, lexeme: str) -> None:
        """Leaves only the newlines of a comment or directive, so that lines stay true."""
        self.emit("\n" * lexeme.count("\n") or " ")

    def literal(self, lexeme: str) -> None:
        if _PLAIN_STRING.fullmatch(lexeme):
            self.emit(lexeme)
            return
        self.emit(f'"@{len(self.source.literals)}"' + "\n" * lexeme.count("\n"))
        self.source.literals.append(lexeme)

    def directive(self, lexeme: str, start: int) -> None:
        was = self.preprocessor.active
        self.preprocessor.directive(uncomment(lexeme), lambda: self.text.count("\n", 0, start) + 1)
        now = self.preprocessor.active
        if self.preprocessor.pack_changed:
            self.source.packs.append((self.size, self.preprocessor.pack))
        if was and not now:
            self.dead_start = start
        elif now and not was:
            self.bury()
        elif not was and self.preprocessor.branch_changed:
            self.bury()
            self.dead_start = start
        self.blank(lexeme)

    def bury(self) -> None:
        """Files the text of a region that the conditionals removed."""
        text = "".join(self.dead)
        self.dead.clear()
        newlines = text.count("\n")
        if text.strip():
            line = self.text.count("\n", 0, self.dead_start) + 1
            self.source.inactive.append((line, text, self.preprocessor.left))
        self.out.append("\n" * newlines)
        self.size += newlines

    def run(self) -> HeaderSource:
        text, at = self.text, 0
        for lexeme in _LEXEME.finditer(text):
            start, end = lexeme.span()
            if start > at:
                self.emit(text[at:start])
            at = end
            first = text[start]
            if first == "/":
                if self.preprocessor.active:
                    self.source.comments.append((self.size, text[start:end]))
                self.blank(text[start:end])
                if end == len(text) and text[start + 1] == "*" and not self.closed(start, end):
                    self.preprocessor.unit.skip_at(
                        text.count("\n", 0, start) + 1,
                        text[start : start + 80],
                        "comment is not closed before the end of the file",
                    )
            elif first == "#":
                self.directive(text[start:end], start)
            else:
                self.literal(text[start:end])
        self.emit(text[at:])
        if not self.preprocessor.active:
            self.bury()
        self.preprocessor.finish()
        self.source.code = "".join(self.out)
        return self.source

    def closed(self, start: int, end: int) -> bool:
        return end - start >= 4 and self.text.endswith("*/", start, end)


def read_source(text: str, unit: Unit, defined: Mapping[str, Macro]) -> HeaderSource:
    """Splits one header's text into code, comments and directives; fills `unit` with macros."""
    return _Scan(text, Preprocessor(unit, defined)).run()
