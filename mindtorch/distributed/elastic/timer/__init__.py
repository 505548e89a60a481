"""torch.distributed.elastic.timer: blocks of code that have to end in time."""

from ...._compat.refusals import refusals
from .api import TimerClient, TimerRequest, TimerServer, configure, expires
from .local_timer import LocalTimerClient, LocalTimerServer

__all__ = [
    "LocalTimerClient", "LocalTimerServer", "TimerClient", "TimerRequest", "TimerServer",
    "configure", "expires",
]  # fmt: skip
__getattr__ = refusals(
    "torch.distributed.elastic.timer", "mindtorch has timers that tell by queues, not by files",
    ("FileTimerClient", "FileTimerRequest", "FileTimerServer"),
)  # fmt: skip
