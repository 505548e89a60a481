"""The command `bench`: turns options into workloads, shows the times, compares and exits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aclnn_bindings.interface import atomic_write

from ... import bisect, choices, exits, op_names, pages, planted_faults, progress, render
from ...conformance.cases.case import DTYPES
from ...plurals import plural
from ...render import Block, Cell, Content, Grid, Heading, Line
from .options import BenchOptions

if TYPE_CHECKING:
    from .builds import BuildComparison
    from .roofline import Peaks
    from .runner import BenchRequest, WorkloadTiming
    from .statistics import TimeSpread
    from .verdict import TimeComparison
    from .workloads import Workload

FILE = choices.NewFile()
SOURCE = choices.OldFile()
SECONDS = choices.Seconds()
# Of one workload on one device: its reference, its clocks; rounds are many, and short.
_TIMEOUT = 600.0
_FLEET_SECONDS = 0.3
EPILOG = """\b
Examples:
  mindtorch-npu bench add matmul
  mindtorch-npu bench matmul --shapes 512x512,512x512 --dtype float16
  mindtorch-npu bench --set gpt-block --against torch
  mindtorch-npu bench add mul --json before.json
  mindtorch-npu bench add mul --against before.json --fail-on slower
  mindtorch-npu bench aclnnFoo --golden my_ops.py --against vendor:/opt/before/vendors/mine
  mindtorch-npu bench aclnnFoo --golden my_ops.py --against aclnnMul
  mindtorch-npu bench matmul add --device all --rounds 10 --fail-on slower

Three separate times: device (events around queued launches), host (queueing only), e2e (launch and
wait). --against torch and numpy compare e2e, all others every time. SAME means within 2 %. FASTER
and SLOWER are wrong in at most 1 of 1,000 runs: both sides take turns. A baseline file cannot take
turns, so there a difference is UNCLEAR when fewer than 10 samples were taken, or when other
programs used the cores in either run.

