"""Owns what must hold for a case: one function per form, each giving a Result; prints nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import mindtorch as torch
from mindtorch.ops import Op

from . import guards, layouts, subject
from .case import Case
from .claims import NOTHING_CLAIMED, Claims
from .classes import TIERS, Requirement, class_named, requirement
from .complaints import verdict_of
from .golden import Golden, ReferenceRefusesError, golden
from .gradients import gradient
from .metrics import errors, measure, same
from .precision import FORMATS, rounded
from .recipe import NoSuchSampleError, Recipe, Slot, describe, main_dtype, recipe
from .result import Result
from .shapes import NotApplicableError
from .subject import Placed, call, dtype_name, host, on_cpu, on_device, results, synchronize
from .tiers import judge


class Trial:
    """One case on one device: its row, rule, inputs and references."""

    def __init__(self, case: Case, device: str, seed: int, arrays: Any = None) -> None:
        self.case, self.device, self.seed = case, device, seed
        self.op: Op = subject.row(case.op)
        self.need: Requirement = requirement(case.op, self.op.tolerance)
        self.recipe: Recipe = recipe(self.op, case, seed, arrays)
        self.placed: list[Placed] = []
        self.outputs: list[Any] = []
        self.expected: list[Any] = []

    @property
    def dtype(self) -> str:
        """The dtype under test: the case's, else that of the sample's main tensor."""
        return self.case.dtype or main_dtype([s.arg for s in self.recipe.slots])

    def result(self, verdict: str, **fields: Any) -> Result:
        inputs = tuple(describe(s, self.case.layout) for s in self.recipe.slots)
        names = ", ".join(c.name for c in self.op.aclnn)
        fields = {"inputs": inputs, "aclnn": names, "dtype": self.dtype, "seed": self.seed,
                  **fields}  # fmt: skip
        return Result(self.case.id, self.case.op, self.case.form, verdict, **fields)

    def place(self, changing: int | None = None) -> tuple[list[Any], Any]:
        """The arguments on the device; tensor `changing` may be written."""
        self.placed = []
        layout = self.case.layout

        def make(slot: Slot) -> Any:
            may_change = len(self.placed) == changing
            # What is written may not overlap itself; indices keep their values.
            plain = layout == "expanded" and (may_change or slot.arg.values is not None)
            found = on_device(
                slot.array, self.device, "contiguous" if plain else layout, may_change
            )
            self.placed.append(found)
            return found.tensor

        args, kwargs = self.recipe.fill(make)
        # Factories make their tensor where they are told to.
        if not self.placed and any(a.name == "device" for a in self.op.schema.args):
            kwargs = {"device": self.device, **kwargs}
        return args, kwargs

    def trespass(self) -> list[str]:
        """What was written that may not be."""
        inputs = sum(p.trespass() for p in self.placed if not p.may_change)
        outputs = sum(p.trespass() for p in self.placed if p.may_change)
        return guards.trespass(inputs, outputs)


def run(
    case: Case, device: str, seed: int, claims: Claims = NOTHING_CLAIMED, arrays: Any = None
) -> tuple[Result, Trial | None]:
    """Run one case: its Result and, if it got that far, the Trial with inputs and outputs.

    `claims` say which dtypes the device must take; `arrays` replace the drawn inputs.
    """
    started = time.perf_counter()
    trial = None
    try:
        trial = Trial(case, device, seed, arrays)
        found = _LAWS[case.form](trial)
    except (NoSuchSampleError, NotApplicableError) as why:
        found = Result(case.id, case.op, case.form, "SKIP", reason=str(why), seed=seed)
    except ReferenceRefusesError as why:
        assert trial is not None
        found = trial.result("SKIP", reason=f"the CPU reference refuses these inputs: {why}")
    except Exception as error:
        if trial is None:
            raise
        found = _refused(trial, error, claims)
    return found.with_(seconds=time.perf_counter() - started), trial


def _refused(trial: Trial, error: Exception, claims: Claims) -> Result:
    """The result of a case where the device raised: a SKIP where the CPU does so in this layout."""
    verdict, reason = verdict_of(error, trial.op, trial.dtype, claims)
    if verdict == "ERROR":
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


def poison(device: str, sizes: set[int], value: int) -> None:
    """Leave `value` in free blocks of these sizes (bytes), where the next outputs may lie."""
    held = [torch.from_numpy(np.full(n, value, np.uint8)).to(device) for n in sizes if n]
    held.clear()


# Sizes of small workspaces that a kernel may find dirty.
_WORKSPACES: Final = frozenset((512, 4096, 32768))


def functional(trial: Trial) -> Result:
    """npu = reference, twice, with different garbage in free memory; inputs stay untouched."""
    reference = golden(trial.op, trial.recipe, trial.need, trial.case.form)
    if trial.case.form == "inplace":
        return _written(trial, reference, 0)
    if trial.case.form == "out":
        return _into(trial, reference)
    sizes = {t.numel() * t.element_size() for t in reference.native} | _WORKSPACES
    args, kwargs = trial.place()
    runs = []
    for value in (0xFF, 0x3C):
        poison(trial.device, sizes, value)
        found = results(call(trial.op, args, kwargs, trial.case.form))
        synchronize(trial.device)
        runs.append([host(t) for t in found])
    objections = trial.trespass()
    if trial.need.tier != "none":
        objections += [o for a, b in zip(*runs, strict=True) if (o := _twice(a, b))]
    return compare(trial, reference, [(dtype_name(t), a) for t, a in zip(found, runs[0],
                   strict=True)], objections)  # fmt: skip


def _twice(first: Any, second: Any) -> str:
    return guards.second_run(first, second) if first.shape == second.shape else "shapes differ"


def _written(trial: Trial, reference: Golden, changing: int) -> Result:
    args, kwargs = trial.place(changing)
    found = call(trial.op, args, kwargs, "inplace")
    synchronize(trial.device)
    if found is not args[0]:
        return trial.result("FAIL", reason=f"{trial.op.base_name}_ did not return its tensor")
    got = [(dtype_name(args[0]), host(args[0]))]
    return compare(trial, reference, got, trial.trespass())


def _into(trial: Trial, reference: Golden) -> Result:
    layout = "contiguous" if trial.case.layout == "expanded" else trial.case.layout
    args, kwargs = trial.place()
    outs = [_destination(t, trial.device, layout) for t in reference.native]
    trial.placed += outs
    given = tuple(p.tensor for p in outs)
    call(trial.op, args, kwargs, "out", given[0] if len(given) == 1 else given)
    synchronize(trial.device)
    got = [(dtype_name(p.tensor), host(p.tensor)) for p in outs]
    return compare(trial, reference, got, trial.trespass())


def _destination(native: Any, device: str, layout: str) -> Placed:
    like = host(native)
    garbage = layouts.sentinel_storage(like.size, like.dtype).reshape(like.shape)
    return on_device(garbage, device, layout, may_change=True)


def compare(
    trial: Trial, reference: Golden, got: list[tuple[str, Any]], objections: list[str],
    need: Requirement | None = None,
) -> Result:  # fmt: skip
    """Judge every result; the worst one is the case's."""
    trial.outputs, trial.expected = [a for _, a in got], reference.values
    if len(got) != len(reference.native):
        reason = f"{len(got)} results where the reference has {len(reference.native)}"
        return trial.result("FAIL", reason=reason)
    if not got:
        return trial.result("PASS", tier="T0", required="T0", guards=tuple(objections))
    found = [
        _compare_one(trial, need or trial.need, reference, i, *item) for i, item in enumerate(got)
    ]
    worst = min(found, key=lambda r: (r.verdict == "PASS", -len(r.tier and "x"), r.verdict))
    if worst.verdict == "PASS":
        worst = max(found, key=lambda r: _rank(r.tier))
    objections = [*objections, *(g for r in found for g in r.guards)]
    if objections and worst.verdict == "PASS":
        return worst.with_(verdict="MISTRUSTED", guards=tuple(objections), reason=objections[0])
    return worst.with_(guards=tuple(objections))


