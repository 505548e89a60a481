"""Owns the timing of one workload: inputs, verification before and after, clocks, comparison."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.random import Generator

import mindtorch as torch
from mindtorch import Tensor
from mindtorch.ops import OPS
from mindtorch.ops.costs import Cost
from mindtorch.ops.samples import Arg

from ...conformance.cases.recipe import Recipe, Slot
from ...conformance.record.result import REFERENCE
from ...conformance.run.cann_words import one_line
from ...conformance.run.custom_reference import CustomReferenceError
from ...conformance.run.reference import ReferenceRefusesError
from ...conformance.run.tensors import synchronize
from ...judge import metrics
from ...judge.formats import FORMATS
from ...judge.precision import Array, numpy_dtype
from ...judge.tiers import judge
from . import rivals
from .roofline import Peaks
from .statistics import SamplingLimits, TimeSpread, collect, measure, summarize, warm_up
from .targets import BenchTarget, target
from .timers import Clock, NpuClock, cold
from .verdict import TimeComparison, compare, doubt, with_baseline
from .workloads import Workload, cost, small

_ROUNDS: Final = 5
# Inputs of cold runs together exceed the L2 of every product at least twice (192 MiB, A2 and A3).
_COLD_BYTES: Final = 400 << 20


@dataclass(slots=True)
class WorkloadTiming:
    """What is known of one workload. `times` by kind: device, host, e2e, cold."""

    work: Workload
    times: dict[str, TimeSpread] = field(default_factory=dict)
    cost: Cost = field(default_factory=lambda: Cost(0, 0))
    problem: str = ""
    rival: dict[str, TimeSpread] = field(default_factory=dict)
    verdicts: dict[str, TimeComparison] = field(default_factory=dict)
    note: str = ""
    blame: str = ""  # REFERENCE: a person's reference is wrong, and the device was not judged

    @property
    def doubt(self) -> str:
        """What speaks against these times."""
        return doubt(self.times)

    @property
    def bandwidth(self) -> float:
        """Bytes per second of device time."""
        t = self.times.get("device")
        return self.cost.nbytes / (t.median * 1e-6) if t and t.median else 0.0

    @property
    def rate(self) -> float:
        """Operations per second of device time."""
        t = self.times.get("device")
        return self.cost.flops / (t.median * 1e-6) if t and t.median else 0.0


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """What to time and against whom: "", "torch", "numpy", or a baseline's times."""

    device: str = "npu:0"
    kinds: tuple[str, ...] = ("device", "host", "e2e")
    against: str = ""
    baseline: Mapping[str, Mapping[str, TimeSpread]] = field(default_factory=dict)
    limits: SamplingLimits = field(default_factory=SamplingLimits)
    cold: bool = False
    seed: int = 0
    recording: Path | None = None


def inputs(work: Workload, seed: int) -> Recipe:
    """Random normal inputs, kept inside the sample's range; integers and fixed values as drawn."""
    slots: list[Slot] = []

    def make(arg: Arg) -> Slot:
        rng = np.random.default_rng([seed, len(slots)])
        slots.append(Slot(arg, _host_array(arg, rng)))
        return slots[-1]

    args, kwargs = work.sample.map(make)
    return Recipe(args, kwargs, slots, False)


def _host_array(arg: Arg, rng: Generator) -> Array:
    dtype = numpy_dtype(arg.dtype)
    if arg.values is not None or arg.dtype not in FORMATS:
        return np.asarray(arg.array()).astype(dtype)
    if arg.low < 0 < arg.high:
        spread = min(-arg.low, arg.high) / 2
        return np.clip(rng.standard_normal(arg.shape) * spread, arg.low, arg.high).astype(dtype)
    return np.asarray(rng.uniform(arg.low, arg.high, arg.shape)).astype(dtype)


