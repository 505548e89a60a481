"""Owns answers to `git bisect run`: an exit code and a sentence for a commit, a page of them all.

git's codes (git-bisect(1), "Bisect run"): 0 good, 1 bad, 125 skip, 128 and above end the bisect.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from . import exits
from .plurals import plural
from .render import Block, Cell, Grid, Heading, Line, Style, printable

GOOD: Final = 0
BAD: Final = 1
SKIP: Final = 125
STOP: Final = 128
_WORDS: Final[dict[int, tuple[str, Style]]] = {
    GOOD: ("good", "good"), BAD: ("bad", "bad"), SKIP: ("skip", "warn"), STOP: ("stop", "bad"),
}  # fmt: skip
_ANSWERS: Final = {exits.OK: GOOD, exits.PROBLEMS: BAD, exits.REGRESSIONS: BAD,
                   exits.INTERRUPTED: exits.INTERRUPTED}  # fmt: skip
_REASONS: Final = "mindtorch_npu.bisect.reasons"
_ACTIVE: Final = "mindtorch_npu.bisect"
_STORE: Final = "mindtorch-npu-bisect.jsonl"
_MOST_COMMITS: Final = 500


class BisectUsageError(click.UsageError):
    """A mistake in the command, which is the same at every commit: the bisect ends."""


def _ask(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.meta[_ACTIVE] = value


option = click.option(
    "--git-bisect", is_flag=True, expose_value=False, callback=_ask, is_eager=True,
    help="Exit as `git bisect run` expects: 0 good, 1 bad, 125 skip. --html then writes a page of "
    "the whole bisect.",
)  # fmt: skip


def active() -> bool:
    """Whether the running command answers `git bisect run`."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(_ACTIVE))


def because(code: int, reason: str) -> None:
    """Note why the running command ends with an exit code; the first reason of a code counts."""
    ctx = click.get_current_context(silent=True)
    if ctx is not None:
        ctx.meta.setdefault(_REASONS, {}).setdefault(code, reason)


@dataclass(frozen=True, slots=True)
class BisectAnswer:
    """A commit's exit code for git, and why."""

    code: int
    reason: str

    def sentence(self) -> str:
        word = _WORDS.get(self.code, (f"exit {self.code}", "bad"))[0]
        return f"git bisect: {word} ({self.code}): {self.reason}"


class BisectCommand(click.Command):
    """A command that with --git-bisect answers for the commit that is checked out."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:  # fmt: skip
        bisecting = "--git-bisect" in args
        try:
            return self.context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if not bisecting:
                raise
            code = STOP if isinstance(error, click.NoSuchOption) else SKIP
            _finish(BisectAnswer(code, error.format_message()), None)
            raise click.exceptions.Exit(code) from None

    def context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:  # fmt: skip
        """click's make_context; UsageError for words that it does not take."""
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        if not ctx.meta.get(_ACTIVE):
            return super().invoke(ctx)
        page: Path | None = ctx.params.get("html")
        ctx.params.update({"html": None} if page else {})
        answer = self._answer(ctx)
        _finish(answer, page)
        return answer.code

    def _answer(self, ctx: click.Context) -> BisectAnswer:
        try:
            code = super().invoke(ctx)
        except BisectUsageError as error:
            return BisectAnswer(STOP, error.format_message())
        except click.ClickException as error:
            return BisectAnswer(SKIP, error.format_message())
        except Exception as error:  # whatever ends the command, this commit has no verdict
            return BisectAnswer(SKIP, f"{type(error).__name__}: {error}")
        reasons: dict[int, str] = ctx.meta.get(_REASONS, {})
        plain = "every verdict is a pass" if code == exits.OK else f"exit code {code}, see above"
        return BisectAnswer(_ANSWERS.get(code, SKIP), reasons.get(code, plain))


def _finish(answer: BisectAnswer, page: Path | None) -> None:
    click.echo(printable(answer.sentence()), err=True)
    if page is None:
        return
    try:
        history = _record(answer)
        _write(page, history)
    except subprocess.CalledProcessError as error:
        click.echo(f"error: {page} is not written: {error.stderr.strip()}", err=True)
    except OSError as error:
        click.echo(f"error: {page} is not written: {error}", err=True)


