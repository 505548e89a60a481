"""torch.distributed.pipelining's names: models are not cut into stages."""

from .._compat.refusals import refusals

_NAMES = (
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS", "SplitPoint", "build_stage", "pipe_split", "pipeline",
)  # fmt: skip
_WHY = "mindtorch cuts no models into stages"

__path__: list[str] = []  # what is below is in absent_modules.txt
__all__ = list(_NAMES)
__getattr__ = refusals("torch.distributed.pipelining", _WHY, _NAMES)
