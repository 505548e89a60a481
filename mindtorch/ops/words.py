"""Owns the words that rows are written in: `from ...words import *`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._tensor import dtype as dt
from .._tensor.dtype import dtype as Dtype
from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor
from .._tensor.types import Array, Number
from .rules import scalar_name, wrap_dim
from .samples import Arg, Sample, calls
from .spec import aten, call, composite, op

__all__ = [
    "Any", "Arg", "Array", "Callable", "Dtype", "Geometry", "Number", "Sample", "Sequence",
    "Tensor", "aten", "call", "calls", "composite", "dt", "np", "op", "scalar_name",
    "wrap_dim",
]  # fmt: skip
