"""Names of types that annotations share; holds no code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

# A numpy array of any shape and dtype: what cpu kernels take and give.
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
# A Python number, as torch's Scalar.
Number: TypeAlias = bool | int | float | complex
# A shape as programs write it: sizes in order.
Shape: TypeAlias = Sequence[int]
