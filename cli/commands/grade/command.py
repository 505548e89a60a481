"""The command `grade`: turns options into a request, shows the grade, writes it and exits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ... import choices, exits, op_names, render

if TYPE_CHECKING:
    from ...grading.grade import Grade, GradeRequest

EPILOG = """\b
Examples:
  mindtorch-npu grade aclnnFoo --golden task.py --json -
  mindtorch-npu grade aclnnFoo --golden task.py --against aclnnMul
  mindtorch-npu grade aclnnFoo --golden task.py --may-call aclnnCast

The score is 0 where the operator is not found, does not load, is wrong or is accused of something.
Else it is the time of the --against operator over that of OP, or 1 without --against.

Exit codes: 0 a score above 0, 1 a score of 0, 2 usage or an unusable reference, 3 no install."""


@click.command(epilog=EPILOG)
@click.argument("operator", metavar="OP", shell_complete=op_names.complete)
@choices.golden
@click.option("--against", default="", metavar="OP", shell_complete=op_names.complete,
              help="An operator of the install with the same parameters: the speed is relative "
                   "to it.")  # fmt: skip
@click.option("--may-call", "allowed", multiple=True, metavar="OP",
              help="An operator of ACLNN that OP may launch inside.")  # fmt: skip
@click.option("--cases", type=click.IntRange(1, 44), default=14, show_default=True,
              help="Small calls, each different.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(2, 50), default=11, show_default=True,
              help="Large calls, which are timed.")  # fmt: skip
@click.option("--elements", type=click.IntRange(1, 1 << 20), default=1 << 18, show_default=True,
              help="Elements of the largest tensor of a large call.")  # fmt: skip
@click.option("--cold", is_flag=True, help="Displace the device's caches before each launch.")
@click.option("--timeout", type=choices.Seconds(), default=5.0, show_default=True,
              help="Seconds for one phase of one launch.")  # fmt: skip
@click.option("--memory", type=click.IntRange(min=64), default=2048, show_default=True,
              help="Host memory of the operator's process, in MiB.")  # fmt: skip
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=None,
    help="Repeat the calls of an earlier grading; default: calls that are new.",
)
@click.option(
    "--device", type=choices.DeviceWords(), default="npu:0", show_default=True, help="The device."
)
@click.option("--home", type=click.Path(path_type=Path), help="The CANN toolkit to use.")
@click.option("--simulator", is_flag=True, help="Use the bundled simulator.")
@click.option("--json", "json_file", type=choices.NewFile(dash=True), metavar="FILE|-",
              help="Write the grade as JSON; `-`: to stdout, and nothing else there.")  # fmt: skip
def grade(json_file: Path | None, **values: Any) -> int:
    """Grade the operator OP, which a program wrote: is it there, correct, fast and honest.

    OP runs in a confined process that has no reference and no result of one. Inputs and shapes are
    new in each grading.
    """
    from aclnn_bindings.errors import BindingError

    from ...conformance.run.reference import ReferenceRefusesError
    from ...grading.grade import grade as run
    from ...grading.launches import NotGradableError

    try:
        result = run(_request(**values))
    except NotGradableError as error:
        raise click.UsageError(str(error)) from None
    except ReferenceRefusesError as error:
        raise click.UsageError(f"the reference raised {error}") from None
    except BindingError as error:
        click.echo(f"error: {error}", err=True)
        return exits.NOTHING
    _write(result, json_file)
    return exits.OK if result.score else exits.PROBLEMS


def _request(
    operator: str, against: str, allowed: tuple[str, ...], cases: int, rounds: int, elements: int,
    cold: bool, timeout: float, memory: int, seed: int | None, device: str, home: Path | None,
    simulator: bool,
) -> GradeRequest:  # fmt: skip
    from ...conformance.operators import golden_files
    from ...grading.grade import GradeRequest
    from ...grading.process import Confinement

    kind, _, index = device.partition(":")
    if kind != "npu" or not (index or "0").isdigit():
        raise click.UsageError(f"--device {device}: expected npu:0")
    hide = golden_files.files()
    root = str(home) if home else None
    place = Confinement(operator, root, simulator, int(index or 0), hide=hide,
                        memory=memory << 20, seconds=timeout)  # fmt: skip
    return GradeRequest(operator, against, allowed, cases, rounds, elements, cold, seed, place)


def _write(result: Grade, json_file: Path | None) -> None:
    text = json.dumps(result.as_json(), indent=1)
    if json_file is not None and str(json_file) == "-":
        click.echo(text)
        return
    if json_file is not None:
        from aclnn_bindings.interface import atomic_write

        atomic_write.write(json_file, text + "\n")
    render.show([_facts(result)])


def _facts(result: Grade) -> render.Facts:
    from ...grading.diagnosis import described

    style: render.Style = "good" if result.score else "bad"
    facts: list[tuple[str, render.Content]] = [("score", render.Cell(f"{result.score:.3g}", style))]
    facts.append(("operator", f"{result.operator} ({result.library or 'not loaded'})"))
    facts.append(("correct", f"{result.passed} of {result.launches} launches"))
    if result.cause:
        facts.append(("cause", result.cause))
    facts += [("accused", described(a)) for a in result.accusations]
    if result.speed is not None:
        facts.append(("speed", f"{result.speed:.3g} times that of --against "
                      f"(noise: {result.speed_error:.0%})"))  # fmt: skip
    facts.append(("isolation", "; ".join(result.isolation) or "none"))
    facts.append(("repeat", f"--seed {result.seed}"))
    return render.Facts(facts)
