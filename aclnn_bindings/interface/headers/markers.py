"""Owns macros that stand in declarations: attributes to drop, types to put in their place."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from .patterns import re
from .raw import Macro, RawParam
from .tokenizer import tokenize
from .words import ATTRIBUTES, BUILTIN, MARKERS

_SIMPLE: Final = re.compile(r"[\w\s*,]*+\Z")
_LONGEST: Final = 10_000
# Attributes that a declaration must not lose.
_CARRIED: Final = ("aligned", "packed", "deprecated")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def _marks(macro: Macro, dropped: Container[str]) -> bool:
    """Whether a macro stands for attributes or storage words only, so that it hides no type."""
    tokens = tokenize(macro.body) if len(macro.body) < _LONGEST else ["?"]
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token in ATTRIBUTES:
            at = _past_bracket(tokens, at + 1, "()")
        elif token == "[" and tokens[at + 1 : at + 2] == ["["]:
            at = _past_bracket(tokens, at, "[]")
        elif token in dropped and tokens[at + 1 : at + 2] == ["("]:
            at = _past_bracket(tokens, at + 1, "()")
        elif token in MARKERS or token in dropped:
            at += 1
        else:
            return False
    return True


class Markers:
    """Macros as declarations see them: which words to drop and which to replace."""

    def __init__(self, macros: Mapping[str, Macro]) -> None:
        self.dropped: set[str] = set()
        self.replaced: dict[str, Macro] = {}
        # Parameters already read, by their text: headers repeat a few hundred of them.
        self.params: dict[str, RawParam] = {}
        waiting = dict(macros)
        while marking := [n for n, m in waiting.items() if _marks(m, self.dropped)]:
            self.dropped.update(marking)
            for name in marking:
                macro = waiting.pop(name)
                if any(w in macro.body for w in _CARRIED) or any(
                    w in self.replaced for w in macro.body.split()
                ):
                    self.replaced[name] = macro
            waiting = {
                n: m for n, m in waiting.items() if not self.dropped.isdisjoint(m.body.split())
            }
        for name, macro in macros.items():
            if name not in self.dropped and macro.params is None and _names_type(macro.body):
                self.replaced[name] = macro

    def expand(self, tokens: list[str], depth: int = 0) -> list[str]:
        """`tokens` with attribute macros removed or replaced, and type macros replaced."""
        if not any(t in self.dropped or t in self.replaced for t in tokens):
            return tokens
        out: list[str] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            macro = self.replaced.get(token)
            if macro is None and token not in self.dropped:
                out.append(token)
                continue
            if at < len(tokens) and tokens[at] == "(" and (not macro or macro.params is not None):
                at = _past_bracket(tokens, at, "()")
            if macro is not None and depth < 16 and len(out) < 1_000_000:
                body = [t for t in tokenize(macro.body) if t != token]
                out.extend(self.expand(body, depth + 1))
        return out


def _names_type(body: str) -> bool:
    """Whether a macro's text reads as a type: words and stars, the last word not a constant."""
    words = body.replace("*", " ").split()
    return (
        bool(words)
        and _SIMPLE.match(body) is not None
        and all(_NAME.fullmatch(w) for w in words)
        and (not words[-1].isupper() or len(words) > 1)
        and (len(words) > 1 or "*" in body or words[0] in BUILTIN or words[0].endswith("_t"))
    )


def _past_bracket(tokens: list[str], at: int, pair: str) -> int:
    """The index past the bracketed group that opens at `at`; `at` itself if none does."""
    depth = 0
    while at < len(tokens):
        depth += (tokens[at] == pair[0]) - (tokens[at] == pair[1])
        if depth <= 0 and tokens[at] != pair[1]:
            break
        at += 1
        if depth <= 0:
            break
    return at
