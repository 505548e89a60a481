"""Owns what must hold for a case: one function per form, each giving a Result; prints nothing."""

from __future__ import annotations

import re
import time
import zlib
from typing import Any, Final

from mindtorch.ops.rules import needs_values
from mindtorch.testing.kernels import reference_kernels
from mindtorch.testing.placement import fill_free_memory, from_host, overruns, to_host

from ...judge import guards
from ...judge.classes import class_named
from ...judge.precision import Array
from ..cases import layouts
from ..cases.case import Case
from ..cases.claims import NOTHING_CLAIMED, Claims
from ..cases.recipe import NoSuchSampleError
from ..cases.shapes import NotApplicableError
from ..record.result import REFERENCE, Result
from . import beside, invariance
from .cann_words import verdict_of
from .chance import random
from .comparison import compare
from .custom_reference import CustomReferenceError
from .gradients import gradient
from .modes import of_gradient
from .reference import Golden, ReferenceRefusesError, golden
from .second_oracle import agrees, testify
from .subject import Law, Subject
from .tensors import Placed, call, dtype_name, on_device, results, synchronize
from .trial import Trial


def run(
    what: Subject, case: Case, device: str, seed: int, claims: Claims = NOTHING_CLAIMED,
    arrays: Any = None,
) -> tuple[Result, Trial | None]:  # fmt: skip
    """Run one case: its Result and, if it got that far, the Trial with inputs and outputs.

    `claims` say which dtypes the device must take; `arrays` replace the drawn inputs.
    """
    started = time.perf_counter()
    trial = None
    try:
        with reference_kernels():
            trial = Trial(what, case, device, seed, arrays)
            result = _law(trial)(trial)
    except (NoSuchSampleError, NotApplicableError) as why:
        result = Result(case.id, case.op, case.form, "SKIP", reason=str(why), seed=seed)
    except ReferenceRefusesError as why:
        assert trial is not None
        if isinstance(why, CustomReferenceError):
            reason = f"error of the reference: {why}"
            result = trial.result("ERROR", reason=reason, blame=REFERENCE)
        elif why.defect:
            result = trial.result("ERROR", reason=f"defect of the CPU reference: {why}")
        else:
            result = trial.result("SKIP", reason=f"the CPU reference refuses these inputs: {why}")
    except Exception as error:
        if trial is None:
            raise
        result = _refused(trial, error, claims)
    result = _watched(result, device)
    row = trial is not None and trial.subject.op is not None
    if result.verdict == "FAIL" and trial is not None and row and case.form in _COMPARED:
        result = heard(result, trial)
    return result.with_(seconds=time.perf_counter() - started), trial


def _watched(result: Result, device: str) -> Result:
    """The result, mistrusted where the case wrote over the ends of a buffer or workspace."""
    objections = overruns(device)
    if not objections:
        return result
    result = result.with_(guards=(*result.guards, *objections))
    if result.verdict != "PASS":
        return result
    return result.with_(verdict="MISTRUSTED", reason=objections[0])


def _law(trial: Trial) -> Law:
    laws = trial.subject.laws()
    if trial.case.form not in laws:
        raise NotApplicableError(f"{trial.subject.name} has no form {trial.case.form}")
    return laws[trial.case.form]


_COMPARED: Final = frozenset(("functional", "out", "inplace", "method"))


def heard(result: Result, trial: Trial) -> Result:
    """A failure with torch's word on it: who of device, reference and torch stands alone."""
    theirs = testify(trial.op, trial.recipe)
    if theirs is None or len(theirs) != len(trial.outputs):
        return result
    device = all(agrees(a, b) for a, b in zip(trial.outputs, theirs, strict=True))
    native = all(agrees(a, b) for a, b in zip(trial.expected, theirs, strict=True))
    if device and not native:
        reason = f"the reference stands alone, torch agrees with the device: {result.reason}"
        return result.with_(verdict="ERROR", reason=reason)
    word = "agrees with the reference" if native else "agrees with neither"
    return result.with_(reason=f"{result.reason}; torch {word}")


