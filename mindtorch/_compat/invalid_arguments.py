"""Owns the text for a call that fits none of several signatures.

Written after the rules of torch/csrc/utils/invalid_arguments.cpp of torch 2.13, which reads the
signatures' texts: what has a default is called by the default's last word there, `*` is a name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .class_names import class_name


def invalid_combination(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Sequence[str]
) -> str:
    """The whole message, for one signature or several."""
    named = dict(reversed(list(kwargs.items())))  # the order of libstdc++'s hash table
    start = f"{name} received an invalid combination of arguments - "
    if len(options) == 1:
        option = _Option(options[0])
        unmatched = option.unmatched(named)
        if unmatched:
            return f"{start}got unrecognized keyword arguments: {', '.join(unmatched)}"
        fits = option.counts(args, named)
        kinds = option.marked(args, named) if fits else _kinds(args, named)
        return f"{start}got {kinds}, but expected {options[0]}"
    text = f"{start}got {_kinds(args, named)}, but expected one of:\n"
    for line in options:
        text += f" * {line}\n"
        option = _Option(line)
        if option.counts(args, named):
            if unmatched := option.unmatched(named):
                reason = f"some of the keywords were incorrect: {', '.join(unmatched)}"
            else:
                marked = option.marked(args, named)
                reason = f"some of the arguments have invalid types: {marked}"
            text += f"      didn't match because {reason}\n"
    return text


class _Option:
    """A signature as its text is read: pairs of a class and a name."""

    def __init__(self, text: str) -> None:
        pairs = (part.rpartition(" ") for part in text[1:-1].split(", "))
        self.arguments = [(kind or name, name) for kind, _, name in pairs]

    def counts(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        return len(args) + len(kwargs) == len(self.arguments)

    def unmatched(self, kwargs: Mapping[str, Any]) -> list[str]:
        start = max(0, len(self.arguments) - len(kwargs))
        last = [name for _, name in self.arguments[start:]]
        return [key for key in kwargs if key not in last]

    def marked(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """The classes of the arguments, those that do not fit between marks."""
        left, right = ("\33[31;1m", "\33[0m") if _terminal() else ("!", "!")
        good, plain = ("\33[32;1m", "\33[0m") if _terminal() else ("", "")
        parts = []
        for i, (kind, name) in enumerate(self.arguments[: len(args) + len(kwargs)]):
            value = args[i] if i < len(args) else kwargs[name]
            text = f"{name}=" * (i >= len(args)) + _kind(value)
            fits = _matches(kind, value)
            parts.append(f"{good}{text}{plain}" if fits else f"{left}{text}{right}")
        return f"({', '.join(parts)}{', ' * (not args and bool(parts))})"


def _terminal() -> bool:
    return os.isatty(1) and os.isatty(2)


def _matches(kind: str, value: Any) -> bool:
    name = class_name(value)
    if kind == "float":
        return name in ("float", "int", "long")
    return name in ("int", "long") if kind == "int" else name == kind


def _kind(value: Any) -> str:
    if not isinstance(value, list | tuple):
        return class_name(value)
    inside = ", ".join(class_name(v) for v in value)
    if isinstance(value, tuple):
        return f"{class_name(value)} of ({inside}{',' * (len(value) == 1)})"
    return f"{class_name(value)} of [{inside}]"


def _kinds(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    parts = [class_name(v) for v in args] + [f"{k}={class_name(v)}" for k, v in kwargs.items()]
    return f"({', '.join(parts)}{', ' * (not args and bool(parts))})"
