"""Judges launches by what a recording kept of them: inputs, outputs, and the operator's formula."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..conformance.cases.case import Case
from ..conformance.operators.laws import LAWS
from ..conformance.operators.placing import ResultSlot
from ..conformance.record.result import Result
from ..conformance.run.comparison import compare
from ..conformance.run.custom_reference import CustomReferenceError
from ..conformance.run.modes import in_mode
from ..conformance.run.reference import Golden, ReferenceRefusesError
from ..conformance.run.subject import UnknownSubjectError
from ..conformance.run.trial import Trial
from . import subjects
from .reader import Recording
from .values import Captured, NotAskableError


def judged(recording: Recording, declarations: Any) -> Iterator[tuple[Captured, Result, Any]]:
    """Every launch with data, in the file's order: its result, and the trial that gave it (None
    where nothing could be asked). SKIP says why a launch was not judged."""
    for launch in recording.captured():
        if launch.call.status:
            continue  # it failed, and computed nothing
        result, trial = judge(launch, declarations)
        yield launch, result, trial


def judge(launch: Captured, declarations: Any) -> tuple[Result, Any]:
    """The verdict of one launch."""
    call = launch.call
    case = Case(call.name, "functional")
    try:
        what = subjects.subject(call.name, [(call.arguments, launch.before)], declarations)
        trial = Trial(what, case, "npu:0", 0, _inputs(what.samples()[0]))
        mode = call.arguments.get("cubeMathType")
        if isinstance(mode, int):  # a torch row's arguments do not hold it
            need = what.requirement(trial.dtype)
            trial.need = in_mode(need, trial.recipe, what.calls, trial.device, mode)
        return _compared(what, trial, launch), trial
    except CustomReferenceError as error:
        reason = f"error of the reference: {error}"
        return Result(case.id, call.name, case.form, "SKIP", reason=reason), None
    except (UnknownSubjectError, NotAskableError, ReferenceRefusesError) as error:
        return Result(case.id, call.name, case.form, "SKIP", reason=str(error)), None
    except Exception as error:  # one launch that the formula's code does not take
        reason = f"not judged: {type(error).__name__}: {error}"
        return Result(case.id, call.name, case.form, "SKIP", reason=reason), None


def _for_data(result: Result, golden: Golden, got: Sequence[Any]) -> Result:
    """The verdict for a program's own data.

    Guards ask whether inputs were good enough to prove something, which a program's need not be.
    And where the CPU in the same precision is as far off, the data are ill-conditioned, not the
    operator wrong: bounds of sums are calibrated on terms of like size. As far means at most twice,
    as in the commercial standard's error ratio (tier T4).
    """
    if result.verdict == "FAIL" and all(map(_as_good, got, golden.native, golden.values)):
        return result.with_(verdict="PASS", tier="T4", reason="")
    return result.with_(verdict="PASS") if result.verdict == "MISTRUSTED" else result


def for_recorded_data(trial: Trial) -> Result:
    """The law of a launch that runs again on the elements that were recorded."""
    result = LAWS["functional"](trial)
    if result.verdict not in ("FAIL", "MISTRUSTED"):
        return result
    what: Any = trial.subject
    golden = what.golden(trial.recipe, trial.need)
    if len(golden.native) != len(trial.outputs):
        return result
    return _for_data(result, golden, trial.outputs)


def _as_good(got: Any, native: Any, value: Any) -> bool:
    """Whether a float result's largest error is at most twice that of the CPU's result."""
    if got.shape != native.shape or native.dtype.kind != "f" or not np.isfinite(value).all():
        return False
    with np.errstate(all="ignore"):
        mine = np.abs(got.astype(np.float64) - value).max(initial=0.0)
        theirs = np.abs(native.astype(np.float64) - value).max(initial=0.0)
    return bool(mine <= 2 * theirs)


def _inputs(sample: Any) -> list[Any]:
    """The recorded elements in the order of the sample's tensors."""
    inputs: list[Any] = []

    def take(arg: Any) -> Any:
        if arg.values is None:
            raise NotAskableError("not all of its inputs were recorded (see --data)")
        inputs.append(np.asarray(arg.values))
        return arg

    sample.map(take)
    return inputs


def _compared(what: Any, trial: Trial, launch: Captured) -> Result:
    golden = what.golden(trial.recipe, trial.need)
    by_slot: dict[int, Any] = {}
    for name, value in what.values(trial.recipe, golden).items():
        many = value if isinstance(value, list) else [value]
        got = launch.after.get(name, [None] * len(many))
        for place, array in zip(many, got, strict=False):
            if not isinstance(place, ResultSlot):
                continue
            native = golden.native[place.index]
            if array is not None or not native.size:  # of no element there is nothing to record
                by_slot[place.index] = native if array is None else array
    if not by_slot:
        raise NotAskableError("none of its results were recorded")
    slots = sorted(by_slot)
    results: Sequence[Any] = [by_slot[k] for k in slots]
    settled = what.settle(golden.only(slots), results)
    result = compare(trial, settled, [(a.dtype.name, a) for a in results], [])
    return _for_data(result, settled, results)