def _refused(trial: Trial, error: Exception, claims: Claims) -> Result:
    """The result of a case where the device raised: a SKIP where the CPU does so in this layout."""
    verdict, reason = verdict_of(error, trial.subject.calls, trial.dtype, claims)
    if verdict == "ERROR" and trial.subject.op is not None:
        try:
            args, kwargs = trial.recipe.fill(
                lambda s: on_device(s.array, "cpu", trial.case.layout).tensor
            )
            form = trial.case.form if trial.case.form == "inplace" else "functional"
            call(trial.op, args, kwargs, form)
        except Exception as other:
            if type(other) is type(error) and str(other) == str(error):
                return trial.result("SKIP", reason=f"refused on the CPU too: {reason}")
    return trial.result(verdict, reason=reason)


_DIMS: Final = 8
# Sizes of small workspaces that a kernel may find dirty.
_WORKSPACES: Final = frozenset((512, 4096, 32768))


def functional(trial: Trial) -> Result:
    """npu = reference, twice, with different garbage in free memory; inputs stay untouched."""
    if trial.case.shape != "sample":
        _bounded(trial)
    reference = golden(trial.op, trial.recipe, trial.need, trial.case.form)
    within_ranks(trial, reference)
    if trial.case.form == "inplace":
        return _compare_written(trial, reference)
    if trial.case.form == "out":
        return _into(trial, reference)
    sizes = {a.nbytes for a in reference.native} | _WORKSPACES
    writes = trial.subject.op is not None and any(a.writes for a in trial.op.schema.args[:1])
    changing = reference.moved or ((0,) if writes else ())
    args, kwargs = trial.place(changing)
    runs: list[list[Array]] = []
    for value in (0xFF, 0x3C) if twice_run(trial.case) else (None,):
        if runs and reference.moved:
            args, kwargs = trial.place(changing)
        if value is not None:
            fill_free_memory(trial.device, sizes, value)
        outputs = results(call(trial.op, args, kwargs, trial.case.form))
        outputs += [trial.placed[k].tensor for k in reference.moved]
        synchronize(trial.device)
        runs.append([to_host(t) for t in outputs])
    objections = trial.trespass()
    if trial.need.tier != "none" and len(runs) == 2:
        objections += [o for a, b in zip(*runs, strict=True) if (o := _twice(a, b))]
        if not changing and beside.applies(trial.case):
            objections += beside.row_beside(trial, runs[0])
    return compare(trial, reference, [(dtype_name(t), a) for t, a in zip(outputs, runs[0],
                   strict=True)], objections)  # fmt: skip


def within_ranks(trial: Trial, reference: Golden) -> None:
    """Raise NotApplicableError for results of more dims than an aclTensor has."""
    ranks = [a.ndim for a in reference.native if a is not None]
    if trial.case.shape == "rank8" and max(ranks, default=0) > _DIMS:
        raise NotApplicableError(f"a result of {max(ranks)} dims; an aclTensor has {_DIMS} at most")


# Elements of one output of an edge shape: what grows as a square would take the minutes of all.
_MOST_OUT: Final = 1 << 20


def _bounded(trial: Trial) -> None:
    """Raise NotApplicableError for outputs that the inputs' bounds do not bound."""
    try:
        args, kwargs = trial.recipe.fill(lambda s: on_device(s.array, "meta", "contiguous").tensor)
        outputs = results(call(trial.op, args, kwargs))
    except Exception:
        return  # the reference says why, or the sizes depend on data
    if max((t.numel() for t in outputs), default=0) > _MOST_OUT:
        raise NotApplicableError(f"an output of more than {_MOST_OUT} elements")


def twice_run(case: Case) -> bool:
    """Whether a case runs twice: samples as they are, plain ones, and an eighth of the others."""
    changed = (
        len(case.factors) > 1 if case.designed
        else bool(case.dtype)
        or (case.layout, case.shape, case.fill) != ("contiguous", "sample", "normal")
    )  # fmt: skip
    return not changed or zlib.crc32(case.id.encode()) % 8 == 0


def _twice(first: Array, second: Array) -> str:
    return guards.second_run(first, second) if first.shape == second.shape else "shapes differ"


def _compare_written(trial: Trial, reference: Golden) -> Result:
    args, kwargs = trial.place((0,))
    returned = call(trial.op, args, kwargs, "inplace")
    synchronize(trial.device)
    if returned is not args[0]:
        return trial.result("FAIL", reason=f"{trial.op.base_name}_ did not return its tensor")
    got = [(dtype_name(args[0]), to_host(args[0]))]
    return compare(trial, reference, got, trial.trespass())


