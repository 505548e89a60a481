"""Owns what each mode of `check` is asked for: frozen records, and the options that fill them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from ... import choices, op_names
from ...choices import filled
from ...conformance.cases.case import DTYPES, FORMS, LAYOUTS, LEVELS
from ...conformance.cases.shard import CaseShard
from ...judge import STANDARDS
from ..report import Files

Decorator = Callable[[Any], Any]
FILE: Final = choices.NewFile()
SOURCE: Final = choices.OldFile()
SECONDS: Final = choices.Seconds()
NATURAL: Final = click.IntRange(min=0)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cases: the operators, then what restricts the cases of each."""

    ops: tuple[str, ...] = ()
    every: bool = False
    families: tuple[str, ...] = ()
    level: str = "quick"
    dtypes: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    recording: Path | None = None
    alone: bool = False
    seed: int = 0
    fresh_seeds: int = 0
    deterministic: bool = False
    shard: CaseShard = field(default_factory=CaseShard)


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Where cases run: the devices, and the install that they are devices of."""

    device: str
    home: Path | None
    simulator: bool
    soc: str | None = None

    def as_json(self) -> dict[str, Any]:
        """For the header of a journal; what a command needs to mean this target again."""
        home = str(self.home) if self.home else None
        where = {"device": self.device, "home": home, "simulator": self.simulator}
        return {**where, "soc": self.soc} if self.soc else where


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How many processes run cases, how long one may take, and whether a Ray cluster has them."""

    jobs: int | None = None
    timeout: float = 60.0
    ray: str | None = None


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Where the run is recorded and reported, and how much is shown."""

    journal: Path | None
    save: Path | None
    files: Files
    verbose: bool


NO_OUTPUT: Final = OutputOptions(None, None, Files(), False)


@dataclass(frozen=True, slots=True)
class CaseFileOptions:
    """A case file, which standards judge beside our rule and who decides; `design`: the operators'
    own cases too."""

    cases: Path
    sheet: str = ""
    standards: tuple[str, ...] = ()
    deciding: str = "ours"
    design: bool = False
    results: Path | None = None
    rerun: bool = False


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """A run. `contract`: of phase 1 alone; `minutes`: of soaking, if not 0; `compare`: devices
    vote; `against`: another build that runs the same cases; `environ`: of the workers, beside
    ours."""

    selection: Selection
    target: TargetOptions
    workers: WorkerOptions
    output: OutputOptions
    resume: Path | None = None
    issues: Path | None = None
    allow_unjudged: bool = False
    compare: bool = False
    contract: bool = False
    minutes: float = 0.0
    file: CaseFileOptions | None = None
    budget: float = 0.0
    against: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CampaignOptions:
    """A campaign: its folder, how long in all and in a round, and how large the folder may be."""

    folder: Path
    hours: float
    round_minutes: float
    megabytes: float
    target: TargetOptions
    workers: WorkerOptions
    allow_unjudged: bool = False

    def declared(self) -> dict[str, Any]:
        """What must be the same for a campaign to go on."""
        return {"hours": self.hours, "round_minutes": self.round_minutes, **self.target.as_json()}


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Whose names to print."""

    selection: Selection
    target: TargetOptions


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """Whose rules to print."""

    selection: Selection
    target: TargetOptions


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Which saved case to run again."""

    path: Path
    target: TargetOptions
    allow_unjudged: bool


def case_file(values: Mapping[str, Any]) -> CaseFileOptions | None:
    """The options of --cases; UsageError for one of them without it."""
    if values["cases"] is not None:
        return filled(CaseFileOptions, values)
    for name, word in _OF_CASE_FILE.items():
        if values[name]:
            raise click.UsageError(f"{word}: it goes with --cases")
    return None


_OF_CASE_FILE: Final = {"sheet": "--sheet", "standards": "--compare", "design": "--design",
                        "results": "--results", "rerun": "--rerun"}  # fmt: skip


def output(values: Mapping[str, Any]) -> OutputOptions:
    return OutputOptions(
        values["journal"], values["save"], filled(Files, values), values["verbose"]
    )


def apply(*groups: tuple[Decorator, ...]) -> Decorator:
    """One decorator that adds the options of all groups, in this order."""

    def decorate(function: Any) -> Any:
        for decorator in reversed([d for group in groups for d in group]):
            function = decorator(function)
        return function

    return decorate


OPERATORS: Final[tuple[Decorator, ...]] = (
    click.argument("ops", nargs=-1, metavar="OPS…", shell_complete=op_names.complete),
    click.option("--all", "every", is_flag=True, help="Check every operator."),
)
FAMILIES: Final[tuple[Decorator, ...]] = (
    click.option("--family", "families", multiple=True, metavar="F",
                 help="pointwise, matrix, nn, …"),
)  # fmt: skip
CASES: Final[tuple[Decorator, ...]] = (
    click.option("--level", type=choices.Word(LEVELS), default="quick", show_default=True),
    click.option("--dtype", "dtypes", multiple=True, type=choices.Word(DTYPES), metavar="D",
                 help="Only these dtypes."),
    click.option("--layout", "layouts", multiple=True, type=choices.Word(LAYOUTS), metavar="L",
                 help="Only these layouts."),
    click.option("--form", "forms", multiple=True, type=choices.Word(FORMS), metavar="F",
                 help="Only these forms: functional, grad, …"),
    click.option("--case", "only", multiple=True, metavar="ID", help="Run this case only."),
    click.option("--from", "recording", type=SOURCE, metavar="FILE",
                 help="Check each distinct launch of a recording of `run`."),
    click.option("--alone", is_flag=True,
                 help="Do not check the dependencies of the named operators."),
    click.option("--seed", type=NATURAL, default=0, show_default=True, help="Seed of the inputs."),
    click.option("--fresh-seeds", type=NATURAL, default=0, metavar="N",
                 help="Repeat with N more seeds."),
)  # fmt: skip
CASE_FILE: Final[tuple[Decorator, ...]] = (
    click.option("--cases", type=SOURCE, metavar="FILE",
                 help="Run the calls of a case file (.csv, .xlsx) of the vendor's test kit."),
    click.option("--sheet", default="", metavar="S", help="Sheet of --cases.  [default: first]"),
    click.option("--compare", "standards", multiple=True, type=choices.Word(STANDARDS),
                 metavar="NAME", help="Also judge --cases by this standard: "
                 + ", ".join(STANDARDS) + "."),
    click.option("--deciding", type=choices.Word(("ours", "standard")), default="ours",
                 show_default=True, help="Whose verdict on --cases counts."),
    click.option("--design", is_flag=True, help="Also run the operators' own cases."),
    click.option("--results", type=FILE, metavar="CSV", help="Write --cases with their results."),
    click.option("--rerun", is_flag=True,
                 help="Run only the rows that did not pass in --cases, a file of results."),
)  # fmt: skip
SHARD: Final[tuple[Decorator, ...]] = (
    click.option("--shard", type=choices.ShardType(), default="1/1", metavar="I/N",
                 help="Run part I of N; `report --merge` puts the parts together."),
)  # fmt: skip
INSTALL: Final[tuple[Decorator, ...]] = (
    click.option("--home", type=click.Path(path_type=Path), help="The CANN toolkit to use."),
    click.option("--simulator", is_flag=True, help="Use the bundled simulator."),
    choices.golden,
    choices.kernel,
)
SOC: Final[tuple[Decorator, ...]] = (
    click.option("--soc", type=choices.Product(), metavar="NAME",
                 help="Product that the simulator behaves as; default: Ascend910B2, or a "
                 "product that supports the operator."),
)  # fmt: skip
WORKERS: Final[tuple[Decorator, ...]] = (
    click.option("--ray", metavar="ADDRESS|auto",
                 help="Distribute cases over every NPU of a Ray cluster."),
    click.option("--jobs", type=click.IntRange(min=1),
                 help="Worker processes; default: the number of cores, at most 8."),
    click.option("--timeout", type=SECONDS, default=60.0, show_default=True,
                 help="Time limit of one case, in seconds."),
)  # fmt: skip
OUTPUT: Final[tuple[Decorator, ...]] = (
    click.option("--known-issues", "issues", type=SOURCE, help="TOML file of expected failures."),
    click.option(
        "--journal", type=choices.AppendedFile(), help="Where to record the run (JSON lines)."
    ),
    click.option("--save", type=click.Path(path_type=Path), help="Save failing cases here."),
    click.option("--html", type=FILE, help="Also write a self-contained HTML page."),
    click.option("--junit", type=FILE, help="Also write JUnit XML."),
    click.option("--md", type=FILE, help="Also write Markdown."),
    click.option("--json", "json_file", type=FILE, help="Also write the report as JSON."),
    click.option("-v", "--verbose", is_flag=True, help="One line for every case."),
)
DETERMINISTIC: Final[tuple[Decorator, ...]] = (
    click.option("--deterministic", is_flag=True,
                 help="Check instead that results do not depend on a repeated launch, on another "
                 "process, on the cores that share the work, on other rows of the batch."),
)  # fmt: skip
UNJUDGED: Final[tuple[Decorator, ...]] = (
    click.option("--allow-unjudged", is_flag=True,
                 help="Exit with 0 instead of 5 when some results could not be judged."),
)  # fmt: skip


def device(default: str, text: str) -> tuple[Decorator, ...]:
    """The option --device."""
    return (
        click.option(
            "--device", type=choices.DeviceWords(), default=default, show_default=True, help=text
        ),
    )


DEVICES: Final = device(
    "npu:0", "npu:0, npu:0-7, npu:0,2 or all: cases go to whichever is free."
)  # fmt: skip
ONE_DEVICE: Final = device("npu:0", "Where it runs.")
ALL_DEVICES: Final = device("all", "npu:0-7, npu:0,2 or all.")
