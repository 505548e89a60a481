"""Owns which dtypes a row's own cpu code takes, tried once on its plain case."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache

import numpy as np

from mindtorch.ops import OPS, Op
from mindtorch.testing.kernels import reference_kernels
from mindtorch.testing.placement import from_host

from ..run.tensors import call
from .case import designed
from .recipe import recipe
from .spaces.random import RANDOM_KINDS


def takes(op: Op, dtypes: Sequence[str]) -> tuple[str, ...]:
    """Those of `dtypes` that the row's own cpu code takes in its plain case."""
    return tuple(d for d in dtypes if _takes(op.name, d))


@cache
def _takes(name: str, dtype: str) -> bool:
    op = OPS[name]
    if name in RANDOM_KINDS:
        return True
    try:
        inputs = recipe(op.testing, designed(name, "functional", {"dtype": dtype}), 0)
        args, kwargs = inputs.fill(lambda s: from_host(s.array))
        with np.errstate(all="ignore"), reference_kernels(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of deprecated rows: nobody here chose to call them
            call(op, args, kwargs)
    except Exception:
        return False
    return True
