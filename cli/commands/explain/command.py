"""The command `explain`: says what codes, messages and logs of CANN mean, without a device."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from aclnn_bindings.diagnose.explanation import Explanation, explain as explanation_of
from aclnn_bindings.install import error_texts, search
from aclnn_bindings.install.error_texts import ErrorText

from ... import exits, render
from ...render import Block, Cell, Facts, Heading, Item, Items, Line

_LARGEST: Final = 16 * 1024 * 1024  # bytes of one log that are read, from its end
_LONGEST: Final = 16 * 1024  # characters of one line
EPILOG = """\b
Examples:
  mindtorch-npu explain 561103
  mindtorch-npu explain aclnnMatmul 161002
  mindtorch-npu explain EI0006
  mindtorch-npu explain ~/ascend/log/debug/plog
  python train.py 2>&1 | mindtorch-npu explain -

Exit codes: 0 explained, 2 usage, 3 nothing recognised."""


@click.command(epilog=EPILOG)
@click.argument("what", nargs=-1, required=True, metavar="CODE|FILE|-…")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.option("--md", "as_md", is_flag=True, help="Write Markdown.")
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="PATH",
    help="Also use the error texts of the toolkit at this path; default: the one found.",
)
@click.option("--all", "everything", is_flag=True, help="Show every cause; default: the first 5.")
def explain(
    what: tuple[str, ...], as_json: bool, as_md: bool, home: Path | None, everything: bool
) -> int:
    """Explain a status code, a message id, an operator's failure or a log: causes, what to do.

    CODE is a number (561103, HCCL's 11), a name (ACL_ERROR_RT_NO_DEVICE), an id (EZ9999) or any
    text of an error; several words are one text. FILE is a log, or a folder of plog files; `-`
    reads standard input. Needs no device and no CANN; an install's own texts
    (conf/error_manager/error_code.json) are shown beside the causes known here.
    """
    answer = explanation_of(_text(what), _texts(home))
    if as_json:
        click.echo(json.dumps(asdict(answer), indent=1, ensure_ascii=False))
    elif as_md:
        click.echo(render.markdown(document(answer, everything)), nl=False)
    else:
        render.show(document(answer, everything))
    return exits.OK if answer.findings else exits.NOTHING


def _texts(home: Path | None) -> Mapping[str, ErrorText]:
    """The error texts of the toolkit at `home`, else of the first one found that has some."""
    if home is not None:
        if not (texts := error_texts.read(home)):
            raise click.UsageError(f"{home}: no conf/error_manager/error_code.json below it")
        return texts
    steps = search.search(os.environ)
    roots = (step.install.root for step in steps if step.install is not None)
    return next(filter(None, map(error_texts.read, roots)), {})


def _text(what: Sequence[str]) -> str:
    parts = []
    for word in what:
        path = Path(word).expanduser()
        if word == "-":
            parts.append(sys.stdin.read() + "\n")
        elif "\n" not in word and len(word) < 4096 and path.exists():
            parts += [_end_of(file) + "\n" for file in _files(path)]
        else:
            parts.append(word + " ")
    return "".join(parts).rstrip(" ")


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    logs = sorted(path.rglob("*.log"), key=lambda log: log.stat().st_mtime)
    if not logs:
        raise click.UsageError(f"{path}: no *.log in this folder")
    return logs


def _end_of(file: Path) -> str:
    try:
        with file.open("rb") as log:
            log.seek(max(0, file.stat().st_size - _LARGEST))
            text = log.read(_LARGEST).decode("utf-8", "replace")
            return "\n".join(line[:_LONGEST] for line in text.split("\n"))
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from None


def _near(name: str) -> str:
    """The operators of the newest catalog that an unknown one may be meant to be."""
    from difflib import get_close_matches

    from aclnn_bindings.interface import catalog

    known = catalog.load(catalog.versions()[-1]).ops
    return "" if name in known else ", ".join(get_close_matches(name, list(known), 3, 0.8))


def document(answer: Explanation, everything: bool = False) -> Iterator[Block]:
    """What was read, then the causes."""
    reading = answer.reading
    facts = [
        ("codes", ", ".join(f"{number} {name}" for number, name in reading.codes)),
        ("results", ", ".join(f"{family} {number}" for family, number in reading.results)),
        ("message ids", ", ".join(reading.ids)),
        ("calls", ", ".join(reading.calls[:8])),
        ("shapes", ", ".join(reading.shapes)), ("dtypes", ", ".join(reading.dtypes)),
        ("chips", ", ".join(reading.socs)), ("devices", ", ".join(reading.devices)),
        ("releases", ", ".join(reading.releases)),
        ("exceptions", "; ".join(reading.exceptions)),
        ("called from", " < ".join(reversed(reading.frames))),
        ("inside CANN", ", ".join(reading.sources)),
    ]  # fmt: skip
    display = [(name, value) for name, value in facts if value]
    if display:
        yield Heading("Found")
        yield Facts(display)
    if answer.findings:
        yield from _causes(answer, everything)
    else:
        for name in reading.calls[:8]:
            if near := _near(name):
                yield Line(Cell(f"{name}: no known CANN declares it; did you mean {near}?", "warn"))
        yield Line(Cell("nothing here is a code, an id or a message that is known", "warn"))
    if answer.collect:
        yield Heading("The cause is not in this text, or not known: collect")
        yield Items([Item(what, []) for what in answer.collect])


def _causes(answer: Explanation, everything: bool) -> Iterator[Block]:
    causes = answer.findings if everything else answer.findings[:5]
    yield Heading("Likely causes")
    yield Items([
        Item(f.cause, [(label, text) for label, text in (
            ("from", f.evidence), ("do", f.fix), ("run", f.run), ("source", f.source)) if text])
        for f in causes
    ])  # fmt: skip
    if left := len(answer.findings) - len(causes):
        yield Line(Cell(f"{left} more with --all", "dim"))
