"""The command line of the mutation tests."""

import json
import random
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import click

from . import book, bugs as bug_books, findings, runner, score, tree
from .hunt import Verdict
from .judge import Judge
from .sites import Mutant


@click.group()
def main() -> None:
    """Plant faults into the simulator's kernels, one at a time, and see what `check` catches."""


_FILE = click.option("--file", "files", multiple=True, help="Only files that start like this.")
_KIND = click.option("--kind", "kinds", multiple=True, help="Only these kinds.")
_OP = click.option("--op", "ops", multiple=True, help="Only cases of these rows.")
_SAMPLE = click.option("--sample", default=0, help="Draw this many by --seed; 0: all.")
_SEED = click.option("--seed", default=0, show_default=True)
_BOOK = click.Path(exists=True, dir_okay=False, path_type=Path)
_KEY = click.option("--key", "keys", multiple=True, help="Only names that contain this.")


@main.command()
@_FILE
@_KIND
@_KEY
@_SAMPLE
@_SEED
@click.option("--jobs", default=2, show_default=True)
def build(
    files: tuple[str, ...], kinds: tuple[str, ...], keys: tuple[str, ...],
    sample: int, seed: int, jobs: int,
) -> None:  # fmt: skip
    """Build the instrumented simulator: the mutants in one install, switched at run time.

    All of them, or those that the options choose, which compile in a fraction of the time.
    """
    only: set[str] = set()
    if files or kinds or keys or sample:
        every = [m for kernel in tree.kernels() for m in kernel.mutants]
        fitting = _fitting(every, files, kinds, keys)
        only = {m.key for m in (runner.sampled(fitting, sample, seed) if sample else fitting)}
        if not only:
            raise click.ClickException("no mutant fits these options")
    mutants = tree.build(jobs, only)
    for kind, count in Counter(m.kind for m in mutants).most_common():
        click.echo(f"{count:6d} {kind}")
    click.echo(f"{len(mutants)} mutants in {len({m.file for m in mutants})} files")
    planted = {m.after for m in mutants}
    for bug in bug_books.load() if not only or "bug" in kinds else ():
        if bug.name not in planted:
            click.echo(f"left out, does not fit or does not compile: {bug.name}", err=True)


def _chosen(files: tuple[str, ...], kinds: tuple[str, ...], keys: tuple[str, ...]) -> list[Mutant]:
    return _fitting(tree.load(), files, kinds, keys)


def _fitting(
    mutants: Iterable[Mutant],
    files: tuple[str, ...],
    kinds: tuple[str, ...],
    keys: tuple[str, ...],
) -> list[Mutant]:
    return [
        m for m in mutants
        if (not files or any(m.file.startswith(f) for f in files))
        and (not kinds or m.kind in kinds) and (not keys or any(k in m.key for k in keys))
    ]  # fmt: skip


@main.command(name="list")
@_FILE
@_KIND
@_KEY
def list_(files: tuple[str, ...], kinds: tuple[str, ...], keys: tuple[str, ...]) -> None:
    """Print the mutants of the last build: kind and name."""
    for mutant in _chosen(files, kinds, keys):
        click.echo(f"{mutant.kind:12s} {mutant.key}")


@main.command()
@_FILE
@_KIND
@_KEY
@_OP
@_SAMPLE
@_SEED
@click.option("--most", default=300, show_default=True, help="Cases of quick per mutant; 0: all.")
@click.option("--full", default=0, help="After those, this many cases of --level full.")
@click.option("--jobs", default=1, show_default=True)
@click.option("--minutes", default=0.0, help="Stop after this long.")
@click.option("--name", default="run", show_default=True, help="Of the verdicts; resumes them.")
@click.option("-v", "--verbose", is_flag=True, help="One line for every mutant.")
def run(
    files: tuple[str, ...], kinds: tuple[str, ...], keys: tuple[str, ...],
    ops: tuple[str, ...], sample: int, seed: int,
    most: int, full: int, jobs: int, minutes: float, name: str, verbose: bool,
) -> None:  # fmt: skip
    """Hunt mutants: run the cases that reach each one until a case fails because of it."""
    mutants = runner.sampled(_chosen(files, kinds, keys), sample, seed)
    quick = runner.quick_map(jobs=jobs, ops=ops)
    found = runner.run(mutants, quick, book.where(name), jobs=jobs, seed=seed, most=most,
                       most_full=full, seconds=minutes * 60)  # fmt: skip
    verdicts = _followed(found, len(mutants), verbose)
    click.echo(score.summary(list(book.judged(verdicts, book.equivalents()))))


def _followed(found: Iterable[Verdict], total: int, verbose: bool) -> list[Verdict]:
    verdicts: list[Verdict] = []
    started = told = time.monotonic()
    for verdict in found:
        verdicts.append(verdict)
        if verbose:
            word = f"{verdict.state} {verdict.level}".strip()
            click.echo(f"{word:15s} {verdict.tried:4d} {verdict.kind:12s} {verdict.key} "
                       f"{verdict.case}")  # fmt: skip
        if time.monotonic() - told > 30:
            told = time.monotonic()
            click.echo(f"{len(verdicts)} of {total} after {told - started:.0f} s")
    return verdicts