Exit codes: 0 timed, 1 a result was wrong, 2 usage, 3 environment, 4 slower and --fail-on slower
(with several devices: one is slow against the others), 5 nothing could be compared with --against
(with --fail-on slower: some workload could not), or a planted fault changed no launch."""


@click.command(epilog=EPILOG, cls=bisect.BisectCommand)
@click.argument("ops", nargs=-1, metavar="OPS…", shell_complete=op_names.complete)
@click.option("--set", "sets", multiple=True, help="A named set: gpt-block, resnet.")
@click.option("--from", "recording", type=SOURCE, metavar="FILE",
              help="Time each distinct launch of a recording, and their total.")  # fmt: skip
@click.option("--shapes", multiple=True, help="Shapes of the tensors, such as 1024x1024,1024x1024.")
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    type=choices.Word(DTYPES),
    metavar="D",
    help="Dtype of the tensors; default: that of the operator's sample.",
)
@click.option("--arg", "arguments", multiple=True, metavar="NAME=VALUE",
              help="Value of an argument other than a tensor: align_corners=True.")  # fmt: skip
@click.option("--device", type=choices.DeviceWords(), default="npu:0", show_default=True,
              help="npu:0; several devices (npu:0-7, all) are compared.")  # fmt: skip
@click.option("--ray", metavar="ADDRESS|auto", help="Time on every NPU of a Ray cluster.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True,
              help="With several devices: measurements of each workload per device.")  # fmt: skip
@click.option(
    "--journal", "book", type=choices.AppendedFile(), help="Record the run, for `report --merge`."
)
@choices.golden
@choices.kernel
@click.option("--home", type=click.Path(path_type=Path), help="The CANN toolkit to use.")
@click.option("--simulator", is_flag=True, help="Use the bundled simulator.")
@click.option("--cold", is_flag=True, help="Also measure end to end with cold caches.")
@click.option("--host", "host_only", is_flag=True,
              help="Measure only host overhead, on small shapes.")  # fmt: skip
@click.option("--against", metavar="torch|numpy|FILE|vendor:DIR|aclnnOther",
              help="Compare with torch, numpy, a baseline file, another build of the operator's "
                   "package, or an operator with the same parameters.")  # fmt: skip
@click.option("--fail-on", type=choices.Word(("slower",)), help="Exit with 4 when SLOWER.")
@bisect.option
@click.option(
    "--seconds",
    type=SECONDS,
    default=1.0,
    show_default=True,
    help="Time limit of each measurement, in seconds.",
)
@click.option("--peak", type=click.FloatRange(min=0, min_open=True), metavar="TFLOP/S",
              help="Stated peak of the product, for the share of it; default: that of 16-bit "
                   "products in the install's platform_config.")  # fmt: skip
@click.option("--json", "json_file", type=FILE,
              help="Write all numbers; usable as a baseline for --against.")  # fmt: skip
@click.option("--plot", type=FILE, help="Write a roofline plot (SVG).")
@click.option("--md", type=FILE, help="Write Markdown.")
@click.option("--html", type=FILE, help="Write a self-contained HTML page with the plot.")
@click.option("--prometheus", type=FILE, help="With several devices: write metrics for Prometheus.")
def bench(**values: Any) -> int:
    """Time operators: device, host and end to end, with spread, bandwidth and a comparison.

    Inputs are random normal. The result is verified before and after timing; an operator with a
    wrong result gets no times.
    """
    from ...conformance.run.engine import NothingSelectedError
    from .rivals import NoRivalError
    from .workloads import WorkloadError

    options = _bisecting(BenchOptions.of(values)) if bisect.active() else BenchOptions.of(values)
    try:
        with planted_faults.watch():
            code = _fleet(options) if _several(options) else _bench(options)
            unstruck = [] if options.fleet.ray else planted_faults.unstruck()
        return _unjudged(unstruck) if code == exits.OK and unstruck else code
    except (WorkloadError, NoRivalError, NothingSelectedError) as error:
        raise click.UsageError(str(error)) from None


def _bisecting(options: BenchOptions) -> BenchOptions:
    """The options of a bisect: SLOWER is bad."""
    if not options.against or _several(options):
        raise bisect.BisectUsageError("--git-bisect: give --against, and one device")
    return replace(options, fail_on="slower")


def _several(options: BenchOptions) -> bool:
    """Whether devices are held against each other, or a journal is asked for."""
    device = options.target.device
    many = device == "all" or any(c in device for c in ",-")
    if not (many or options.fleet.ray or options.fleet.book):
        if options.fleet.prometheus:
            raise click.UsageError("--prometheus: metrics are those of a fleet; add --device all")
        return False
    alone = {"against": options.against, "plot": options.output.plot, "cold": options.cold,
             "arg": options.workloads.arguments, "peak": options.peak}  # fmt: skip
    for name, value in alone.items():
        if value:
            raise click.UsageError(f"--{name}: of one device without --journal or --ray")
    return True


def _fleet(options: BenchOptions) -> int:
    """Every workload on every device; slow ones are named."""
    from ...conformance.record import state
    from ...conformance.run.pool import Setup
    from ...fleet import items
    from .item import KINDS, name_of

    home = str(options.target.home) if options.target.home else None
    path = options.fleet.book or state.default_path("bench")
    setup = Setup(options.target.device, home, options.target.simulator, str(path), _TIMEOUT,
                  recording=str(options.workloads.recording or ""))  # fmt: skip
    cases = list(dict.fromkeys(name_of(work) for work in _workloads(options)))
    kinds = ("host",) if options.host_only else KINDS
    seconds = min(options.seconds, _FLEET_SECONDS)
    what = " ".join(["bench", *options.workloads.ops, *options.workloads.sets])
    work = items.WorkItems(what, cases, setup, options.fleet.rounds,
                      {"kinds": kinds, "seconds": seconds}, options.fleet.ray)  # fmt: skip
    fleet, code = items.run(work, path, options.output.pages(options.fleet.prometheus))
    late = items.slow(fleet)
    if late and code == exits.OK and options.fail_on:
        click.echo(f"slow: {', '.join(late)}", err=True)
        return exits.REGRESSIONS
    return code


def _bench(options: BenchOptions) -> int:
    from .item import name_of
    from .runner import Bench, as_json

    works = _workloads(options)
    request = _request(options)
    environment = _environment(options)
    bench, builds = Bench(request), _builds(options, request, len(works))
    rows: list[WorkloadTiming] = []
    try:
        with progress.steps("timing", len(works)) as begin:
            for work in works:
                begin(name_of(work))
                rows.append(bench.row(work))
                if builds is not None and rows[-1].times:
                    builds.against(rows[-1])
    except KeyboardInterrupt:
        click.echo(f"interrupted after {len(rows)} of {len(works)} workloads", err=True)
    needs_peaks = not options.host_only and any(r.times for r in rows)
    peaks = bench.peaks(r.work.dtype for r in rows if r.times) if needs_peaks else None
    if peaks is not None:
        peaks = replace(peaks, nominal=_nominal_peaks(options, environment))
    if builds is not None:
        environment["against"] = str(builds.rival)
    against = environment.get("against", options.against or "")
    blocks = list(document(rows, environment, peaks, against))
    if options.workloads.recording:
        from . import recorded

        blocks += recorded.totals(options.workloads.recording, rows)
    render.show(blocks)
    if options.output.json_file:
        text = json.dumps(as_json(rows, environment, peaks), indent=1)
        atomic_write.write(options.output.json_file, text + "\n")
    if options.output.md:
        atomic_write.write(options.output.md, render.markdown(blocks))
    plot = _plot(rows, peaks, environment) if peaks is not None else ""
    if options.output.plot and plot:
        atomic_write.write(options.output.plot, plot)
    if options.output.html:
        page = pages.page("document.html", title="mindtorch-npu bench", lead="", blocks=blocks,
                          rest=pages.markup(plot))  # fmt: skip
        atomic_write.write(options.output.html, page)
    if len(rows) < len(works):
        return exits.INTERRUPTED
    code = _code(rows, options.fail_on, options.against)
    if code == exits.OK and options.workloads.recording:
        from ... import recording

        path = options.workloads.recording
        cut_off = recording.open(path).cut_off
        return _unjudged([f"{path}: {cut_off}"] if cut_off else [])
    return code


def _nominal_peaks(options: BenchOptions, environment: dict[str, Any]) -> dict[str, float]:
    """The product's stated peak by dtype, operations/s: --peak, else the install's."""
    from aclnn_bindings.install.platform_config import product_rate

    if options.peak is not None:
        return dict.fromkeys(DTYPES, options.peak * 1e12)
    rate = product_rate(Path(environment["install"]), environment["soc"])
    return {} if rate is None else dict.fromkeys(("float16", "bfloat16"), rate)


def _code(rows: Sequence[WorkloadTiming], fail_on: str | None, against: str | None) -> int:
    problems = [f"{r.work.name}: {r.problem}" for r in rows if r.problem]
    if problems:  # what is wrong has no times: of a bisect, which asks for them, no verdict
        unjudged = bisect.active() or all(r.blame for r in rows if r.problem)
        return _unjudged(problems) if unjudged else exits.PROBLEMS
    slower = [_described(r, c) for r in rows for c in r.verdicts.values() if c.word == "SLOWER"]
    if fail_on and slower:
        bisect.because(exits.REGRESSIONS, slower[0])
        return exits.REGRESSIONS
    alone = [r for r in rows if not r.verdicts] if against else []
    reasons = [f"{r.work.name}: {r.note or f'{against} has nothing to compare it with'}"
               for r in alone]  # fmt: skip
    if bisect.active():
        reasons += [
            _described(r, c) for r in rows for c in r.verdicts.values() if c.word == "UNCLEAR"
        ]
    return _unjudged(reasons) if fail_on or len(alone) == len(rows) else exits.OK


def _described(row: WorkloadTiming, comparison: TimeComparison) -> str:
    return f"{row.work.name}: {_verdict(comparison)}"


def _verdict(c: TimeComparison) -> str:
    return f"{c.word} ×{_ratio(c.ratio)} ({_ratio(c.low)}–{_ratio(c.high)})"


def _unjudged(reasons: Sequence[str]) -> int:
    for reason in reasons:
        click.echo(render.printable(f"not judged: {reason}"), err=True)
        bisect.because(exits.NOT_JUDGED, reason)
    return exits.NOT_JUDGED if reasons else exits.OK


def _workloads(options: BenchOptions) -> list[Workload]:
    from mindtorch.ops import OPS

    from ...conformance.run.engine import NothingSelectedError, find_ops
    from . import workloads

    values = workloads.parse_arguments(options.workloads.arguments)
    if values and not options.workloads.ops:
        raise click.UsageError("--arg: of named operators; name some")
    chosen_work: list[Workload] = []
    if options.workloads.recording:
        from . import recorded

        chosen_work += recorded.workloads_of(options.workloads.recording, _declared(options))
    dtypes = options.workloads.dtypes or ("",)
    for name in find_ops(options.workloads.ops, (), False):
        what = OPS[name] if name in OPS else _operator(name, options)
        plain = workloads.small if options.host_only or name not in OPS else workloads.default
        shapes = [workloads.parse_shapes(text) for text in options.workloads.shapes]
        for dtype in dtypes:
            works = [workloads.shaped(what, each, dtype) for each in shapes] or [plain(what, dtype)]
            chosen_work += [
                workloads.with_arguments(what, w, values) if values else w for w in works
            ]
    for name in options.workloads.sets:
        chosen_work += [w for d in dtypes for w in workloads.named_set(name, d)]
    if not chosen_work and options.workloads.recording:
        click.echo(f"not judged: {options.workloads.recording}: no launch can be timed", err=True)
        raise click.exceptions.Exit(exits.NOT_JUDGED)
    if not chosen_work:
        raise NothingSelectedError("nothing selected: name operators, or give --set")
    return chosen_work


def _operator(name: str, options: BenchOptions) -> Any:
    """An ACLNN operator of the install at hand; its first sample is what is timed."""
    from ...conformance.operators.find import subject
    from ...conformance.run.engine import NothingSelectedError
    from ...conformance.run.subject import UnknownSubjectError

    try:
        return subject(name, _declared(options))
    except UnknownSubjectError as error:
        raise NothingSelectedError(str(error)) from None


def _declared(options: BenchOptions) -> Any:
    """What the install at hand declares."""
    from ...conformance.run.engine import declarations
    from ...conformance.run.pool import Setup

    home = str(options.target.home) if options.target.home else None
    return declarations(Setup(options.target.device, home, options.target.simulator))


def _request(options: BenchOptions) -> BenchRequest:
    from . import rivals
    from .builds import rival_build
    from .runner import BenchRequest
    from .statistics import SamplingLimits

    against, stored = options.against or "", {}
    if rival_build(against) is not None:
        against = ""
    if against not in ("", "torch", "numpy"):
        against, stored = "", rivals.baseline(Path(against))
    kinds = ("host",) if options.host_only else ("device", "host", "e2e")
    limits = SamplingLimits(min(1.0, options.seconds), options.seconds)
    return BenchRequest(options.target.device, kinds, against, stored, limits, options.cold,
                  recording=options.workloads.recording)  # fmt: skip


def _builds(options: BenchOptions, request: BenchRequest, works: int) -> BuildComparison | None:
    """What times against a build or an operator, where --against names one."""
    from ...conformance.run.pool import Setup
    from .builds import BuildComparison, rival_build

    rival = rival_build(options.against or "")
    if rival is None:
        return None
    home = str(options.target.home) if options.target.home else None
    setup = Setup(options.target.device, home, options.target.simulator)
    return BuildComparison(rival, setup, request, works * len(request.kinds))


def _environment(options: BenchOptions) -> dict[str, Any]:
    from ...conformance.run.environment import snapshot
    from .targets import open_device

    device = options.target.device
    return snapshot(open_device(device, options.target.home, options.target.simulator), device)


_KINDS = (("device", "device µs"), ("host", "host µs"), ("e2e", "e2e µs"), ("cold", "cold µs"))


def document(
    rows: list[WorkloadTiming], environment: dict[str, Any], peaks: Peaks | None, against: str
) -> Iterator[Block]:
    """The times as blocks: one row a workload."""
    from ...conformance.run.environment import summary

    yield Line(Cell("bench", "strong"))
    yield Line(Cell(summary(environment), "dim"))
    timed = [r for r in rows if r.times]
    if timed:
        yield Heading("Times: median (p20–p80)")
        yield _times_grid(timed)
    if timed and (peaks is not None or any(r.verdicts or r.note for r in timed)):
        yield Heading("Rates")
        yield _rates_grid(timed, peaks)
    if peaks is not None:
        yield Line(
            Cell(
                f"peaks measured here: copy {peaks.bandwidth / 1e9:.3g} GB/s, products "
                + ", ".join(f"{d} {rate / 1e9:.3g}" for d, rate in peaks.products.items())
                + " GFLOP/s; above 100 % of copy means caches served it",
                "dim",
            )
        )
        if peaks.nominal:
            most = max(peaks.nominal.values()) / 1e12
            yield Line(Cell(f"of peak: share of the stated {most:.4g} TFLOP/s", "dim"))
    doubtful = [r for r in timed if r.doubt]
    if doubtful:
        yield Heading(f"Doubtful ({len(doubtful)})")
        yield Grid(("workload", "why"), [[r.work.name, Cell(r.doubt, "warn")] for r in doubtful])
    wrong = [r for r in rows if r.problem]
    if wrong:
        yield Heading(f"Not timed ({len(wrong)})")
        yield Grid(("workload", "reason"), [[r.work.name, Cell(r.problem, "bad")] for r in wrong])
    if against and any(r.verdicts for r in rows):
        yield Line(Cell(_counted(rows, against), "strong"))


def _times_grid(rows: list[WorkloadTiming]) -> Grid:
    kinds = [(k, label) for k, label in _KINDS if any(k in r.times for r in rows)]
    table: list[list[Content]] = []
    for row in rows:
        main = row.times.get("device") or next(iter(row.times.values()))
        table.append([
            row.work.name, *(_time(row.times.get(k)) for k, _ in kinds), _spread(main), str(main.n),
        ])  # fmt: skip
    columns = ("workload", *(label for _, label in kinds), "IQR/median", "n")
    return Grid(columns, table, frozenset(range(1, len(columns))))


def _rates_grid(rows: list[WorkloadTiming], peaks: Peaks | None) -> Grid:
    compared = any(r.verdicts or r.note for r in rows)
    table: list[list[Content]] = []
    for row in rows:
        cells: list[Content] = [row.work.name]
        if peaks is not None:
            roof = peaks.of(row.work.dtype)
            cells += [f"{row.bandwidth / 1e9:.3g}", f"{row.bandwidth / peaks.bandwidth:.0%}",
                      f"{row.rate / 1e9:.3g}", f"{row.rate / roof:.0%}"]  # fmt: skip
            nominal = peaks.nominal.get(row.work.dtype)
            cells += [f"{row.rate / nominal:.1%}" if nominal else "–"] if peaks.nominal else []
        table.append(cells + (_against(row) if compared else []))
    columns = ["workload"]
    columns += ["GB/s", "of copy", "GFLOP/s", "of product"] if peaks is not None else []
    columns += ["of peak"] if peaks is not None and peaks.nominal else []
    numbers = frozenset(range(1, len(columns)))
    columns += ["against", "verdict"] if compared else []
    return Grid(columns, table, numbers)


def _spread(times: TimeSpread) -> Content:
    """IQR over the median; of few samples, how many they are."""
    if times.few:
        return Cell(plural(times.n, "sample"), "warn")
    return Cell(f"{times.spread:.0%} NOISY", "warn") if times.noisy else f"{times.spread:.0%}"


def _time(times: TimeSpread | None) -> Content:
    """`12.3 (11.9–13.0)`: median, p20 and p80; of few samples the median alone."""
    if times is None:
        return Cell("-", "dim")
    if times.few:
        return _short(times.median)
    return f"{_short(times.median)} ({_short(times.p20)}–{_short(times.p80)})"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


_WORDS = {"FASTER": "good", "SLOWER": "bad", "UNCLEAR": "warn", "SAME": ""}


def _against(row: WorkloadTiming) -> list[Content]:
    if not row.verdicts:
        return ["-", Cell(row.note or "-", "dim")]
    kind = "e2e" if "e2e" in row.verdicts else next(iter(row.verdicts))
    c = row.verdicts[kind]
    style: Any = _WORDS[c.word]
    return [f"{kind} {_short(row.rival[kind].median)}", Cell(_verdict(c), style)]


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _counted(rows: list[WorkloadTiming], against: str) -> str:
    words = [c.word for r in rows for c in r.verdicts.values()]
    counts = ", ".join(f"{words.count(w)} {w}" for w in _WORDS if w in words)
    return f"against {against}: {counts} (× is our time over theirs)"


def _plot(rows: list[WorkloadTiming], peaks: Peaks, environment: dict[str, Any]) -> str:
    from ...conformance.run.environment import summary
    from .roofline import Point, svg

    points = [
        Point(f"{r.work.op} {r.work.label or r.work.dtype}".strip(),
              r.cost.flops / max(r.cost.nbytes, 1), r.rate)
        for r in rows if r.times.get("device")
    ]  # fmt: skip
    return svg(points, peaks, f"roofline · {summary(environment)}")
