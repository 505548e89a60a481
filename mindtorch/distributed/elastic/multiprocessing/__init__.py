"""torch.distributed.elastic.multiprocessing: of it, errors, and where output goes."""

from mindtorch._compat.refusals import refusals

from .api import SignalException, Std, to_map

__all__ = ["SignalException", "Std", "to_map"]

__getattr__ = refusals(
    "torch.distributed.elastic.multiprocessing",
    "mindtorch has process groups and DistributedDataParallel, not this",
    (
        "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "NumaOptions",
        "PContext", "ProcessFailure", "RunProcsResult",
        "SubprocessContext", "get_logger", "start_processes",
    ),
)  # fmt: skip
