"""torch.utils.throughput_benchmark: a module called by several threads at once, and how often."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]

_UNITS = (("s", 1e6), ("ms", 1e3))


def format_time(
    time_us: float | None = None, time_ms: float | None = None, time_s: float | None = None
) -> str:
    """A time with its unit; AssertionError unless one of the three is given."""
    passed = [(time_us, 1.0), (time_ms, 1e3), (time_s, 1e6)]
    microseconds = [value * factor for value, factor in passed if value is not None]
    if len(microseconds) != 1:
        raise AssertionError("Expected only one of time_us, time_ms, time_s is given.")
    for unit, least in _UNITS:
        if microseconds[0] >= least:
            return f"{microseconds[0] / least:.3f}{unit}"
    return f"{microseconds[0]:.3f}us"


@dataclass
class _Run:
    """What one call of `benchmark` did."""

    latency_avg_ms: float
    num_iters: int
    num_calling_threads: int


class ExecutionStats:
    """What a benchmark measured."""

    def __init__(self, c_stats: Any, benchmark_config: Any) -> None:
        self._c_stats, self.benchmark_config = c_stats, benchmark_config

    @property
    def latency_avg_ms(self) -> float:
        """The mean time of a call, in milliseconds."""
        return float(self._c_stats.latency_avg_ms)

    @property
    def num_iters(self) -> int:
        """How often the module was called."""
        return int(self._c_stats.num_iters)

    @property
    def iters_per_second(self) -> float:
        """Calls of all threads in a second."""
        return self.num_iters / self.total_time_seconds

    @property
    def total_time_seconds(self) -> float:
        """The time that all calls took, side by side."""
        threads = self.benchmark_config.num_calling_threads
        return self.num_iters * self.latency_avg_ms / 1000.0 / threads

    def __str__(self) -> str:
        return "\n".join([
            "Average latency per example: " + format_time(time_ms=self.latency_avg_ms),
            f"Total number of iterations: {self.num_iters}",
            f"Total number of iterations per second (across all threads):"
            f" {self.iters_per_second:.2f}",
            "Total time: " + format_time(time_s=self.total_time_seconds),
        ])  # fmt: skip


class ThroughputBenchmark:
    """Calls a module with inputs of `add_input`, drawn at random, from several threads."""

    def __init__(self, module: Callable[..., Any]) -> None:
        self._module = module
        self._inputs: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def run_once(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self._module(*args, **kwargs)

    def add_input(self, *args: Any, **kwargs: Any) -> None:
        """Add one input."""
        self._inputs.append((args, kwargs))

    def benchmark(
        self, num_calling_threads: int = 1, num_warmup_iters: int = 10, num_iters: int = 100,
        profiler_output_path: str = "",
    ) -> ExecutionStats:  # fmt: skip
        """Call the module `num_iters` times in all; RuntimeError without an input.

        NotImplementedError for `profiler_output_path`.
        """
        if profiler_output_path:
            raise NotImplementedError("ThroughputBenchmark: profiler_output_path: use a profiler")
        if not self._inputs:
            raise RuntimeError(
                "Please provide benchmark inputs.Did you forget to call add_input()? "
            )
        counts = [num_iters // num_calling_threads] * num_calling_threads
        counts[0] += num_iters - sum(counts)
        seconds = [0.0] * num_calling_threads
        failures: list[BaseException] = []
        ready = threading.Barrier(num_calling_threads)

        def call(at: int) -> None:
            try:
                for _ in range(num_warmup_iters):
                    self._call()
                ready.wait()
                start = time.perf_counter()
                for _ in range(counts[at]):
                    self._call()
                seconds[at] = time.perf_counter() - start
            except BaseException as error:
                ready.abort()
                failures.append(error)

        threads = [threading.Thread(target=call, args=(i,)) for i in range(num_calling_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        run = _Run(sum(seconds) * 1e3 / num_iters, num_iters, num_calling_threads)
        return ExecutionStats(run, run)

    def _call(self) -> None:
        args, kwargs = random.choice(self._inputs)
        self._module(*args, **kwargs)
