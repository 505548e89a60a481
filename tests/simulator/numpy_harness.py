"""Runs one op of the bundled simulator on numpy arrays, in several memory layouts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
bfloat16 = np.dtype(ml_dtypes.bfloat16)
e4m3 = np.dtype(ml_dtypes.float8_e4m3fn)
e5m2 = np.dtype(ml_dtypes.float8_e5m2)
e8m0 = np.dtype(ml_dtypes.float8_e8m0fnu)
# aclDataType of each numpy dtype, for attributes that name one.
CODES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int64": 9, "uint64": 10,
         "bool": 12, "bfloat16": 27, "float8_e5m2": 35, "float8_e4m3fn": 36,
         "float8_e8m0fnu": 37}  # fmt: skip
INT4, HIFLOAT8 = 29, 34
# Of one rounding to the dtype, and some float32 arithmetic before it.
ULP = {"float32": 2e-5, "float16": 1e-3, "bfloat16": 8e-3, "float8_e4m3fn": 7e-2}


@dataclass(frozen=True)
class Out:
    """An output of `shape`; `given` is its content before the call, zeros where absent."""

    shape: Sequence[int]
    dtype: Any = "float32"
    given: Array | None = None


@dataclass(frozen=True)
class Nibbles:
    """A tensor of packed four-bit elements; `codes` holds integers, whose low four bits count."""

    codes: Array
    name: str = "INT4"


@dataclass(frozen=True)
class Raw:
    """Elements of a type that numpy lacks, by their bytes."""

    bytes: Array
    name: str = "HIFLOAT8"


def code(dtype: Any) -> int:
    return CODES[np.dtype(dtype).name]


def one_by_one(args: Sequence[Any]) -> list[Any]:
    """Arguments whose lists are groups of them, such as operands, attributes and results."""
    return [item for arg in args for item in (arg if isinstance(arg, list) else (arg,))]


class Ops:
    """Calls operators by name with numpy arrays, numbers and tuples in the header's order, in
    groups or one by one."""

    def __init__(self, cann: Any) -> None:
        self.cann = cann

    def put(self, array: Array, layout: str = "contiguous", format: str = "ND") -> Any:
        if layout == "step" and array.ndim:
            wide = np.zeros([*array.shape[:-1], 2 * array.shape[-1] + 1], array.dtype)
            wide[..., 1::2] = array
            made = self.cann.tensor(wide)
            strides = [s // array.itemsize for s in wide.strides]
            strides[-1] = 2
            return made.view(array.shape, strides, 1, format)
        made = self.cann.tensor(array)
        return made if format == "ND" else made.view(array.shape, made.spec.strides, 0, format)

    def put_nibbles(self, given: Nibbles) -> Any:
        made = self.cann.empty(given.codes.shape, given.name)
        flat = given.codes.astype(np.int64).reshape(-1) & 15
        if flat.size:
            made.buffer.write(np.ascontiguousarray((flat[0::2] | flat[1::2] << 4).astype(np.uint8)))
        return made

    def put_raw(self, given: Raw) -> Any:
        made = self.cann.empty(given.bytes.shape, given.name)
        if given.bytes.size:
            made.buffer.write(np.ascontiguousarray(given.bytes.astype(np.uint8)).reshape(-1))
        return made

    def __call__(self, op: str, *args: Any, layout: str = "contiguous") -> list[Array]:
        """Launch once; the outputs' contents in order."""
        outs: list[tuple[Any, Any]] = []

        def give(arg: Any) -> Any:
            if isinstance(arg, Out):
                first = np.zeros(tuple(arg.shape), np.dtype(arg.dtype))
                made = self.put(first if arg.given is None else arg.given, layout)
                outs.append((made, None))
                return made
            if isinstance(arg, np.ndarray):
                return self.put(arg, layout)
            if isinstance(arg, Nibbles):
                return self.put_nibbles(arg)
            if isinstance(arg, Raw):
                return self.put_raw(arg)
            if isinstance(arg, tuple):
                return tuple(give(item) for item in arg)
            return arg

        self.cann.ops[op](*(give(arg) for arg in one_by_one(args)))
        self.cann.runtime.current_stream().synchronize()
        return [made.numpy() for made, _ in outs]

    def both(self, op: str, *args: Any) -> list[Array]:
        """Launch with contiguous and with strided tensors; equal results, given once."""
        first, second = self(op, *args), self(op, *args, layout="step")
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a.astype(np.float64), b.astype(np.float64))
        return first


def close(given: Array, expected: Array, tolerance: float | None = None) -> None:
    """Fail unless equal up to the rounding of `given`'s dtype, relative to the largest value."""
    tol = ULP.get(given.dtype.name, 0.0) if tolerance is None else tolerance
    wide = np.asarray(expected, np.float64)
    size = float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))
    np.testing.assert_allclose(given.astype(np.float64), wide, rtol=tol, atol=tol * min(size, 1.0))


def near(given: Array, expected: Array) -> None:
    """Fail unless integers differ by at most one, and seldom: a tie seen from both sides."""
    apart = np.abs(given.astype(np.int64) - np.asarray(expected).astype(np.int64))
    assert apart.max(initial=0) <= 1, f"{apart.max()} apart"
    assert (apart > 0).sum() <= 0.02 * apart.size, f"{(apart > 0).sum()} values are apart"


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))


def softmax(x: Array, axis: int = -1) -> Array:
    top = np.max(x, axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0))
    return np.asarray(e / e.sum(axis=axis, keepdims=True))