def _git(*words: str) -> str:
    return subprocess.run(
        ("git", *words), capture_output=True, text=True, errors="replace", check=True
    ).stdout.strip()


@dataclass(frozen=True, slots=True)
class BisectStep:
    """What was answered for a commit; `bisect` tells one bisect of the repository from another."""

    bisect: str
    commit: str
    code: int
    reason: str


def _record(answer: BisectAnswer) -> list[BisectStep]:
    """Append to the repository's record; the steps of this bisect, this one last."""
    start = Path(_git("rev-parse", "--git-path", "BISECT_START"))
    mark = str(start.stat().st_mtime_ns) if start.exists() else "none"
    store = Path(_git("rev-parse", "--git-path", _STORE))
    step = BisectStep(mark, _git("rev-parse", "HEAD"), answer.code, answer.reason)
    with store.open("a") as file:
        file.write(json.dumps(asdict(step)) + "\n")
    steps = [BisectStep(**json.loads(line)) for line in store.read_text().splitlines()]
    return [one for one in steps if one.bisect == mark]


def _ends(steps: Sequence[BisectStep]) -> tuple[str, list[str]]:
    """The newest bad commit and the good ones, this step's answer included."""
    refs = dict(
        line.split(" ", 1)[::-1]
        for line in _git("for-each-ref", "--format=%(objectname) %(refname)", "refs/bisect")
        .splitlines()
    )  # fmt: skip
    good = [sha for name, sha in refs.items() if "/good-" in name]
    bad = refs.get("refs/bisect/bad", "HEAD")
    last = steps[-1]
    return (
        (last.commit, good)
        if last.code == BAD
        else (bad, good + [last.commit] * (last.code == GOOD))
    )


def _commits(steps: Sequence[BisectStep]) -> list[tuple[str, str, str]]:
    """Commit, its short name and subject: of all that the bisect began with, oldest first."""
    log = [line.split() for line in _git("bisect", "log").splitlines() if line.startswith("# ")]
    marks = [(words[1].rstrip(":"), words[2].strip("[]")) for words in log if len(words) > 2]
    first = next((sha for word, sha in marks if word == "bad"), "HEAD")
    goods = [sha for word, sha in marks if word == "good"][:1]
    listed = _git("log", "--reverse", f"--max-count={_MOST_COMMITS}", "--format=%H%x00%h%x00%s",
                  first, *(f"^{sha}" for sha in goods))  # fmt: skip
    rows = [tuple(line.split("\0")) for line in listed.splitlines()]
    return [(sha, short, subject) for sha, short, subject in rows] or [
        (step.commit, step.commit[:9], "") for step in steps
    ]


def document(steps: Sequence[BisectStep]) -> Iterator[Block]:
    """The whole bisect as blocks: where it stands, then every commit with its answer."""
    bad, good = _ends(steps)
    left = _git("rev-list", bad, *(f"^{sha}" for sha in good)).split()
    by_commit = {step.commit: step for step in steps}
    if len(left) == 1:
        subject = _git("log", "-1", "--format=%h %s", left[0])
        yield Line(Cell(f"first bad commit: {subject}", "bad"))
    else:
        yield Line(Cell(f"{plural(len(left), 'commit')} may be the first bad one", "warn"))
    yield Heading(f"Commits, oldest first; {len(by_commit)} of them ran")
    rows: list[list[Any]] = []
    for sha, short, subject in _commits(steps):
        step = by_commit.get(sha)
        word, style = _WORDS.get(step.code, ("stop", "bad")) if step else ("not run", "dim")
        rows.append([short, Cell(word, style), subject, step.reason if step else ""])
    yield Grid(("commit", "answer", "subject", "why"), rows)


def _write(path: Path, steps: Sequence[BisectStep]) -> None:
    from aclnn_bindings.interface import atomic_write

    from . import pages

    atomic_write.write(path, pages.page("document.html", title="mindtorch-npu git bisect", lead="",
                                 blocks=list(document(steps)), rest=""))  # fmt: skip
