"""Owns option types that know what is possible: words with suggestions, files that can be written.

A mistake is a usage error when options are parsed, before any device is touched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from aclnn_bindings.install import search, simulated
from aclnn_bindings.install.products import product_of
from aclnn_bindings.interface import catalog

from .conformance.cases import shard
from .foreign import leads_to_file

T = TypeVar("T")

_MOST_SECONDS = 2_000_000  # a wait of the system takes 2^31 milliseconds


def one_of(value: str, words: Iterable[str]) -> str:
    """What to say of a value that is none of `words`: the nearest of them, then all."""
    known = list(words)
    near = get_close_matches(value, known, 1, 0.5)  # `fp32` is that near to `float32`
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{hint}one of {', '.join(known)}"


class Word(click.Choice[str]):
    """One of `words`; anything else is refused with the nearest of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return str(value)
        self.fail(f"{value!r}: {one_of(str(value), self.choices)}", param, ctx)


class DeviceWords(click.ParamType[str]):
    """A device, several NPUs, or all of them; which of them are there, the install says later."""

    name = "DEVICE"
    _WORDS = re.compile(r"all|cpu|npu(:(all|\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*))?")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if self._WORDS.fullmatch(str(value)):
            return str(value)
        self.fail(
            f"{value!r}: expected npu:0, a range npu:0-7, a list npu:0,2-3, all, or cpu", param, ctx
        )


def program_reason(program: str, reason: str) -> str:
    """What to say of a program that does not start; a script is no program of the PATH."""
    if not os.path.isfile(program) or os.sep in program:
        return f"{program}: {reason}"
    start = "python " if program.endswith(".py") else "./"
    return f"{program}: no such program on the PATH; did you mean {start}{program}?"


class Product(click.ParamType[str]):
    """A product that the simulator can be: its name, a start of that less `Ascend` (310P), or what
    documents call it (A2, A3, 310p)."""

    name = "NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        names = simulated.products()
        if value and any(n.removeprefix("Ascend").startswith(str(value)) for n in names):
            return str(value)
        code = {"a2": "910b", "a3": "A3"}.get(str(value).lower(), str(value).lower())
        known = (name for name in names if product_of(name) == code)
        return next(known, "") or Word(names).convert(value, param, ctx)


class ShardType(click.ParamType[shard.CaseShard]):
    """A shard such as `3/8`."""

    name = "I/N"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> shard.CaseShard:
        if isinstance(value, shard.CaseShard):
            return value
        try:
            return shard.parse(str(value))
        except shard.ShardError as error:
            self.fail(str(error), param, ctx)


def filled(kind: type[T], values: Mapping[str, Any]) -> T:
    """A record of `kind` with those of click's values that are its fields."""
    names = [f.name for f in fields(cast(Any, kind)) if f.name in values]
    return kind(**{name: values[name] for name in names})


def _take_references(_ctx: click.Context, _param: click.Parameter, places: Sequence[str]) -> None:
    """Let this command and its workers take references from these places."""
    if not places:
        return
    from .conformance.operators.golden_files import GoldenError, export

    try:
        export(tuple(places))
    except GoldenError as error:
        raise click.UsageError(str(error)) from None


golden = click.option(
    "--golden", multiple=True, metavar="FILE[:FUNCTION]", expose_value=False,
    callback=_take_references,
    help="Take references from this file or folder, before the built-in ones; see "
    "docs/own_operators.md.",
)  # fmt: skip


def _bind_kernels(_ctx: click.Context, _param: click.Parameter, bindings: Sequence[str]) -> None:
    try:
        simulated.bind_kernels(bindings)
    except simulated.KernelBindingError as error:
        raise click.UsageError(f"--kernel {error}") from None


kernel = click.option(
    "--kernel", multiple=True, metavar="TYPE=FILE:NAME", expose_value=False,
    callback=_bind_kernels,
    help="On the simulator, compute a custom operator's type by this function of a .py or .so "
    "file; see docs/own_operators.md.",
)  # fmt: skip


def _choose_release(
    _ctx: click.Context, _param: click.Parameter, release: str | None
) -> str | None:
    """Let the simulator of this command and its children be a release."""
    if release is None:
        return None
    if catalog.version_of(release) is None:
        raise click.UsageError(f"--release {release}: {one_of(release, catalog.versions())}")
    os.environ[search.RELEASE] = release
    return release


release = click.option(
    "--release", metavar="VERSION", expose_value=False, callback=_choose_release,
    help="CANN release that the simulator is, such as 8.5.0: it lacks what that release lacks.",
)  # fmt: skip


class Seconds(click.FloatRange):
    """A time that a program can wait; no NaN, which no limit refuses."""

    def __init__(self, least: float = 0) -> None:
        super().__init__(min=least, min_open=not least)

    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not number <= _MOST_SECONDS:
            self.fail(f"{value} is no time of at most {_MOST_SECONDS:,}.", param, ctx)
        return number


def _claim(
    path: Path, param: click.Parameter | None, ctx: click.Context | None, is_output: bool
) -> None:
    """Refuse to write a file that another option writes or reads; devices and pipes are shared."""
    if ctx is None or param is None or (path.exists() and not path.is_file()):
        return
    files: dict[str, tuple[str, bool]] = ctx.meta.setdefault("mindtorch_npu.files", {})
    name = param.opts[0] if isinstance(param, click.Option) else param.human_readable_name
    other, writes = files.setdefault(os.path.realpath(path), (name, is_output))
    if other != name and (is_output or writes):
        verb = "writes" if writes else "reads"
        raise click.BadParameter(f"{path}: {other} {verb} it too: name another file", ctx, param)


class OldFile(click.Path):
    """A file that is there and will be read; no option of the same command writes it."""

    def __init__(self, readable: bool = True) -> None:
        super().__init__(dir_okay=False, exists=True, readable=readable, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        _claim(Path(str(path)), param, ctx, is_output=False)
        return path


class NewFile(click.Path):
    """A file that will be written: its folder exists and allows it. `dash`: `-` is stdout."""

    def __init__(self, dash: bool = False) -> None:
        super().__init__(dir_okay=False, path_type=Path, allow_dash=dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if self.allow_dash and str(path) == "-":
            return path
        folder = path.parent
        if not folder.is_dir():
            self.fail(f"{path}: its folder {folder} does not exist", param, ctx)
        if not os.access(path if path.exists() else folder, os.W_OK):
            self.fail(f"{path}: cannot be written", param, ctx)
        _claim(path, param, ctx, is_output=True)
        return path


class AppendedFile(NewFile):
    """A file that is written to where it lies, so that no link to one is followed."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        if leads_to_file(path):
            self.fail(f"{path}: a link to a file: name the file itself", param, ctx)
        return path