def wrong(what: BenchTarget, run: Callable[[], Any], when: str = "") -> str:
    """What is wrong with the result, "" if it meets its class's rule."""
    outputs = what.outputs(run)
    if what.need.tier == "none":
        return ""
    reference = what.reference
    for (dtype, got), expected, scale in zip(
        outputs, reference.values, reference.scale, strict=True
    ):
        sized = metrics.measure(got, expected, dtype, scale, what.need.accumulator,
                                one_sign=what.need.one_sign)  # fmt: skip
        verdict = judge(what.need, dtype, sized, metrics.errors(got, expected, dtype))
        if not verdict.passed:
            return f"wrong result{when}: {verdict.failing()}"
    return ""


class Bench:
    """Times workloads on one device; knows the device's measured peaks."""

    def __init__(self, request: BenchRequest) -> None:
        self.request = request
        self.npu = request.device.startswith("npu")
        self.index = int(request.device.partition(":")[2] or 0)
        self._peaks: Peaks | None = None
        self._block: Any = None

    def row(self, work: Workload) -> WorkloadTiming:
        """Everything about one workload; `problem` says why it has no valid times.

        An enlarged sample that its own reference refuses is timed as it is in the row.
        """
        try:
            return self._row(work)
        except CustomReferenceError as error:
            return WorkloadTiming(work, problem=f"error of the reference: {error}",
                                  blame=REFERENCE)  # fmt: skip
        except ReferenceRefusesError as error:
            if work.enlarged:
                return self.row(small(OPS[work.op], work.dtype))
            return WorkloadTiming(work, problem=f"the reference refuses these inputs: {error}")

    def _row(self, work: Workload) -> WorkloadTiming:
        recipe, row = inputs(work, self.request.seed), WorkloadTiming(work)
        with torch.no_grad():
            try:
                what = target(work.op, recipe, self.request.device, self.request.recording)
                run = what.run()
                row.problem = wrong(what, run)
            except ReferenceRefusesError:
                raise
            except Exception as error:
                row.problem = one_line(error)
            if row.problem:
                return row
            row.cost = cost(what.op, recipe, what.reference.native)
            self._time(what, run, row)
            row.problem = wrong(what, run, " after timing")
        return row

    def _time(self, what: BenchTarget, run: Callable[[], Any], row: WorkloadTiming) -> None:
        clock = self.clock(run)
        for kind in self.request.kinds:
            row.times[kind] = self._sampled(getattr(clock, METHODS[kind]))
        if self.request.cold:
            row.times["cold"] = self._cold(what, row.work)
        other = self._rival(what, row)
        if other is None:
            return
        kind = "e2e" if "e2e" in row.times else next(iter(row.times))
        self._interleaved(clock, Clock(other, lambda: None), kind, row)

    def clock(self, run: Callable[[], Any]) -> Clock:
        if not self.npu:
            return Clock(run, lambda: synchronize(self.request.device))
        return NpuClock(run, self.index, self._blocker)

    def _blocker(self) -> Tensor:
        """Work that keeps the stream busy while launches are queued."""
        if self._block is None:
            self._block = torch.ones(512, 512).to(self.request.device)
        return self._block @ self._block

    def _sampled(self, sample: Callable[[], float]) -> TimeSpread:
        warm_up(sample, self.request.limits)
        return measure(sample, self.request.limits)

    def _cold(self, what: BenchTarget, work: Workload) -> TimeSpread:
        """End to end with inputs that no cache holds: many copies, taken in turn."""
        size = max(sum(s.array.nbytes for s in inputs(work, self.request.seed).slots), 1)
        runs = [what.run() for _ in range(max(2, min(64, _COLD_BYTES // size)))]
        clock = self.clock(cold(lambda i: runs[i](), len(runs)))
        return self._sampled(clock.end_to_end)

    def _rival(self, what: BenchTarget, row: WorkloadTiming) -> Callable[[], Any] | None:
        stored = self.request.baseline.get(row.work.name)
        if stored:
            row.rival = dict(stored)
            shared = [k for k in row.times if k in stored]
            row.verdicts = {k: with_baseline(row.times[k], stored[k]) for k in shared}
        elif self.request.baseline:
            row.note = "not in the baseline"
        if self.request.against not in ("torch", "numpy"):
            return None
        try:
            return what.rival(self.request.against)
        except rivals.NoRivalError as error:
            row.note = str(error)
            return None

    def _interleaved(self, ours: Clock, theirs: Clock, kind: str, row: WorkloadTiming) -> None:
        """Alternate rounds of both sides, so that drift hits both alike."""
        limits = SamplingLimits(0.05, self.request.limits.sampling / _ROUNDS)
        mine, other = getattr(ours, METHODS[kind]), theirs.end_to_end
        warm_up(other, self.request.limits)
        samples = [(collect(mine, limits), collect(other, limits)) for _ in range(_ROUNDS)]
        row.times[kind], row.rival[kind] = (
            summarize([t for pair in samples for t in pair[side]]) for side in (0, 1)
        )
        rounds = [(float(np.median(a)), float(np.median(b))) for a, b in samples]
        row.verdicts[kind] = compare(row.times[kind], row.rival[kind], rounds)

    def peaks(self, dtypes: Iterable[str] = ()) -> Peaks:
        """Measured copy bandwidth and product rates of the device: of float32, and of those of
        `dtypes` that it multiplies matrices of."""
        if self._peaks is None:
            with torch.no_grad():
                rates = {"float32": self._product_rate("float32")}
                for dtype in sorted({*dtypes} & (FORMATS.keys() - rates.keys())):
                    with contextlib.suppress(Exception):  # it has no such product: no roof
                        rates[dtype] = self._product_rate(dtype)
                self._peaks = Peaks(self._copy_rate(), max(rates.values()), rates)
        return self._peaks

    def _copy_rate(self) -> float:
        source = torch.ones(4 << 20).to(self.request.device)
        times = self._sampled(self.clock(lambda: source.clone()).device)
        return 2 * (4 << 20) * 4 / (times.least * 1e-6)

    def _product_rate(self, dtype: str) -> float:
        a = torch.ones(768, 768, dtype=getattr(torch, dtype)).to(self.request.device)
        times = self._sampled(self.clock(lambda: a @ a).device)
        return 2 * 768**3 / (times.least * 1e-6)


METHODS: Final = {"device": "device", "host": "host", "e2e": "end_to_end"}


def as_json(
    rows: Sequence[WorkloadTiming], environment: Mapping[str, Any], peaks: Peaks | None
) -> dict[str, Any]:
    """A run as plain data; also what --against FILE reads."""
    return {
        "schema": rivals.BASELINE,
        "environment": dict(environment),
        "peaks": None if peaks is None else {"bytes_per_second": peaks.bandwidth,
                                             "flops_per_second": peaks.compute,
                                             "flops_by_dtype": dict(peaks.products),
                                             "nominal_flops": dict(peaks.nominal)},
        "results": [_row_json(row) for row in rows],
    }  # fmt: skip


def _row_json(row: WorkloadTiming) -> dict[str, Any]:
    return {
        "name": row.work.name, "op": row.work.op, "dtype": row.work.dtype,
        "shapes": [list(s) for s in row.work.shapes], "problem": row.problem,
        "times": {k: t.as_json() for k, t in row.times.items()},
        "bytes": row.cost.nbytes, "flops": row.cost.flops,
        "bytes_per_second": row.bandwidth, "flops_per_second": row.rate,
        "rival": {k: t.as_json() for k, t in row.rival.items()},
        "verdicts": {k: {"verdict": c.word, "ratio": c.ratio, "low": c.low, "high": c.high}
                     for k, c in row.verdicts.items()},
        "note": row.note, "doubt": row.doubt,
    }  # fmt: skip
