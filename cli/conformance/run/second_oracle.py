"""Owns the second witness: what torch computes on the CPU for a case, where torch is installed.

The reference of a row is the row's own code; torch shares none of it. It is asked where device and
reference disagree: a verdict then says who stands alone.
"""

from __future__ import annotations

import os
import pickle
import signal
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

import numpy as np

from mindtorch.ops import Op

from ...judge.metrics import Errors, errors
from ...judge.precision import Array, rounded
from ...laws.compare import oracle_function
from ..cases.recipe import Recipe, Slot

_silent: list[bool] = []


def silence() -> None:
    """Ask torch nothing in this process: importing it takes seconds that a deadline lacks."""
    _silent.append(True)
    _torch.cache_clear()


@cache
def _torch() -> ModuleType | None:
    """torch, or None where it is not installed, or not to be asked."""
    if _silent or find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(1)
    return torch


# Seconds for one answer; what takes longer is no answer.
_PATIENCE: Final = 30


def testify(op: Op, recipe: Recipe) -> list[Any] | None:
    """torch's results as numpy arrays (bfloat16 by ml_dtypes); None where it cannot say.

    It is asked in a process of its own: where it dies (torch.lcm of the least int32 divides by
    zero) the verdict on the device must not be CRASH.
    """
    torch = _torch()
    return None if torch is None else apart(lambda: _answer(op, recipe, torch))


def apart(compute: Callable[[], list[Any] | None]) -> list[Any] | None:
    """What `compute` gives in a copy of this process; None where that dies or takes too long."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Of threads of the device that the copy lacks; it never calls the device.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        _reply(compute, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        output = pipe.read()
    _, status = os.waitpid(child, 0)
    answer: list[Any] | None = pickle.loads(output) if output and not status else None
    return answer


def _reply(compute: Callable[[], list[Any] | None], write: int) -> None:
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_PATIENCE)
        with os.fdopen(write, "wb") as pipe:
            pipe.write(pickle.dumps(compute()))
        code = 0
    finally:
        os._exit(code)


def _answer(op: Op, recipe: Recipe, torch: Any) -> list[Any] | None:
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


def _function(op: Op, torch: ModuleType) -> Any:
    """torch's function of the row; its backward kernels are only reachable as aten operators."""
    return oracle_function(op, torch)


def _tensor(torch: ModuleType, slot: Slot) -> Any:
    array = np.array(slot.array, order="C")
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _array(torch: ModuleType, tensor: Any) -> Array:
    tensor = tensor.detach().contiguous()
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


# ULP within which two implementations of one function are taken to agree.
_NEAR: Final = 64.0


def agrees(ours: Array, theirs: Array) -> bool:
    """Whether results are the same up to rounding, NaN and infinities in the same places."""
    if ours.shape != theirs.shape:
        return False
    name = theirs.dtype.name
    golden, mine = _wide(theirs), _wide(ours)
    if golden is None or mine is None:
        return bool((ours == theirs).all())
    deviations = errors(rounded(mine, name), golden, name)
    return deviations is not None and not deviations.nonfinite and _close(deviations)


def _close(deviations: Errors) -> bool:
    largest = np.abs(np.where(np.isfinite(deviations.golden), deviations.golden, 0.0)).max(
        initial=0.0
    )
    slack = deviations.absolute <= _NEAR * deviations.form.unit * largest * 2.0**-10
    return bool(((np.abs(deviations.ulp) <= _NEAR) | slack).all())


def _wide(array: Array) -> Array | None:
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
        return array.astype(np.float64)
    return None
