"""torch.utils.benchmark: how long a statement takes, many measurements side by side as a table.

Random parameters and tensors for it are torch's. Counting instructions by Valgrind and statements
in C++ are refused.
"""

from ..._compat.refusals import refusals
from ._compare import Colorize, Compare
from ._counts import FunctionCount, FunctionCounts
from ._fuzzer import FuzzedParameter, FuzzedSparseTensor, FuzzedTensor, Fuzzer, ParameterAlias
from ._measurement import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)
from ._timer import Language, Timer, set_torch_threads, timer

__all__ = [
    "Colorize",
    "Compare",
    "FunctionCount",
    "FunctionCounts",
    "FuzzedParameter",
    "FuzzedSparseTensor",
    "FuzzedTensor",
    "Fuzzer",
    "Language",
    "Measurement",
    "ParameterAlias",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]  # fmt: skip

__getattr__ = refusals(
    "torch.utils.benchmark",
    "mindtorch times statements in Python and no more",
    ("CallgrindStats", "CopyIfCallgrind"),
)  # fmt: skip
