"""Owns the reading of C headers into `Declarations`; refuses to load or call anything.

The parser is imported when something has to be parsed: a warm cache needs none of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..signature import Declarations
from .cache import load
from .files import find_headers, read_all
from .tables import declarations


def parse_text(text: str | bytes, header: str = "header.h") -> Declarations:
    """The declarations of one header's text; what was not understood is in `skipped`."""
    from .tree import build

    return declarations(build({header: text}))


def parse_tree(folders: Iterable[str | os.PathLike[str]]) -> Declarations:
    """The declarations of all headers under some folders; nothing is read from a cache.

    A name found in two folders is taken from the first. Headers that cannot be read are in
    `skipped`. A single header's path stands for itself.
    """
    from .tree import build

    return declarations(build(*read_all(find_headers(folders))))


__all__ = ["find_headers", "load", "parse_text", "parse_tree"]
