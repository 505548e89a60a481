"""Names of types that annotations share; holds no code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if sys.version_info >= (3, 11):
    from typing import Self as Self
elif TYPE_CHECKING:
    from typing_extensions import Self as Self
else:
    Self = Any  # annotations are read by programs, too

# A numpy array of any shape and dtype: what cpu kernels take and give.
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
# A Python number, as torch's Scalar.
Number: TypeAlias = bool | int | float | complex
# A shape as programs write it: sizes in order.
Shape: TypeAlias = Sequence[int]
