"""torch._guards: what libraries ask about what is being compiled."""

from __future__ import annotations

from dataclasses import dataclass

from mindtorch.fx.fake import TRACING, FakeTensorMode, active_fake_mode, detect_fake_mode

__all__ = ["TracingContext", "active_fake_mode", "detect_fake_mode"]


@dataclass
class TracingContext:
    """What is being compiled: while a backend is at work."""

    fake_mode: FakeTensorMode

    @staticmethod
    def try_get() -> TracingContext | None:
        """The context of the backend that is at work, None without one."""
        return TracingContext(TRACING.mode) if TRACING.mode is not None else None

    @staticmethod
    def get() -> TracingContext:
        """The same; RuntimeError without one."""
        context = TracingContext.try_get()
        if context is None:
            raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")
        return context
