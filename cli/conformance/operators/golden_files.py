"""Owns references of one's own: files, folders and entry points that say what operators compute.

`MINDTORCH_GOLDEN` (`check --golden` sets it) names them, joined by `:`; after a file, the name of
one of its functions may stand in the same way (`ops.py:swiglu`). Each process that judges loads
them once.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from aclnn_bindings.install import simulated
from aclnn_bindings.interface.signature import Kind

from ...spec.errors import DeclarationError
from ...spec.infer import assumed, inferred_row, results_of
from ...spec.row import ROWS, Row
from ..run.custom_reference import guarded
from ..run.reference import OWN_MODULE
from .kit_specs import SpecReference, classes

VARIABLE: Final = "MINDTORCH_GOLDEN"
ENTRY_POINTS: Final = "mindtorch_npu.operators"
_PREFIX: Final = "aclnn"
_MOST_FILES: Final = 200


class GoldenError(DeclarationError):
    """A file of references that can't be used; the message names the file and says why."""


def named() -> tuple[str, ...]:
    """What the environment names: files and folders, each with its function if it has one."""
    places: list[str] = []
    for part in os.environ.get(VARIABLE, "").split(os.pathsep):
        if part.isidentifier() and places and not Path(part).exists():
            places[-1] += f":{part}"
        elif part:
            places.append(part)
    return tuple(places)


def export(paths: tuple[str, ...]) -> None:
    """Let this process and its children take references from these places too."""
    for path in paths:
        source, _ = split(path)
        if not Path(source).exists():
            raise GoldenError(f"--golden {path}: no such file or folder")
        if not any(_files(Path(source))):
            raise GoldenError(f"--golden {path}: the folder holds no Python file of references")
    absolute = [_absolute(p) for p in paths]
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys((*named(), *absolute)))


def with_sources(where: Mapping[str, Any]) -> dict[str, Any]:
    """A place with the references and kernels that are named here, for lines that run a case
    again."""
    sources = {"golden": list(named()), "kernels": list(simulated.kernels())}
    return {**where, **{name: files for name, files in sources.items() if files}}


def described(operator: str) -> dict[str, str]:
    """The path and digest of the reference that an operator has of a person's own; {} for none."""
    if not named():
        return {}
    state = loaded()
    source = state.sources.get(operator) or state.sources.get("")
    if source is None:
        return {}
    path = Path(source)
    is_file = path.is_file()
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if is_file else ""
    return {"source": source, "sha256": digest}


def split(text: str) -> tuple[str, str]:
    """`my_ops.py:rms` -> the file and the function, "" where none is named."""
    source, sign, function = text.rpartition(":")
    return (source, function) if sign and function.isidentifier() else (text, "")


def _absolute(text: str) -> str:
    source, function = split(text)
    path = str(Path(source).resolve())
    if os.pathsep in path:
        raise GoldenError(f"--golden {text}: a path may not hold {os.pathsep!r}")
    return f"{path}:{function}" if function else path


class Loaded:
    """References that were loaded: rows with domains, and bare functions by operator."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.functions: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.declaring: set[str] = set()  # sources with at least one

    def take(self, module: ModuleType, source: str, function: str) -> None:
        """Rows that a module declared, and its functions that are named for an operator."""
        if function and not callable(getattr(module, function, None)):
            raise GoldenError(f"{source}: no function {function!r}")
        if function:
            name = function if function.startswith(_PREFIX) else ""
            self.functions[name] = getattr(module, function)
            self.sources[name] = source
            self.declaring.add(source)
            return
        for name, spec in classes(module):
            self.functions[name] = SpecReference(name, spec)
            self.sources[name] = source
            self.declaring.add(source)
        for name, value in vars(module).items():
            if name.startswith(_PREFIX) and callable(value) and value.__module__ == module.__name__:
                self.functions[name] = value
                self.sources[name] = source
                self.declaring.add(source)


_STATE: dict[str, Loaded] = {}


def loaded() -> Loaded:
    """The references that the environment names, loaded once in this process."""
    key = os.environ.get(VARIABLE, "")
    if key not in _STATE:
        _STATE[key] = _load()
    return _STATE[key]


def golden_row(signature: Any) -> Row | None:
    """The row that a person's own file gives for an operator; None without one."""
    local = loaded()
    if (row := local.rows.get(signature.name)) is not None:
        repeat = row.rule.draws is None
        lists = _lists(signature, row.renamed.get(signature.name, {}), row.declaration.outs)
        return replace(row, reference=guarded(row.reference, lists, repeat))
    function = local.functions.get(signature.name) or local.functions.get("")
    if isinstance(function, SpecReference):
        function = function.bound(signature)
    if function is None:
        return None
    outs = [p.name for p in results_of(signature, function)]
    return inferred_row(signature, guarded(function, _lists(signature, {}, outs), True))


