"""Owns a measurement: its times, what they say together, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

import mindtorch

V = TypeVar("V")

# The spread (quartile to quartile, of the median) from which a measurement warns of itself.
_SPREAD, _WIDE_SPREAD = 0.1, 0.25
_UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1))
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
_MOST_FIGURES, _SMALLEST_INTERVAL = 4, 25e-9


@dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was measured: the statement, its setup, and the words for it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """Label and second label, the statement where there is no label."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else f"stmt:\n{_indented(self.stmt)}"

    def setup_str(self) -> str:
        """The setup as a summary shows it."""
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{_indented(self.setup)}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """The words for what was measured, a line each."""
        lines = (self.title, self.description or "", self.setup_str())
        return "\n".join(line for line in lines if line)


_SPEC = frozenset(f.name for f in fields(TaskSpec))


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())


@dataclass(init=True, repr=False)
class Measurement:
    """Times in seconds of a statement that ran `number_per_run` times for each of them."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _SPEC:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """Seconds of one run."""
        return [t / self.number_per_run for t in self.raw_times]

    def _quantile(self, share: float) -> float:
        return float(np.quantile(self.times, share)) if self.raw_times else -1.0

    @property
    def median(self) -> float:
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        return float(np.mean(self.times)) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """Seconds between the quartiles."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median mean something, by the spread of its middle half."""
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = max(1.645 * float(np.std(middle)) / len(middle) ** 0.5, _SMALLEST_INTERVAL)
        figures = math.floor(math.log10(self.median / interval))
        return min(max(figures, 1), _MOST_FIGURES)

    def meets_confidence(self, threshold: float = _SPREAD) -> bool:
        """Whether the quartiles are less than `threshold` of the median apart."""
        return self.iqr / self.median < threshold

    def _warning(self) -> str:
        if self.meets_confidence():
            return ""
        wide = not self.meets_confidence(_WIDE_SPREAD)
        cause = (
            "This suggests significant environmental influence."
            if wide
            else "This could indicate system fluctuation."
        )
        share = self.iqr / self.median * 100
        return (
            f"  WARNING: Interquartile range is {share:.1f}% of the median measurement.\n"
            f"           {cause}"
        )

    @property
    def has_warnings(self) -> bool:
        return bool(self._warning())

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def env(self) -> str:
        return self.task_spec.env or "Unspecified env"

    @property
    def as_row_name(self) -> str:
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        several = len(self.raw_times) > 1
        unit, scale = select_unit(self.median)
        threads = self.task_spec.num_threads
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if several else ''}{self.median / scale:.2f} {unit}")
        if len(self.raw_times) >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(
            f"  {len(self.raw_times)} measurement{'s' * several}, {self.number_per_run} runs"
            f" {'per measurement,' if several else ','} {threads} thread{'s' * (threads > 1)}"
        )
        return "\n".join([*lines, self._warning()]).strip()

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all that measured it."""
        groups: dict[TaskSpec, list[float]] = {}
        for measurement in measurements:
            groups.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, times, spec) for spec, times in groups.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which `t` seconds have few figures, and its seconds."""
    logarithm = mindtorch.tensor(t).double().log10().float()  # the float32 nearest to it
    thousands = int(logarithm.item() // 3)
    return _UNITS[thousands + 3] if -3 <= thousands < 0 else _UNITS[-1]


def unit_to_english(u: str) -> str:
    """`us` → `microsecond`."""
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """`x` with `n` figures, as a float32 has them."""
    magnitude = int(mindtorch.tensor(x).abs().log10().ceil().item())
    scale = 10 ** (magnitude - n)
    return float(mindtorch.tensor(x / scale).round() * scale)


def ordered_unique(elements: Iterable[V]) -> list[V]:
    """Each element once, where it came first."""
    return list(dict.fromkeys(elements))


TaskSpec.__module__ = Measurement.__module__ = "mindtorch.utils.benchmark.utils.common"
