"""torch.distributed.pipelining: a model's stages in processes, one behind the other.

A model is cut by a trace, or by hand into PipelineStages; schedules take batches through in parts.
"""

from ..._compat.refusals import refusals
from .pipe import Pipe, SplitPoint, pipe_split, pipeline
from .schedules import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS", "SplitPoint", "pipe_split", "pipeline",
]  # fmt: skip
__getattr__ = refusals(
    "torch.distributed.pipelining", "backward is one pass here, of inputs and weights together",
    ("ScheduleDualPipeV", "ScheduleInterleavedZeroBubble", "ScheduleZBVZeroBubble", "build_stage"),
)  # fmt: skip