def assumptions(names: Iterable[str], declared: Any) -> dict[str, tuple[str, ...]]:
    """What was assumed, a line for each parameter, of operators whose reference is a bare function
    and declares nothing. `declared`: the install's operators."""
    local = loaded()
    bare = [n for n in names if n not in local.rows and declared is not None
            and n in declared.ops and (n in local.functions or "" in local.functions)]  # fmt: skip
    rows = {name: golden_row(declared.ops[name]) for name in bare}
    return {name: tuple(assumed(row.declaration)) for name, row in rows.items() if row is not None}


def _lists(signature: Any, renamed: Mapping[str, str], outs: Iterable[str]) -> list[bool]:
    """Which results are lists of tensors."""
    kinds = {renamed.get(p.name, p.name): p.kind for p in signature.params}
    return [kinds.get(name) is Kind.TENSOR_LIST for name in outs]


def files() -> tuple[str, ...]:
    """The files of references and, beside them, the Python files that they may import."""
    loaded()
    places = [Path(source) for source, _ in map(split, named())]
    folders = {str(p if p.is_dir() else p.parent) for p in places}
    known = (getattr(m, "__file__", None) for m in list(sys.modules.values()))
    used = [f for f in known if f and any(f.startswith(d + os.sep) for d in folders)]
    beside = (str(f) for d in sorted(folders) for f in Path(d).rglob("*.py"))
    return tuple(dict.fromkeys((*map(str, places), *used, *islice(beside, _MOST_FILES))))


def _load() -> Loaded:
    state = Loaded()
    for entry in entry_points(group=ENTRY_POINTS):
        with _Declaring(state, entry.value):
            state.take(entry.load(), entry.value, "")
    for path, function in map(split, named()):
        for file in _files(Path(path)):
            with _Declaring(state, str(file)):
                state.take(_module(file), str(file), function)
        if not state.declaring.intersection(map(str, _files(Path(path)))):
            raise GoldenError(f"{path}: declares no reference: no @spec, no function aclnn…")
    return state


def _files(path: Path) -> Iterator[Path]:
    inside = (f for f in sorted(path.glob("*.py")) if not f.name.startswith("_"))
    yield from inside if path.is_dir() else (path,)


class _Declaring:
    """Rows that are declared inside belong to a file; they go before built-in ones."""

    def __init__(self, state: Loaded, source: str) -> None:
        self.state, self.source = state, source

    def __enter__(self) -> None:
        self.before = dict(ROWS)
        ROWS.clear()

    def __exit__(self, kind: Any, error: BaseException | None, _trace: object) -> None:
        rows_before = dict(ROWS)
        ROWS.clear()
        ROWS.update(self.before)
        if isinstance(error, DeclarationError):
            raise GoldenError(f"{self.source}: {error}") from error
        for name, row in rows_before.items():
            self.state.rows[name] = row
            self.state.sources[name] = self.source
            self.state.declaring.add(self.source)


def _module(file: Path) -> ModuleType:
    if file.exists() and not file.is_file():  # a pipe would be waited for
        raise GoldenError(f"{file}: a folder, a device, a pipe or a socket: name a file")
    name = f"{OWN_MODULE}{abs(hash(str(file)))}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise GoldenError(f"{file}: no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    except DeclarationError:
        raise
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise GoldenError(f"{file} can't be imported: {_last_lines(error, file)}") from error
    finally:
        sys.path.remove(str(file.parent))
    return module


def _last_lines(error: BaseException, file: Path) -> str:
    """The error with the line of the file that raised it."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    last = next((f for f in reversed(frames) if f.filename == str(file)), None)
    where = f" (line {last.lineno}: {last.line})" if last is not None else ""
    return f"{type(error).__name__}: {error}{where}"
