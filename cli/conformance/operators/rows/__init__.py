"""The spec rows by family, a module or folder each, which declare their rows when imported.

`declare` imports those that name an operator, `declare_all` all of them.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

from ....spec.row import ROWS
from ..row import SPECS, spec_of

# An operator's name in a module's text, such as aclnnAdd or the formatted aclnnPad{rank}d.
_NAME: Final = re.compile(r"\bacl\w*(?:\{\w+\}\w*)*\{?")


def declare(*operators: str) -> None:
    """Declare the rows of these operators, if there are any."""
    _import(dict.fromkeys(module for name in operators for module in _modules_of(name)))


@cache
def declare_all() -> None:
    """Declare every row."""
    _import(_names())


def _import(modules: Iterable[str]) -> None:
    absent = [module for module in modules if module not in sys.modules]
    for module in absent:
        import_module(module)
    if absent:
        SPECS.update({name: spec_of(row, name) for name, row in ROWS.items()
                      if name not in SPECS and row.module.startswith(__name__)})  # fmt: skip


@cache
def _modules_of(operator: str) -> tuple[str, ...]:
    """The modules whose text names an operator."""
    return tuple(module for module, (whole, formatted) in _names().items()
                 if operator in whole or formatted.fullmatch(operator))  # fmt: skip


@cache
def _names() -> dict[str, tuple[frozenset[str], re.Pattern[str]]]:
    """The names in the text of each module, and a pattern of those that it formats."""
    return {module: _named(text) for module, text in _sources()}


def _named(text: str) -> tuple[frozenset[str], re.Pattern[str]]:
    names = set(_NAME.findall(text))
    formatted = (re.sub(r"\{(\w+\}|$)", r"\\w*", name) for name in names if "{" in name)
    whole = frozenset(name for name in names if "{" not in name)
    return whole, re.compile("|".join(sorted(formatted)) or "(?!)")


def _sources() -> Iterator[tuple[str, str]]:
    """The modules below this package with their text, in order."""
    folder = Path(__file__).parent
    for file in sorted(folder.rglob("[!_]*.py")):
        parts = file.relative_to(folder).with_suffix("").parts
        yield ".".join((__name__, *parts)), file.read_text("utf-8")
