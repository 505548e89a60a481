"""Owns the second witness: what torch computes on the CPU for a case, where torch is installed.

The reference of a row is the row's own code; torch shares none of it. It is asked where device and
reference disagree: a verdict then says who stands alone.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from mindtorch.laws.compare import oracle_function
from mindtorch.laws.judge.metrics import errors
from mindtorch.laws.judge.precision import rounded
from mindtorch.ops import Op

from ..cases.recipe import Recipe, Slot


@cache
def _torch() -> Any:
    """torch, or None where it is not installed."""
    if find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(1)
    return torch


def testify(op: Op, recipe: Recipe) -> list[Any] | None:
    """torch's results as numpy arrays (bfloat16 by ml_dtypes); None where it cannot say."""
    torch = _torch()
    if torch is None:
        return None
    try:
        function = _function(op, torch)
        args, kwargs = recipe.fill(lambda slot: _tensor(torch, slot))
        kwargs = {k: getattr(torch, repr(v).rpartition(".")[2]) if k == "dtype" else v
                  for k, v in kwargs.items()}  # fmt: skip
        with torch.no_grad():
            answer = function(*args, **kwargs)
    except Exception:
        return None  # torch has no such function, or refuses these inputs
    results = answer if isinstance(answer, tuple | list) else [answer]
    return [_array(torch, t) for t in results if isinstance(t, torch.Tensor)]


def _function(op: Op, torch: Any) -> Any:
    """torch's function of the row; its backward kernels are only reachable as aten operators."""
    return oracle_function(op, torch)


def _tensor(torch: Any, slot: Slot) -> Any:
    array = np.array(slot.array, order="C")
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _array(torch: Any, tensor: Any) -> Any:
    tensor = tensor.detach().contiguous()
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


# ULP within which two implementations of one function are taken to agree.
_NEAR: Final = 64.0


def agrees(ours: Any, theirs: Any) -> bool:
    """Whether results are the same up to rounding, NaN and infinities in the same places."""
    if ours.shape != theirs.shape:
        return False
    name = theirs.dtype.name
    golden = _wide(theirs)
    if golden is None:
        return bool((ours == theirs).all())
    deviations = errors(rounded(_wide(ours), name), golden, name)
    return deviations is not None and not deviations.nonfinite and _close(deviations)


def _close(deviations: Any) -> bool:
    largest = np.abs(np.where(np.isfinite(deviations.golden), deviations.golden, 0.0)).max(
        initial=0.0
    )
    slack = deviations.absolute <= _NEAR * deviations.form.unit * largest * 2.0**-10
    return bool(((np.abs(deviations.ulp) <= _NEAR) | slack).all())


def _wide(array: Any) -> Any:
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
        return array.astype(np.float64)
    return None
