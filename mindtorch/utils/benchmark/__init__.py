"""torch.utils.benchmark: how long a statement takes, many measurements side by side as a table.

Counting instructions by Valgrind, statements in C++ and fuzzed tensors are refused.
"""

from ..._compat.refusals import refusals
from ._compare import Colorize, Compare
from ._measurement import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)
from ._timer import Language, Timer, set_torch_threads, timer

__all__ = ["Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer",
           "ordered_unique", "select_unit", "set_torch_threads", "timer", "trim_sigfig",
           "unit_to_english"]  # fmt: skip

__getattr__ = refusals(
    "torch.utils.benchmark",
    "mindtorch times statements in Python and no more",
    ("CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts", "FuzzedParameter",
     "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "ParameterAlias"),
)  # fmt: skip
