"""Owns torch.testing.make_tensor: tensors of any dtype with values drawn evenly from a range."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TypeAlias

from .._functional.creation import empty, full, sizes_of
from .._functional.queries import memory_format as MemoryFormat
from .._random.draws import rand, randint
from .._tensor import dtype as dtypes
from .._tensor.device import device as Device, resolve
from .._tensor.dtype import finfo, iinfo
from .._tensor.tensor import Tensor
from .._tensor.types import Number
from ..ops.spec import aten

Real: TypeAlias = int | float

_UNSUPPORTED = (dtypes.quint8, dtypes.qint8, dtypes.qint32)
_SIGNED = (-9, 10)
_FLOATING = (-9, 9)


def make_tensor(
    *shape: int | Sequence[int],
    dtype: dtypes.dtype,
    device: str | Device,
    low: Real | None = None,
    high: Real | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """A tensor of `shape` with values from `[low, high)`; both are cut to what the dtype holds.

    Without them: bool `[0, 2)`, unsigned `[0, 10)`, signed `[-9, 10)`, floating and complex (each
    part) `[-9, 9)`. `exclude_zero` puts 1 (integers) or the smallest normal number (floating) where
    a 0 was drawn. `noncontiguous` gives every other element of a longer last dim.

    ValueError: bounds that are NaN, empty or beyond the dtype; a gradient of integers;
    `noncontiguous` together with `memory_format`. (torch.testing.make_tensor, torch 2.13.)
    """
    if not isinstance(dtype, dtypes.dtype) or dtype in _UNSUPPORTED:
        raise TypeError(
            f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor(). To"
            " request support, file an issue at: https://github.com/pytorch/pytorch/issues"
        )
    inexact = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not inexact:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, "
            f"but got dtype={dtype}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    sizes = sizes_of(shape, "empty") if shape else ()
    apart = noncontiguous and math.prod(sizes) > 1
    if apart:
        sizes = (*sizes[:-1], 2 * sizes[-1])
    result = _sample(sizes, dtype, device, *_bounds(dtype, low, high))
    if apart:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = aten.clone(result, memory_format=str(memory_format))
    if exclude_zero:
        result[result == 0] = _smallest(dtype)
    return result.requires_grad_() if requires_grad else result


def _bounds(dtype: dtypes.dtype, low: Real | None, high: Real | None) -> tuple[Real, Real]:
    """What is asked for, or the dtype's own range, within what the dtype holds."""
    inexact = dtype.is_floating_point or dtype.is_complex
    least: Real
    most: Real
    if dtype is dtypes.bool:
        default, least, most = (0, 2), 0, 2
    elif inexact:
        default, least, most = _FLOATING, finfo(dtype).min, finfo(dtype).max
    else:
        default = _SIGNED if iinfo(dtype).min < 0 else (0, 10)
        least, most = iinfo(dtype).min, iinfo(dtype).max + 1
    start = default[0] if low is None else low
    stop = default[1] if high is None else high
    if start != start or stop != stop:
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={start} and high={stop}")
    if start == stop and inexact:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is "
            "deprecated since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif start >= stop:
        raise ValueError(f"`low` must be less than `high`, but got {start} >= {stop}")
    elif stop < least or start >= most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{start}, {stop}), but {dtype} "
            f"only supports [{least}, {most})"
        )
    start, stop = max(start, least), min(stop, most)
    return (start, stop) if inexact else (math.ceil(start), math.ceil(stop))


def _sample(
    shape: tuple[int, ...], dtype: dtypes.dtype, device: str | Device, low: Real, high: Real
) -> Tensor:
    if not (dtype.is_floating_point or dtype.is_complex):
        return randint(int(low), int(high), shape, dtype=dtype, device=device)
    if low == high:
        return full(shape, low, dtype=dtype, device=resolve(device))
    if dtype.itemsize == 1:  # uniform_ has no float8, which the values round to
        return (rand(shape, device=device) * (high - low) + low).to(dtype)
    result = empty(shape, dtype=dtype, device=device)
    (aten.view_as_real(result) if dtype.is_complex else result).uniform_(low, high)
    return result


def _smallest(dtype: dtypes.dtype) -> Number:
    if dtype.is_complex:
        return complex(finfo(dtype).tiny, finfo(dtype).tiny)
    return finfo(dtype).tiny if dtype.is_floating_point else 1
