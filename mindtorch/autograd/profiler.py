"""torch.autograd.profiler: the profiler under its older name."""

from __future__ import annotations

import warnings
from typing import Any, cast

from ..profiler import profile as _profile, record_function
from ..profiler._events import EventList, FunctionEvent, FunctionEventAvg, Interval

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "emit_itt", "emit_nvtx",
           "profile", "record_function"]  # fmt: skip


_OPTIONS = ("record_shapes", "with_flops", "profile_memory", "with_stack", "with_modules",
            "acc_events")  # fmt: skip


class profile(_profile):  # noqa: N801 - torch's name
    """`with profile() as prof:`, with the arguments of torch.autograd.profiler.profile."""

    def __init__(self, enabled: bool = True, **options: Any):
        if not options.get("use_cpu", True):
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        if options.get("use_cuda"):
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use"
                " ``use_device = 'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
        options = {k: v for k, v in options.items() if k in _OPTIONS}
        super().__init__(**options)
        self.enabled, self.entered = enabled, False
        self.profiler = self  # it has averages, none at first, before it is entered

    def __repr__(self) -> str:
        if not self.entered:
            return "<unfinished torch.autograd.profile>"
        return repr(self.events())

    @property
    def function_events(self) -> EventList:
        """The events of the run."""
        return self.events()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The table of the events."""
        return self.events().table(sort_by, row_limit, **options)

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        return self.events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The host's time in all events, µs."""
        return self.events().self_cpu_time_total

    def __enter__(self) -> profile:
        if not self.enabled:
            return cast("profile", None)  # as torch's
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            super().__exit__(*exc)


class emit_nvtx:  # noqa: N801 - torch's name
    """Refused on entry, as by a torch without CUDA: there is nothing that reads the ranges."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled = enabled

    def __enter__(self) -> emit_nvtx:
        if self.enabled:
            raise RuntimeError("emit_nvtx: no NVTX here; use torch.profiler.profile")
        return self

    def __exit__(self, *exc: object) -> None:
        return None


emit_itt = emit_nvtx
