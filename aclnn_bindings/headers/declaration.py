"""Owns the split of a header's code into declarations, and what each of them declares."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from .declarator import Cursor, Declarator, Specifiers, join_type
from .expression import tokenize
from .markers import Markers
from .raw import (
    RawConstant,
    RawEnum,
    RawFunction,
    RawParam,
    RawStruct,
    RawTypedef,
    Unit,
)
from .source import Source
from .tokens import NotUnderstood
from .words import INTRICATE

_CHUNK: Final = re.compile(r"[^;{}]*+[;{}]")
_BRACE: Final = re.compile(r"[{}]")
_LINKAGE: Final = re.compile(r'\bextern\s*"C(?:\+\+)?"\s*\Z')
_TAG: Final = re.compile(r"\b(?:struct|union|enum)\b")
_LONGEST: Final = 1_000_000
_SHOWN: Final = 400
_MOST_ROWS: Final = 5000


class Chunks:
    """Reads the declarations of one header's code into its unit."""

    def __init__(self, source: Source, unit: Unit, markers: Markers) -> None:
        self.source, self.unit, self.markers = source, unit, markers
        self.code = source.code.replace("\\\n", " \n")
        self.comment = 0
        self.line = 1
        self.counted = 0
        self.spans: list[tuple[int, int]] = []
        self.pack_starts = [at for at, _ in source.packs]
        self.prefixes: dict[str, str | None] = {}
        self.params = markers.params

    def line_at(self, at: int) -> int:
        """The line of an offset; offsets must not decrease from call to call."""
        if at > self.counted:
            self.line += self.code.count("\n", self.counted, at)
            self.counted = at
        return self.line

    def doc_before(self, start: int, end: int) -> str:
        """The comments in `code[start:end]` joined."""
        comments, at = self.source.comments, self.comment
        found = []
        while at < len(comments) and comments[at][0] <= end:
            if comments[at][0] >= start:
                found.append(comments[at][1])
            at += 1
        self.comment = at
        return "\n".join(found)

    def run(self) -> None:
        code, at = self.code, 0
        match = _CHUNK.match
        while found := match(code, at):
            if len(self.unit.skipped) > _MOST_ROWS:
                self.skip(at, len(code), f"not read: more than {_MOST_ROWS} rows before it")
                return
            end = found.end()
            closer = code[end - 1]
            text = found.group()
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
        text = self.source.restore(self.code[start : min(end, start + _SHOWN)])
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
        if _LINKAGE.search(head) and head.lstrip().startswith("extern"):
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
            if token == "(":
                if not depth:
                    group = tokens[at - 1] if at else ""
                depth += 1
            elif token == ")":
                depth -= 1
            elif not depth:
                tag = tag or token in ("struct", "union", "enum")
        marker = group.startswith(("__attribute", "__declspec", "alignas", "_Alignas"))
        return tag and (tokens[-1] != ")" or marker or group in self.markers.dropped)

    def body(self, at: int, start: int, stop: int, head: str) -> None:
        """Handles a braced thing that needs no ';': a function's body, or C++."""
        if head.rstrip().endswith(")"):
            self.statement(at, start, stop, f"{head};", exported=False)
        else:
            self.skip(start, stop, "C++, or not a declaration")

    def matching(self, at: int) -> int:
        """The offset past the '}' that closes a '{' ending at `at`; -1 if there is none."""
        depth = 1
        for found in _BRACE.finditer(self.code, at):
            depth += 1 if found.group() == "{" else -1
            if not depth:
                return found.end()
        return -1

    # -- statements ---------------------------------------------------------------------------

    def statement(self, at: int, start: int, end: int, text: str, exported: bool = True) -> None:
        """Declares what one complete declaration says, or notes why not."""
        if text == ";":
            return
        line = self.line_at(start)
        doc = self.doc_before(at, start)
        if len(text) > _LONGEST:
            self.skip(start, end, f"longer than {_LONGEST} characters")
            return
        if exported and self.fast(text, line, doc):
            self.unit.chunks += 1
            self.spans.append((start, end))
            return
        try:
            self.slow(text, line, doc, start, exported)
        except NotUnderstood as error:
            self.skip(start, end, str(error))
        except RecursionError:
            self.skip(start, end, "nested too deep")
        else:
            self.unit.chunks += 1
            self.spans.append((start, end))

    def fast(self, text: str, line: int, doc: str) -> bool:
        """Declares a plain prototype, the form of nearly all; False leaves it to `slow`."""
        head, bracket, rest = text.partition("(")
        if not bracket or "(" in rest:
            return False
        inside, _, after = rest.partition(")")
        if after != ";" and after.strip() != ";":
            return False
        words = head.replace("*", " * ").split()
        if len(words) < 2 or not words[-1].isidentifier():
            return False
        name = words.pop()
        prefix = " ".join(words)
        returns = self.prefixes.get(prefix)
        if returns is None:
            returns = self.returned(words)
            if returns is None:
                return False
            self.prefixes[prefix] = returns
        params = []
        known = self.params
        for piece in inside.split(","):
            piece = " ".join(piece.split())
            param = known.get(piece)
            if param is None:
                param = self.parameter(piece)
                if param is None:
                    return False
            params.append(param)
        if params == [RawParam("void", "")] or params == [RawParam("", "")]:
            params = []
        deprecated = "DEPRECATED" in prefix
        function = RawFunction(name, returns, tuple(params), line, doc, True, deprecated)
        self.unit.functions.append(function)
        return True

    def returned(self, words: list[str]) -> str | None:
        """The return type in the words before a function's name, None if not simple."""
        left = [w for w in words if w not in self.markers.dropped]
        if any(w in INTRICATE or w in self.markers.replaced for w in left):
            return None
        left = [w for w in left if w != "extern"]
        stars = left.count("*")
        if stars and left[-stars:] != ["*"] * stars:
            return None
        names = left[: len(left) - stars]
        const = "const" in names
        names = [n for n in names if n != "const"]
        if not names or not all(n.isidentifier() for n in names):
            return None
        return join_type(("const " if const else "") + names[-1], "*" * stars)

    def parameter(self, piece: str) -> RawParam | None:
        """One parameter of a plain prototype; None if it needs the full grammar to fail."""
        if not piece:
            return RawParam("", "")
        tokens = tokenize(piece)
        expanded = self.markers.expand(tokens)
        if expanded is not tokens or "=" in tokens or '"' in piece:
            return None
        if piece == "...":
            return RawParam("...", "")
        try:
            cursor = Cursor(tokens)
            param = cursor.parameter(Declarator(""))
        except (NotUnderstood, RecursionError):
            return None
        if cursor.peek():
            return None
        if len(self.params) < 100_000:
            self.params[piece] = param
        return param

    def slow(self, text: str, line: int, doc: str, start: int, exported: bool) -> None:
        tokens = self.markers.expand(tokenize(text))
        pack = 0
        if self.pack_starts:
            index = bisect_right(self.pack_starts, start) - 1
            pack = self.source.packs[index][1] if index >= 0 else 0
        if tokens[:1] and tokens[0] == "extern" and tokens[1:2] in (['"C"'], ['"C++"']):
            del tokens[1]
        cursor = Cursor(tokens, pack, line)
        spec = cursor.specifiers()
        if cursor.peek() == ";" and not spec.name:
            self.bare(spec, line)
            cursor.take()
        else:
            items = cursor.declarators(spec)
            cursor.expect(";")
            self.declare(spec, items, line, doc, exported)
        if cursor.peek():
            raise NotUnderstood(f"unexpected '{cursor.peek()[:40]}'")
        self.unit.enums.extend(cursor.enums)

    def bare(self, spec: Specifiers, line: int) -> None:
        """A declaration without declarators: a tag, or a type of its own."""
        unit = self.unit
        if spec.struct is not None:
            unit.structs.append(spec.struct)
        elif spec.enum is not None:
            unit.enums.append(spec.enum)
        elif spec.introduces:
            unit.opaque.append((spec.introduces, line))
        else:
            raise NotUnderstood("declares nothing")

    def declare(
        self, spec: Specifiers, items: list[Declarator], line: int, doc: str, exported: bool
    ) -> None:
        unit = self.unit
        deprecated = any("deprecated" in a.lower() for a in spec.attributes)
        if "typedef" in spec.storage:
            self.typedef(spec, items, line)
            return
        if spec.struct is not None or spec.enum is not None:
            raise NotUnderstood("a variable of a type defined in place")
        taken: list[RawFunction | RawConstant] = []
        for item in items:
            taken.append(self.function_or_constant(spec, item, line, doc, exported, deprecated))
        for entry in taken:
            if isinstance(entry, RawFunction):
                unit.functions.append(entry)
            else:
                unit.constants.append(entry)

    def function_or_constant(
        self, spec: Specifiers, item: Declarator, line: int, doc: str, exported: bool, old: bool
    ) -> RawFunction | RawConstant:
        if not item.name:
            raise NotUnderstood("declares nothing")
        if item.params is not None:
            if item.defaults:
                self.unit.skip_at(
                    line, item.name, f"C++: default value of {', '.join(item.defaults)} left out"
                )
            if not exported or "static" in spec.storage:
                raise NotUnderstood("defined in the header, so no library exports it")
            returns = item.type_of(spec.base)
            old = old or any("deprecated" in a.lower() for a in item.attributes)
            return RawFunction(item.name, returns, item.params, line, doc, True, old)
        constant = spec.base.startswith("const ") or "constexpr" in spec.storage
        if constant and item.value and not item.after:
            return RawConstant(item.name, self.source.restore(item.value), line)
        raise NotUnderstood(f"variable '{item.name}' of type {item.type_of(spec.base)}")

    def typedef(self, spec: Specifiers, items: list[Declarator], line: int) -> None:
        unit = self.unit
        plain = tuple(i.name for i in items if not i.before and not i.after and i.params is None)
        attributes = " ".join([*spec.attributes, *(a for i in items for a in i.attributes)])
        if spec.struct is not None:
            struct = spec.struct
            if "aligned" in attributes:
                if struct.names:
                    unit.structs.append(struct)
                names = tuple(n for n in plain if n not in struct.names)
                struct = struct._replace(names=names, alias=attributes)
            else:
                names = struct.names + tuple(n for n in plain if n not in struct.names)
                struct = struct._replace(names=names)
            unit.structs.append(struct)
            spec.base = (
                spec.base if spec.tag else f"{spec.base} {names[0] if names else ''}".strip()
            )
        elif "aligned" in attributes:
            raise NotUnderstood("typedef that changes the alignment of its type")
        elif spec.enum is not None:
            names = spec.enum.names + tuple(n for n in plain if n not in spec.enum.names)
            unit.enums.append(spec.enum._replace(names=names))
            spec.base = (
                spec.base if spec.tag else f"{spec.base} {names[0] if names else ''}".strip()
            )
        for item in items:
            if not item.name:
                raise NotUnderstood("typedef without a name")
            if item.params is not None:
                inside = ", ".join(p.type for p in item.params) or "void"
                ctype = join_type(item.type_of(spec.base), f"({inside})")
            else:
                ctype = item.type_of(spec.base)
            unit.typedefs.append(RawTypedef(item.name, ctype, line))


def read_declarations(source: Source, unit: Unit, markers: Markers) -> Chunks:
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
    while found := _CHUNK.match(text, at):
        start = at + len(found.group()) - len(found.group().lstrip())
        end = found.end()
        piece = text[start:end]
        at = end
        if piece in ("}", ";") or (piece[-1] == "{" and _LINKAGE.search(piece[:-1])):
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
        unit.skip_at(line, text[start : min(at, start + _SHOWN)], reason)
    if text[at:].strip():
        unit.chunks += 1
        line += text.count("\n", counted, at)
        unit.skip_at(line, text[at : at + _SHOWN], reason)


def _balanced_end(text: str, at: int) -> int:
    depth = 1
    for found in _BRACE.finditer(text, at):
        depth += 1 if found.group() == "{" else -1
        if not depth:
            return found.end()
    return len(text)


__all__ = ["Chunks", "Markers", "RawEnum", "RawStruct", "read_declarations"]
