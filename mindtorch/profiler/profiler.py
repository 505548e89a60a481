"""torch.profiler.profiler: the profiler's module under torch's name."""

from . import ProfilerAction, _default_schedule_fn, profile, schedule, tensorboard_trace_handler

__all__ = ["ProfilerAction", "_default_schedule_fn", "profile", "schedule",
           "tensorboard_trace_handler"]  # fmt: skip
