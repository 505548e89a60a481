"""The command `check` and its modes: options become records, the runner does the work."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

from ... import bisect
from ...choices import filled
from . import options as opts
from .modes import CheckModes
from .options import apply, output

EPILOG = """\b
Examples:
  mindtorch-npu check add matmul index_put
  mindtorch-npu check --all --level quick
  mindtorch-npu check softmax --level full --dtype bfloat16 -v
  mindtorch-npu check aclnnRmsNorm aclnnFlashAttentionScore
  mindtorch-npu check aclnnRmsNorm matmul --deterministic
  mindtorch-npu check contract aclnnAdd
  mindtorch-npu check --all --html report.html --junit junit.xml
  mindtorch-npu check --all --device all --shard 3/8 --journal part3.jsonl
  mindtorch-npu check --all --ray auto
  mindtorch-npu check aclnnFoo --golden my_ops.py --against vendor:/opt/before/vendors/mine
  mindtorch-npu check soak --device npu:0-7 --minutes 60
  git bisect run sh -c "make || exit 125; mindtorch-npu check aclnnFoo --golden g.py --git-bisect"
  mindtorch-npu check campaign /var/lib/npu-campaign --hours 72

A first word that is a mode selects it; after `--` every word is an operator.

Exit codes: 0 all pass, 1 failures, 2 usage, 3 environment (no worker starts), 4 only the build at
hand fails where that of --against passes, 5 not judged: a named operator
(with --all or --family: every operator) has only SKIP, UNSUPPORTED or contract results, a launch of
--from has no reference, a device was lost with its cases, or --budget left cases out;
130 interrupted. With --git-bisect: 0 good, 1 bad, 125 where the operator, the environment or a
verdict is missing, 128 usage."""


@click.command(epilog=EPILOG, cls=CheckModes)
@apply(opts.OPERATORS, opts.FAMILIES, opts.CASES, opts.CASE_FILE, opts.DETERMINISTIC,
       opts.DEVICES)  # fmt: skip
@click.option("--compare-devices", "compare", is_flag=True,
              help="Run each case on every device, and let them vote bit by bit.")  # fmt: skip
@apply(opts.SHARD, opts.INSTALL, opts.SOC, opts.WORKERS)
@click.option("--budget", type=opts.SECONDS, metavar="SECONDS",
              help="Start no case after this time; the most valuable cases run first.")  # fmt: skip
@click.option(
    "--against",
    default="",
    metavar="vendor:DIR",
    help="Run the cases with this build of the operator package too; show what differs.",
)
@click.option("--resume", type=opts.SOURCE, help="Continue an interrupted run from its journal.")
@apply(opts.OUTPUT, opts.UNJUDGED, (bisect.option,))
def check(
    compare: bool, budget: float | None, against: str, resume: Path | None, issues: Path | None,
    allow_unjudged: bool, **values: Any,
) -> int:  # fmt: skip
    """Check that operators compute what they should: a verdict per case, a rule per operator.

    Compares the device with a float64 reference over dtypes, layouts, edge shapes and call forms;
    derivatives with finite differences; meta with cpu; refusals with the reference's. Each case
    runs in a worker process, so a crash or hang costs one case.
    """
    options = _run(values, compare=compare, budget=budget or 0.0, against=against, resume=resume,
                   issues=issues, allow_unjudged=allow_unjudged,
                   file=opts.case_file(values))  # fmt: skip
    with _prepared(options):
        from . import runner

        if not against:
            return runner.run(options)
        from . import builds

        return builds.run(options)


@click.command("contract", cls=bisect.BisectCommand)
@apply(opts.OPERATORS, opts.DEVICES, opts.SHARD, opts.INSTALL, opts.SOC, opts.WORKERS, opts.OUTPUT,
       opts.UNJUDGED, (bisect.option,))  # fmt: skip
def contract(issues: Path | None, allow_unjudged: bool, **values: Any) -> int:
    """Check argument validation (GetWorkspaceSize) of ACLNN functions; nothing is launched."""
    from . import runner

    return runner.run(_run(values, issues=issues, allow_unjudged=allow_unjudged, contract=True))


@click.command("soak")
@click.option("--minutes", type=opts.SECONDS, required=True, metavar="M", help="How long.")
@apply(opts.ALL_DEVICES, opts.INSTALL, opts.SOC, opts.WORKERS, opts.OUTPUT, opts.UNJUDGED)
def soak(minutes: float, issues: Path | None, allow_unjudged: bool, **values: Any) -> int:
    """Load every device for some minutes and compare all results bit by bit between devices."""
    from . import runner

    return runner.run(_run(values, issues=issues, allow_unjudged=allow_unjudged, compare=True,
                           minutes=minutes))  # fmt: skip


@click.command("campaign")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--hours", type=opts.SECONDS, required=True, metavar="H", help="How long in all.")
@click.option("--round-minutes", type=opts.SECONDS, default=60.0, show_default=True,
              help="How long a round is, with inputs and a journal of its own.")  # fmt: skip
@click.option("--max-mb", "megabytes", type=opts.SECONDS, default=1024.0, show_default=True,
              help="How large the folder may become.")  # fmt: skip
@apply(opts.ALL_DEVICES, opts.INSTALL, opts.SOC, opts.WORKERS, opts.UNJUDGED)
def campaign(
    folder: Path, hours: float, round_minutes: float, megabytes: float, allow_unjudged: bool,
    **values: Any,
) -> int:  # fmt: skip
    """Load every device for days, in rounds; started again, it continues where it stopped.

    FOLDER has the journals of the rounds and their totals. To continue a campaign, give the same
    options again.
    """
    from . import runner

    return runner.campaign(opts.CampaignOptions(
        folder, hours, round_minutes, megabytes, filled(opts.TargetOptions, values),
        filled(opts.WorkerOptions, values), allow_unjudged,
    ))  # fmt: skip


@click.command("list")
@apply(opts.OPERATORS, opts.FAMILIES, opts.CASES, opts.DETERMINISTIC, opts.SHARD, opts.ONE_DEVICE,
       opts.INSTALL, opts.SOC)  # fmt: skip
def list_(**values: Any) -> int:
    """Print the names of the cases that `check` would run, and run none."""
    from . import runner

    selection, target = filled(opts.Selection, values), filled(opts.TargetOptions, values)
    return runner.list_cases(opts.ListOptions(selection, target))


@click.command("explain")
@apply(opts.OPERATORS, opts.FAMILIES, opts.INSTALL)
def explain(**values: Any) -> int:
    """Print the rule that each operator must meet, why, and who says so."""
    from . import runner

    target = opts.TargetOptions("npu:0", values["home"], values["simulator"])
    return runner.explain(opts.ExplainOptions(filled(opts.Selection, values), target))


@click.command("replay", cls=bisect.BisectCommand)
@click.argument("path", metavar="FILE", type=opts.SOURCE)
@apply(opts.ONE_DEVICE, opts.INSTALL, opts.UNJUDGED, (bisect.option,))
def replay(path: Path, allow_unjudged: bool, **values: Any) -> int:
    """Run a case that `--save` wrote, with its saved inputs."""
    from . import runner

    return runner.replay(
        opts.ReplayOptions(path, filled(opts.TargetOptions, values), allow_unjudged)
    )


check.modes.update(
    {c.name: c for c in (list_, explain, contract, soak, campaign, replay) if c.name}
)


def _prepared(options: opts.CheckOptions) -> AbstractContextManager[None]:
    """The first workers of a run on this host: they import while this process does."""
    from ...conformance.run.pool import Setup, prepared, setup_of_lane

    cores = len(os.sched_getaffinity(0))
    lanes = min(options.workers.jobs or cores, cores - 1, 1 if options.selection.only else 2)
    if options.against or options.workers.ray or options.resume:
        lanes = 0
    setup = Setup(soc=options.target.soc or "", environ=options.environ)
    return prepared([setup_of_lane(setup, lane) for lane in range(lanes)])


def _run(values: dict[str, Any], **request: Any) -> opts.CheckOptions:
    """The record of a run, of click's values."""
    return opts.CheckOptions(
        filled(opts.Selection, values),
        filled(opts.TargetOptions, values),
        filled(opts.WorkerOptions, values),
        output(values),
        **request,
    )