def _rank(tier: str) -> int:
    return (*TIERS, "none", "").index(tier)


def _compare_one(
    trial: Trial, need: Requirement, reference: Golden, i: int, dtype: str, got: Any
) -> Result:
    native, expected = reference.native[i], reference.values[i]
    if tuple(got.shape) != tuple(native.shape) or dtype != dtype_name(native):
        reason = (f"result {i}: {dtype}{list(got.shape)} where the reference has "
                  f"{dtype_name(native)}{list(native.shape)}")  # fmt: skip
        return trial.result("FAIL", reason=reason)
    if need.tier == "none":
        return _plausible(trial, got)
    if trial.case.fill in ("special", "sweep"):
        expected = agreed(got, expected, host(native), dtype)
    measured = measure(got, expected, dtype, reference.scale[i], need.accumulator)
    material = errors(got, expected, dtype)
    verdict = judge(need, dtype, measured, material, host(native), expected)
    worst = measured.as_json()
    if measured.worst is not None:
        worst["worst"]["inputs"] = _inputs_at(trial, measured.worst.index, tuple(got.shape))
    objections = _objections(trial, need, got, expected, dtype, material)
    return trial.result(
        "PASS" if verdict.passed else "FAIL",
        tier=verdict.headline, required=verdict.required, measure=worst,
        reason="" if verdict.passed else _why(verdict.failing(), measured),
        outcomes=tuple((t, o.rule, o.passed, o.numbers) for t, o in verdict.outcomes),
        guards=tuple(objections),
    )  # fmt: skip


