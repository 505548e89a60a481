"""Owns what an operator refuses of a number's value, in torch's words.

Plans know numbers by their class, so that these look at each call.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite
from typing import Any

from .._tensor.dtype import BOOL, COMPLEX, FLOAT, INTEGER, dtype as Dtype
from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor
from .rules import NUMBERS
from .spec import aten

_WORDS = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
}  # fmt: skip
# The largest finite values (IEEE 754; bfloat16 has float32's exponent and 8 bits of fraction).
_MOST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}

_SMALLEST_MOST = _MOST["float16"]


def fits(value: Any, dtype: Dtype, name: str = "") -> None:
    """RuntimeError where a number is outside of a dtype's range; OverflowError past 64 bits.

    As c10::overflows: bool takes all, unsigned integers wrap negative whole numbers, infinities
    and NaN are numbers to floating types alone.
    """
    if value.__class__ is int and not -(1 << 63) <= value < 1 << 64:
        raise OverflowError("int too big to convert")
    if dtype.category == FLOAT and value.__class__ is not complex and abs(value) <= _SMALLEST_MOST:
        return
    short = str(dtype).removeprefix("torch.")
    if isinstance(value, complex):
        if dtype.category == COMPLEX or not value.imag:
            return
    elif dtype.category == INTEGER:
        low = 0 if value.__class__ is float and _unsigned(dtype) else _low(dtype)
        if isfinite(value) and low <= value <= _high(dtype):
            return
    elif dtype.category != FLOAT or not isfinite(value) or abs(value) <= _MOST.get(short, inf):
        return
    name = name or _WORDS.get(short, short)
    raise RuntimeError(f"value cannot be converted to type {name} without overflow")


_MOST_VIEWS = 1 << 26  # some 40 GB of tensors
_LARGE = 1 << 30  # bytes


def refuse_views(count: int) -> None:
    """RuntimeError for more views at once than memory holds."""
    if count > _MOST_VIEWS:
        raise RuntimeError(f"std::bad_alloc: no memory holds {count} views; ask for fewer")


def reserve(shape: tuple[int, ...], like: Tensor) -> None:
    """RuntimeError where no memory is to be had for a result that is computed in many parts."""
    geom = like._geom.fresh(shape)
    if geom.numel * geom.dtype.itemsize > _LARGE:
        aten.empty(shape, dtype=like.dtype, device=like.device)


def _high(dtype: Dtype) -> int:
    bits = 8 * dtype.itemsize
    return (1 << bits) - 1 if _unsigned(dtype) else (1 << bits - 1) - 1


def _low(dtype: Dtype) -> int:
    return -_high(dtype) if _unsigned(dtype) else -_high(dtype) - 1


def _unsigned(dtype: Dtype) -> bool:
    return str(dtype).startswith("torch.uint")


def in_dtype(name: str) -> Callable[[dict[str, Any]], Any]:
    """A number of an ACLNN call as self's dtype holds it.

    Every number but 0 is True to bool; negative ones wrap in unsigned dtypes.
    """

    def convert(a: dict[str, Any]) -> Any:
        value, dtype = a[name], a["self"].dtype
        if dtype.category == BOOL:
            return bool(value)
        if _unsigned(dtype) and value.__class__ is int:
            return value % (1 << 8 * dtype.itemsize)
        return value

    return convert


def converted(*positions: int, items: bool = False) -> Callable[..., Callable[..., None] | None]:
    """`refuses` of a row whose numbers at these positions become elements of the result.

    `items`: torch reads 0-d tensors on cpu as numbers there, too.
    """

    def is_number(value: Any) -> bool:
        lone = items and isinstance(value, Geometry) and not value.ndim
        return value.__class__ in NUMBERS or (lone and value.device.type == "cpu")

    def look(args: tuple[Any, ...], outs: tuple[Any, ...]) -> Callable[..., None] | None:
        numbers = [i for i in positions if i < len(args) and is_number(args[i])]
        dtype = getattr(outs[0], "dtype", None) if outs else None
        if not numbers or dtype is None or dtype.category == BOOL:
            return None

        surely = _SMALLEST_MOST if dtype.category == FLOAT else -1

        def check(*values: Any) -> None:
            for i in numbers:
                value = values[i]
                if value.__class__ in (float, int) and -surely <= value <= surely:
                    continue
                fits(value.item() if isinstance(value, Tensor) else value, dtype)

        return check

    return look
