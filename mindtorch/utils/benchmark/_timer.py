"""Owns timing a statement: its blocks, and when enough of them ran."""

from __future__ import annotations

import enum
import textwrap
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mindtorch

from ._measurement import Measurement, TaskSpec

_MOST_RUNS = (1 << 31) // 10


def timer() -> float:
    """Seconds on a clock, once what was launched on an NPU is done."""
    if mindtorch.npu.is_available() and mindtorch.npu.is_initialized():
        mindtorch.npu.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """What a statement is written in: Python here."""

    PYTHON = 0
    CPP = 1


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Inside, kernels use `n` threads."""
    before = mindtorch.get_num_threads()
    try:
        mindtorch.set_num_threads(n)
        yield
    finally:
        mindtorch.set_num_threads(before)


class Timer:
    """Measures `stmt`, which sees `globals`, after `setup`; labels say what it is in tables.

    ValueError for a statement that is not Python.
    """

    __module__ = "mindtorch.utils.benchmark.utils.timer"

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
        timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None,
        env: str | None = None, num_threads: int = 1, language: Language | str = Language.PYTHON,
    ):  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (*Language, "py", "python", "cpp", "c++"):
            raise ValueError(f"Invalid language `{language}`.")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Timer: statements are Python, not {language}")
        if global_setup:
            raise ValueError("global_setup is C++ only, got `" + global_setup + "`. Most likely"
                             " this code can simply be moved to `setup`.")  # fmt: skip
        scope = {"torch": mindtorch, **(globals or {})}
        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip()
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=scope)
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of `number` runs, after some to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return self._measurement(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Refused: see `Timer.blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """Refused: see `Timer.blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, min_run_time: float) -> int:
        """Runs for each measurement: so many that reading the clock weighs nothing."""
        overhead = sorted(self._timeit(0) for _ in range(5))[2]
        number = 1
        while True:
            elapsed = self._timeit(number)
            quiet = overhead / elapsed <= 1e-4 and elapsed >= min_run_time / 1000
            if quiet or elapsed > min_run_time or number > _MOST_RUNS:
                return number
            number *= 10

    def _blocks(
        self, min_run_time: float, most: float, enough: Callable[[Measurement], bool],
        callback: Callable[[int, float], Any] | None, shortest: float,
    ) -> Measurement:  # fmt: skip
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(shortest)
            times: list[float] = []
            while sum(times) < min_run_time or not enough(self._measurement(number, times)):
                times.append(self._timeit(number))
                if callback is not None:
                    callback(number, times[-1])
                if sum(times) > most:
                    break
        return self._measurement(number, times)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measurements of blocks of runs for `min_run_time` seconds."""
        return self._blocks(min_run_time, float("inf"), lambda m: True, callback, min_run_time)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:  # fmt: skip
        """Measurements until their quartiles are `threshold` of the median apart, or time is up."""

        def enough(measurement: Measurement) -> bool:
            return len(measurement.raw_times) > 3 and measurement.meets_confidence(threshold)

        return self._blocks(min_run_time, max_run_time, enough, callback, 0.05)

    def collect_callgrind(self, *_: object, **__: object) -> Any:
        """Refused: instructions are not counted."""
        raise NotImplementedError(
            "torch.utils.benchmark.Timer.collect_callgrind: mindtorch counts no instructions, use"
            " blocked_autorange"
        )
