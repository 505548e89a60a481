"""Owns HTML: pages from templates, each one file that loads nothing, with blocks as a terminal has.

A page is readable without a script; what a script needs beside it, a long list, is packed.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ..render import printable

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE: Final = "mindtorch_npu.pages"


def page(template: str, **values: Any) -> str:
    """The page of a template; every text is escaped, and none moves a terminal's cursor."""
    return _environment().get_template(template).render(**values)


def part(template: str, **values: Any) -> str:
    """The markup of a template, for a page to take in as it is."""
    return markup(page(template, **values))


def markup(text: str) -> str:
    """Text that is markup already, of ours: it is not escaped again."""
    from markupsafe import Markup

    return Markup(text)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def plain(value: Any) -> Any:
        return printable(value) if isinstance(value, str) and type(value) is not Markup else value

    env = Environment(
        loader=PackageLoader(_PACKAGE), autoescape=True, undefined=StrictUndefined,
        finalize=plain, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    env.filters["kind"] = lambda block: type(block).__name__
    env.filters["packed"] = packed
    env.filters["embedded"] = embedded
    env.filters["log10"] = math.log10
    return env


def embedded(data: Any) -> str:
    """Data as JSON in a script, which no parser of HTML can mistake for markup."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    escaped = text.replace("<", "\\u003c").replace("\u2028", "\\u2028")
    return markup(escaped.replace("\u2029", "\\u2029"))


def packed(data: Any) -> str:
    """Data as base64 of zlib of JSON: `unpacked` of unpack.js reads it in a page."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    deflated = zlib.compress(text.encode("utf-8", "backslashreplace"), 9)
    return base64.b64encode(deflated).decode("ascii")