def agreed(got: Any, expected: Any, native: Any, dtype: str) -> Any:
    """`expected`, with the CPU's value in the same precision where that is what came and either
    is not finite: intermediate overflow is no error (commercial standard, rule for inf and nan).
    """
    if expected.dtype.kind not in "fc" or native.dtype == expected.dtype:
        return expected
    with np.errstate(all="ignore"):
        odd = ~np.isfinite(native) | ~np.isfinite(rounded(expected, dtype))
        return np.where(odd & same(got, native), native.astype(expected.dtype), expected)


def _why(failing: str, measured: Any) -> str:
    where = ""
    if measured.worst is not None:
        worst = measured.worst
        where = f"; at {list(worst.index)} got {worst.got}, expected {worst.expected}"
    return (failing or f"{measured.different} of {measured.elements} elements differ") + where


def _objections(
    trial: Trial, need: Requirement, got: Any, expected: Any, dtype: str, material: Any
) -> list[str]:
    if material is None or need.name == "exact" or trial.case.fill != "normal":
        return []
    found = [guards.lost(got, expected, dtype), guards.tail(material, need.ulp[0])]
    if _should_vary(trial):
        found += [guards.zeros(got, need.name), guards.constant(expected)]
    return [o for o in found if o]


def _should_vary(trial: Trial) -> bool:
    """Whether many different values are to be expected: floats that were drawn, none empty."""
    return (
        trial.case.form == "functional"
        and trial.case.layout != "expanded"
        and trial.dtype in FORMATS
        and all(s.array.size for s in trial.recipe.slots)
    )


def _plausible(trial: Trial, got: Any) -> Result:
    if got.dtype.kind == "f" and not np.isfinite(got).all():
        return trial.result("FAIL", reason="drawn values are not finite")
    return trial.result("PASS", tier="none", required="none")


def _inputs_at(trial: Trial, index: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, str]:
    """The input elements that meet at an output's index, where shapes broadcast to it."""
    from .metrics import text

    found = {}
    for position, slot in enumerate(trial.recipe.slots):
        try:
            value = np.broadcast_to(slot.array, shape)[index]
        except ValueError:
            continue
        found[f"input {position}"] = text(value)
    return found


def meta(trial: Trial) -> Result:
    """meta = cpu: shape, dtype and strides, for inputs in the case's layout."""
    layout = trial.case.layout
    shown = []
    for device in ("cpu", "meta"):
        try:
            args, kwargs = trial.recipe.fill(lambda s: on_device(s.array, device, layout).tensor)  # noqa: B023
            found = results(call(trial.op, args, kwargs))
        except Exception as error:
            if device == "cpu":
                raise ReferenceRefusesError(error) from error
            raise
        shown.append([(dtype_name(t), list(t.shape), list(t.stride())) for t in found])
    if shown[0] == shown[1]:
        return trial.result("PASS", tier="T0", required="T0")
    return trial.result("FAIL", required="T0", reason=f"meta {shown[1]}, cpu {shown[0]}")


def error(trial: Trial) -> Result:
    """What the CPU refuses, the device refuses with the same class and text."""
    raised = []
    for device in ("cpu", trial.device):
        try:
            args, kwargs = trial.recipe.fill(lambda s: on_cpu(s.array).to(device))  # noqa: B023
            call(trial.op, args, kwargs)
            synchronize(device)
            raised.append(("nothing", ""))
        except Exception as refusal:
            raised.append((type(refusal).__name__, _device_neutral(str(refusal))))
    if raised[0][0] == "nothing":
        return trial.result("SKIP", reason="the CPU reference accepts this input")
    if raised[0] == raised[1]:
        return trial.result("PASS", tier="T0", required="T0")
    shown = " where the CPU raises ".join(f"{k}: {t}".strip(": ") for k, t in reversed(raised))
    return trial.result("FAIL", required="T0", reason=f"raises {shown}")


def _device_neutral(text: str) -> str:
    return re.sub(r"\b(npu|cpu)(:\d+)?\b", "DEVICE", text)


def grad(trial: Trial) -> Result:
    """Derivatives on the device = those in float64 = finite differences."""
    found = gradient(trial)
    if isinstance(found, Result):
        return found
    reference, got, objection = found
    need = class_named("gradient")
    if objection:
        return trial.result("FAIL", required="T2", reason=objection)
    return compare(trial, reference, got, [], need)


_LAWS: Final[dict[str, Callable[[Trial], Result]]] = {
    "functional": functional,
    "out": functional,
    "inplace": functional,
    "method": functional,
    "meta": meta,
    "grad": grad,
    "error": error,
}
