"""Times a workload in its own process: `python -m mindtorch_npu.commands.bench.timing_worker`.

It reads one JSON object a line: a setup, a workload's case, then kinds of time; it writes an answer
to each to the descriptor that was its stdout, which libraries cannot reach.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import IO, Any

import mindtorch as torch

from ...conformance.cases.case import parse
from ...conformance.operators.laws import Launch
from ...conformance.run.cann_words import one_line
from ...conformance.run.process import answers
from ...spec.errors import undeclared
from . import item
from .rivals import NoRivalError
from .runner import METHODS, Bench, BenchRequest, inputs, wrong
from .statistics import SamplingLimits, collect, warm_up
from .targets import OperatorTarget, open_device, target
from .timers import Clock

_WARM_UP = SamplingLimits(1.0, 1.0)


class OtherOperator(OperatorTarget):
    """Another operator with the same parameters, called with the arguments of this one."""

    def __init__(self, what: OperatorTarget, other: str) -> None:
        super().__init__(what.name, what.recipe, what.operator)
        self.other = other

    def _launch(self) -> Launch:
        launch = super()._launch()
        if launch.sized:
            raise NoRivalError(f"{self.other}: a result has a size that the device decides")
        launch.call = _renamed(launch, self.other)
        return launch


def _renamed(launch: Launch, other: str) -> Callable[..., Any]:
    declared = launch.cann.declarations.ops
    if other not in declared:
        raise NoRivalError(undeclared(other, declared))
    mine, theirs = (declared[name].params for name in (launch.operator.name, other))
    if [p.kind for p in mine] != [p.kind for p in theirs]:
        takes = ", ".join(f"{p.name}: {p.kind.name.lower()}" for p in theirs)
        raise NoRivalError(f"{other} takes other parameters than {launch.operator.name}: {takes}")
    call = launch.cann.op(other)
    names = {a.name: b.name for a, b in zip(mine, theirs, strict=True)}

    def run(*, stream: Any = None, **arguments: Any) -> Any:
        return call(**{names[name]: v for name, v in arguments.items()}, stream=stream)

    return run


def _clock(setup: Mapping[str, Any], message: Mapping[str, Any]) -> Clock:
    """The clock of a workload, warm; NoRivalError where its result is wrong."""
    cann = open_device(setup["device"], setup["home"], setup["simulator"])
    case = parse(message["case"])
    work = item.workload(case, "", cann and cann.declarations)
    what = target(work.op, inputs(work, int(message["seed"])), setup["device"])
    if message["operator"]:
        if not isinstance(what, OperatorTarget):
            raise NoRivalError(f"{work.op} is no ACLNN operator: {message['operator']} has others")
        what = OtherOperator(what, message["operator"])
    run = what.run()
    if problem := wrong(what, run):
        raise NoRivalError(f"{message['operator'] or 'the other build'}: {problem}")
    clock = Bench(BenchRequest(setup["device"])).clock(run)
    for kind in METHODS.values():
        warm_up(getattr(clock, kind), _WARM_UP)
    return clock


def _serve(out: IO[str]) -> None:
    setup = json.loads(sys.stdin.readline())

    def say(message: Mapping[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    with torch.no_grad():
        try:
            clock = _clock(setup, json.loads(sys.stdin.readline()))
        except Exception as error:
            say({"problem": str(error) if isinstance(error, NoRivalError) else one_line(error)})
            return
        say({"ready": True})
        for line in sys.stdin:
            words = json.loads(line)
            limits = SamplingLimits(0.0, float(words["seconds"]))
            say({"samples": collect(getattr(clock, METHODS[words["kind"]]), limits)})


def main() -> None:
    """Serve until the reader ends; what libraries print goes to stderr."""
    _serve(answers())


if __name__ == "__main__":
    main()
