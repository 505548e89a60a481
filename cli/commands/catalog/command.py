"""The command `catalog`: which CANN versions are known, and how one becomes known."""

from __future__ import annotations

import re
from pathlib import Path

import click

from aclnn_bindings import Declarations, Install, find_install
from aclnn_bindings.install import elf
from aclnn_bindings.interface import catalog as catalogs
from aclnn_bindings.interface.compact import compact, write
from aclnn_bindings.interface.headers import parse_tree
from aclnn_bindings.interface.releases import difference

from ... import exits, render

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
EPILOG = """\b
Examples:
  mindtorch-npu catalog make --home /usr/local/Ascend/ascend-toolkit/latest
  mindtorch-npu catalog make --headers ./include --version 8.3.RC1
  mindtorch-npu catalog make --base 2026-08
  mindtorch-npu probe --diff 8.3.RC1"""


@click.group()
def catalog() -> None:
    """Know CANN versions: what each declares, as data that every command reads."""


@catalog.command("list")
def list_() -> int:
    """List the catalogs, oldest CANN first, with what each declares and where it was read."""
    columns = ("version", "functions", "operators", "enums", "structs", "read from")
    rows = [(v, *_counts(catalogs.load(v)), catalogs.sources(v)) for v in catalogs.versions()]
    render.show([render.Grid(columns, rows, frozenset((1, 2, 3, 4)))])
    return exits.OK


@catalog.command(epilog=EPILOG)
@click.option("--home", type=FOLDER, help="The toolkit to read; default: the one found.")
@click.option("--headers", type=FOLDER, help="A folder of headers instead of a toolkit.")
@click.option("--version", help="The name of the release; default: read from the toolkit.")
@click.option("--base", metavar="VERSION", help="Store what differs from this catalog; dtypes and "
              "directions that headers leave open are read in it.")  # fmt: skip
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def make(
    home: Path | None, headers: Path | None, version: str | None, base: str | None,
    out: Path | None, force: bool,
) -> int:  # fmt: skip
    """Write the catalog of an install's headers, so that its version is known everywhere."""
    if home is not None and headers is not None:
        raise click.UsageError("give --home or --headers, not both")
    if headers is not None:
        declared, release, libraries = parse_tree([headers]), version, dict[str, str]()
        source = f"headers in {headers.name}"
    else:
        install = find_install(home)
        declared, release = parse_tree(install.include_dirs), version or install.version
        libraries, source = _libraries(install), f"headers of CANN {install.version or 'unknown'}"
    name = _named(release)
    if not declared.functions:
        raise click.UsageError(f"{headers or home}: no function is declared there")
    path = out or catalogs.user_folder() / f"{name}.json"
    if path.exists() and not force:
        raise click.UsageError(f"{path}: is there already; give --force to replace it")
    whole = compact(declared, path.stem, name, source, libraries)
    write(path, difference(catalogs.read(base), whole, base) if base else whole)
    catalogs.forget()
    functions, ops, enums, structs = _counts(declared)
    text = f"{functions} functions, {ops} operators, {enums} enums, {structs} structs"
    render.show([render.Line(f"{name}: {text}"), render.Line(f"written: {path}")])
    return exits.OK


def _named(release: str | None) -> str:
    if not release:
        raise click.UsageError("the install says no version: give --version, such as 8.3.RC1")
    if not re.fullmatch(r"\d+\.\d+[\w.-]*", release):
        raise click.UsageError(f"--version {release!r}: give a release, such as 8.3.RC1 or 9.1.0")
    return release


def _libraries(install: Install) -> dict[str, str]:
    """Function → the library that exports it; `libopapi.so` rather than `libopapi_math.so` and its
    like, which export parts of it again."""
    libraries: dict[str, str] = {}
    for library in sorted(install.libraries, key=lambda library: len(library.path.name)):
        for name in elf.read(library.path).exports:
            libraries.setdefault(name, library.path.name)
    return libraries


def _counts(declared: Declarations) -> tuple[str, str, str, str]:
    tables = (declared.functions, declared.ops, declared.enums, declared.structs)
    functions, ops, enums, structs = (f"{len(table):,}" for table in tables)
    return functions, ops, enums, structs