@main.command(name="score")
@click.option("--book", "books", multiple=True, type=_BOOK, help="[default: the project's own]")
@click.option("--json", "out", required=True, type=click.Path(dir_okay=False, path_type=Path),
              help="Findings; a second run goes on where one ended.")  # fmt: skip
@click.option("--cases", default=300, show_default=True, help="Cases of quick per bug; 0: all.")
@click.option("--full", default=300, show_default=True, help="Then so many of --level full.")
@click.option("--enough", default=40, show_default=True,
              help="Cases that meet a bug which is caught, for its thickness.")  # fmt: skip
@click.option("--jobs", default=1, show_default=True)
@_OP
@click.option("--again", is_flag=True, help="Forget findings and what reaches what.")
@click.option("--floor", "floored", is_flag=True,
              help="Score the sample of floor.toml's [book]; exit 1 below that floor.")  # fmt: skip
def score_(
    books: tuple[Path, ...], out: Path, cases: int, full: int, enough: int, jobs: int,
    ops: tuple[str, ...], again: bool, floored: bool,
) -> None:  # fmt: skip
    """Build with the bugs of a book, and say of each whether `check` catches it."""
    planned = bug_books.load([b.absolute() for b in books] or bug_books.BOOKS)
    floor = score.book_floor()
    if floored:
        planned = random.Random(floor.seed).sample(planned, min(floor.count, len(planned)))
    tree.use(tree.BOOK)
    mutants, problems = tree.build_book([b for b in planned if not b.dead], jobs)
    found = {} if again else findings.read(out, planned)
    found |= {f.name: f for f in findings.left_out(planned, problems)}
    quick = runner.quick_map(again, jobs, ops)
    by_name = {bug.name: bug for bug in planned}

    def trier(judge: Judge) -> findings.Trier:
        return findings.Trier(judge, quick, by_name, cases=cases, full=full, enough=enough)

    left = [m for m in mutants if m.after not in found]
    findings.write(out, found)
    for finding in findings.hunted(left, trier, jobs):
        found[finding.name] = finding
        findings.write(out, found)
        click.echo(findings.line(finding))
    totals = findings.totals(found.values())
    click.echo(json.dumps(totals))
    problem = floor.problem(totals) if floored else ""
    if problem:
        raise click.ClickException(problem)


@main.command()
@click.option("--name", default="run", show_default=True, help="Of the verdicts.")
@click.option("--kind", "kinds", multiple=True, help="Only these kinds.")
def survivors(name: str, kinds: tuple[str, ...]) -> None:
    """Print the mutants that no case caught, by file and function."""
    verdicts = book.judged(book.read(book.where(name)).values(), book.equivalents())
    click.echo(score.survivors([v for v in verdicts if not kinds or v.kind in kinds]))


@main.command()
@click.option("--name", default="run", show_default=True, help="Of the verdicts.")
@click.option("--bugs", "scored", type=_BOOK, help="What `score` wrote of the project's books.")
@click.option("--words", default="", help="How these verdicts came about, for the page.")
def report(name: str, scored: Path | None, words: str) -> None:
    """Write the scores of a run down for the page: tests/mutation/scores.json."""
    verdicts = list(book.judged(book.read(book.where(name)).values(), book.equivalents()))
    bugs = findings.read(scored, bug_books.load()).values() if scored else ()
    score.write(verdicts, findings.states(bugs), words)
    click.echo(f"{score.SCORES}: {len(verdicts)} mutants")


@main.command()
@click.option("--minutes", default=3.0, show_default=True, help="Of hunting.")
@click.option("--jobs", default=2, show_default=True)
def sample(minutes: float, jobs: int) -> None:
    """Hunt the sample of floor.toml in a build of its own; exit 1 below the floor."""
    floor = score.floor()
    tree.use(tree.SAMPLE)
    every = [m for k in tree.kernels() for m in k.mutants if m.file in floor.files]
    chosen = runner.sampled(every, floor.count, floor.seed)
    tree.build(jobs, {m.key for m in chosen})
    mutants = runner.sampled(tree.load(), 0, floor.seed)
    quick = runner.quick_map(jobs=jobs, ops=floor.ops)
    found = runner.run(mutants, quick, book.where("sample"), jobs=jobs, seed=floor.seed,
                       most=floor.cases, seconds=minutes * 60)  # fmt: skip
    verdicts = list(book.judged(_followed(found, len(mutants), False), book.equivalents()))
    click.echo(score.survivors(verdicts))
    click.echo(score.summary(verdicts))
    problem = floor.problem(verdicts)
    if problem:
        raise click.ClickException(problem)
