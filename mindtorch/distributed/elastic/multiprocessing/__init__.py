"""torch.distributed.elastic.multiprocessing: of it, errors."""

from mindtorch._compat.refusals import refusals

__getattr__ = refusals(
    "torch.distributed.elastic.multiprocessing",
    "mindtorch has process groups and DistributedDataParallel, not this",
    (
        "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "NumaOptions",
        "PContext", "ProcessFailure", "RunProcsResult", "SignalException", "Std",
        "SubprocessContext", "get_logger", "start_processes", "to_map",
    ),
)  # fmt: skip