def _into(trial: Trial, reference: Golden) -> Result:
    layout = "contiguous" if trial.case.layout in layouts.REPEATED else trial.case.layout
    layout = dict(trial.case.factors).get("to", layout)
    first = trial.recipe.slots[0] if trial.recipe.slots else None
    aliased = (
        trial.aliased
        and first is not None
        and [(first.arg.dtype, first.arg.shape)]
        == [(a.dtype.name, tuple(a.shape)) for a in reference.native]
    )
    args, kwargs = trial.place((0,) if aliased else ())
    if aliased:
        outs = [trial.placed[0]]
    else:
        outs = [_destination(t, trial.device, layout) for t in reference.native]
        trial.placed += outs
    dests = tuple(p.tensor for p in outs)
    call(trial.op, args, kwargs, "out", dests[0] if len(dests) == 1 else dests)
    synchronize(trial.device)
    got = [(dtype_name(p.tensor), to_host(p.tensor)) for p in outs]
    return compare(trial, reference, got, trial.trespass())


def _destination(like: Array, device: str, layout: str) -> Placed:
    garbage = layouts.sentinel_storage(like.size, like.dtype).reshape(like.shape)
    return on_device(garbage, device, layout, may_change=True)


def meta(trial: Trial) -> Result:
    """meta = cpu: shape, dtype and strides, for inputs in the case's layout."""
    if trial.case.shape != "sample":
        _bounded(trial)
    layout = trial.case.layout
    shapes = []
    for device in ("cpu", "meta"):
        try:
            args, kwargs = trial.recipe.fill(lambda s: on_device(s.array, device, layout).tensor)  # noqa: B023
            outputs = results(call(trial.op, args, kwargs))
        except Exception as error:
            if device == "cpu":
                raise ReferenceRefusesError(error) from error
            if needs_values(error):
                return trial.result("SKIP", reason=f"its result depends on data: {error}")
            raise
        shapes.append([(dtype_name(t), list(t.shape), list(t.stride())) for t in outputs])
    if shapes[0] == shapes[1]:
        return trial.result("PASS", tier="T0", required="T0")
    return trial.result("FAIL", required="T0", reason=f"meta {shapes[1]}, cpu {shapes[0]}")


def error(trial: Trial) -> Result:
    """What the CPU refuses, the device refuses with the same class and text."""
    raised = []
    for device in ("cpu", trial.device):
        try:
            args, kwargs = trial.recipe.fill(lambda s: from_host(s.array).to(device))  # noqa: B023
            call(trial.op, args, kwargs)
            synchronize(device)
            raised.append(("nothing", ""))
        except Exception as refusal:
            raised.append((type(refusal).__name__, _device_neutral(str(refusal))))
    if raised[0][0] == "nothing":
        return trial.result("SKIP", reason="the CPU reference accepts this input")
    if raised[0] == raised[1]:
        return trial.result("PASS", tier="T0", required="T0")
    classes = " where the CPU raises ".join(f"{k}: {t}".strip(": ") for k, t in reversed(raised))
    return trial.result("FAIL", required="T0", reason=f"raises {classes}")


def _device_neutral(text: str) -> str:
    return re.sub(r"\b(npu|cpu)(:\d+)?\b", "DEVICE", text)


def grad(trial: Trial) -> Result:
    """Derivatives on the device = those in float64 = finite differences."""
    need = of_gradient(class_named("gradient"), trial.need)
    grads = gradient(trial, magnitudes=need.tier == "ratio")
    if isinstance(grads, Result):
        return grads
    reference, got, objection = grads
    if objection:
        return trial.result("FAIL", required="T2", reason=objection)
    return compare(trial, reference, got, [], need)


def launched(trial: Trial) -> invariance.Launched:
    """One call of a trial's row: its reference, and what came."""
    if trial.case.shape != "sample":
        _bounded(trial)
    reference = golden(trial.op, trial.recipe, trial.need, "functional")
    within_ranks(trial, reference)
    writes = (0,) if any(a.writes for a in trial.op.schema.args[:1]) else ()
    args, kwargs = trial.place(reference.moved or writes)
    outputs = results(call(trial.op, args, kwargs))
    outputs += [trial.placed[k].tensor for k in reference.moved]
    synchronize(trial.device)
    return reference, [to_host(t) for t in outputs]


LAWS: Final[dict[str, Law]] = {
    "functional": functional,
    "out": functional,
    "inplace": functional,
    "method": functional,
    "meta": meta,
    "grad": grad,
    "error": error,
    "random": random,
    **invariance.laws(launched),
}
