"""Owns the split of C text into tokens; comments must be gone."""

from __future__ import annotations

from typing import Final

from .patterns import re

TOKEN: Final = re.compile(
    r"""[A-Za-z_$]\w*+|\.?\d(?:[eEpP][+-]|[\w.])*+|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'"""
    r"""|\.\.\.|::|<<=?|>>=?|->|[<>=!+\-*/&|^%]=|&&|\|\||\#\#|[^\s\w]"""
)


def tokenize(text: str) -> list[str]:
    """The C tokens of `text`, comments excluded."""
    return TOKEN.findall(text)
