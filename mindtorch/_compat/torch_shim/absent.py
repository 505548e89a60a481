"""Owns what is said, and remembered, when a program asks torch for a name that is not here."""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import cached_property
from types import ModuleType
from typing import Any, TypeVar, cast

ErrorT = TypeVar("ErrorT", bound=Exception)
_REQUESTS: Counter[str] = Counter()
_MACHINERY = ("<frozen importlib", "importlib/__init__.py", __file__)
_NOT_THERE = "mindtorch, which stands in for torch here, does not have it"


def absent_counts() -> dict[str, int]:
    """Names that were asked for and are absent, with how often; those asked most come first."""
    return dict(_REQUESTS.most_common())


def report(where: str) -> None:
    """Write what was asked for and is absent, one `count name` a line; - is standard error.

    A link is not followed, but for the system's own: it may lead to a file that was not named.
    """
    lines = "".join(f"{count} {name}\n" for name, count in absent_counts().items())
    if where == "-":
        sys.stderr.write(lines)
        return
    try:
        with open(where, "a", encoding="utf-8", opener=_without_links) as file:
            file.write(lines)
    except OSError as error:
        sys.stderr.write(f"absent names are not written to {where}: {error.strerror}\n{lines}")


def _without_links(path: str, flags: int) -> int:
    of_system = path.startswith(("/dev/", "/proc/"))
    return os.open(path, flags | os.O_NOFOLLOW * (not of_system), 0o666)


class AbsentNameError(AttributeError):
    """A name of torch that mindtorch lacks: torch's text; who asked and what is near as a note.

    Python's traceback shows the note. The class says that it is an AttributeError, as torch's is.
    """

    def __init__(self, full_name: str, module: ModuleType, name: str, asker: str):
        super().__init__(f"module '{full_name}' has no attribute '{name}'", name=name, obj=module)
        self.full_name, self.module, self.asker = f"{full_name}.{name}", module, asker

    def _notes(self) -> list[str]:
        return [text(self.full_name, self.asker, nearest(self.module, self.name or ""))]

    # Written when it is read: `hasattr` asks much and reads nothing.
    __notes__ = cast("list[str]", cached_property(_notes))


AbsentNameError.__name__ = AbsentNameError.__qualname__ = "AttributeError"
AbsentNameError.__module__ = "builtins"


def absent(module: ModuleType, full_name: str, name: str) -> Exception:
    """The error for `full_name.name`; an ImportError for a `from … import`, which drops others.

    A name with two underscores on each side belongs to Python, not to torch.
    """
    if name.startswith("__"):
        return AttributeError(f"module '{full_name}' has no attribute '{name}'")
    full = f"{full_name}.{name}"
    _REQUESTS[full] += 1
    asker, imports = _asker()
    if not imports:
        return AbsentNameError(full_name, module, name, asker)
    error = ImportError(
        f"cannot import name {name!r} from {full_name!r} ({module.__file__})", name=full_name
    )
    return _noted(error, text(full, asker, nearest(module, name)))


def absent_module(full_name: str) -> ModuleNotFoundError:
    """The error for `import full_name`."""
    _REQUESTS[full_name] += 1
    parent, _, name = full_name.rpartition(".")
    module = sys.modules.get(parent)
    near = nearest(module, name) if module is not None else ""
    error = ModuleNotFoundError(f"No module named {full_name!r}", name=full_name)
    return _noted(error, text(full_name, _asker()[0], near))


def _noted(error: ErrorT, note: str) -> ErrorT:
    """The error with a line below its text in a traceback (Python 3.11 shows it)."""
    vars(error)["__notes__"] = [note]
    return error


def text(full_name: str, asker: str, near: str) -> str:
    """`torch.x (asked for by file:line): … does not have it; nearest: torch.y`."""
    return f"{full_name} (asked for by {asker}): {_NOT_THERE}" + (
        f"; nearest: {near}" if near else ""
    )


def nearest(module: ModuleType, name: str) -> str:
    """Names of the module, or of torch itself, that are spelled alike."""
    import difflib

    module_name = module.__name__.replace("mindtorch", "torch", 1)
    close = difflib.get_close_matches(name, dir(module), 2, 0.75)
    top = sys.modules.get("mindtorch")
    if not close and top is not None and name in dir(top):
        return f"torch.{name}"
    return ", ".join(f"{module_name}.{n}" for n in close)


def _asker() -> tuple[str, bool]:
    """Where the question came from, and whether it was a `from torch import name`."""
    frame: Any = sys._getframe(1)
    while frame is not None and _within(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return "Python", False
    return f"{frame.f_code.co_filename}:{frame.f_lineno}", _imports_from(frame)


def _within(path: str) -> bool:
    return path.startswith(_MACHINERY[0]) or path.endswith(_MACHINERY[1:]) or "torch_shim" in path


def _imports_from(frame: Any) -> bool:
    """Whether the frame executes IMPORT_FROM, whose error would say nothing of why."""
    import opcode

    code = frame.f_code.co_code
    return 0 <= frame.f_lasti < len(code) and code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]
