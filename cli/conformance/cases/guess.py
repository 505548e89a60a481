"""Owns arguments made from a signature alone, for functions that no row describes.

Several attempts, plausible to most shape rules; none of them is a claim about the function.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from aclnn_bindings import (
    BoolArray,
    FloatArray,
    IntArray,
    Kind,
    OpSignature,
    Param,
    Scalar,
    ScalarList,
    ScalarSpec,
    Tensor,
    TensorList,
    TensorSpec,
    product_of,
    support,
)
from aclnn_bindings.runtime.words import FLOATS, real

_COMMON: Final = ("FLOAT", "FLOAT16", "BFLOAT16", "INT32", "INT64", "BOOL", "INT8", "UINT8")
_BYTES: Final = 1 << 16
TENSORS: Final = (Kind.TENSOR, Kind.TENSOR_LIST)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to fill a signature: every tensor has `shape`; `changed` overrides by position."""

    shape: tuple[int, ...]
    dtype: str = ""
    array: tuple[int, ...] = (1,)
    number: int = 0
    null: int = -1
    specs: dict[int, TensorSpec] = field(default_factory=dict)


ATTEMPTS: Final = tuple(
    Attempt(shape, dtype, array, number)
    for shape, array in (
        ((4, 4), (1,)), ((2, 3), (0,)), ((4, 4), (4, 4)), ((2, 3, 4, 4), (1, 1)), ((4,), (0,)),
        ((2, 4, 4), (0,)), ((), ()), ((1,), (1,)),
    )
    for dtype in ("", "FLOAT", "INT64", "BOOL")
    for number in (0, 1, 4)
)  # fmt: skip


class Filler:
    """Makes descriptors for attempts and releases them."""

    def __init__(self, cann: Any, signature: OpSignature, soc: str) -> None:
        self.cann, self.runtime, self.signature = cann, cann.runtime, signature
        documented = support(signature.name, product_of(soc))
        self.documented = dict(documented.dtypes) if documented is not None else {}
        self.memory = cann.empty((_BYTES,), "UINT8")

    def close(self) -> None:
        self.memory.close()

    def dtypes(self, param: Param) -> tuple[str, ...]:
        """Dtypes that documents or the header list for a parameter, usual ones first."""
        listed = self.documented.get(param.name) or param.dtypes
        usual = [d for d in _COMMON if d in listed]
        return (*usual, *(d for d in listed if d not in usual))

    def spec(self, position: int, attempt: Attempt) -> TensorSpec:
        """The TensorSpec of tensor parameter `position`."""
        if position in attempt.specs:
            return attempt.specs[position]
        known = self.dtypes(self.signature.params[position])
        dtype = known[0] if known else attempt.dtype or "FLOAT"
        if attempt.dtype in known:
            dtype = attempt.dtype
        return TensorSpec.of(attempt.shape, dtype)

    def words(self, attempt: Attempt, stack: ExitStack) -> list[tuple[bool, int]]:
        """(is_float, bits) of every parameter of phase 1; descriptors end with `stack`."""
        words = []
        for position, param in enumerate(self.signature.params):
            bits = 0 if position == attempt.null else self._word(position, param, attempt, stack)
            words.append((param.kind in FLOATS, bits))
        return words

    def _word(self, position: int, param: Param, attempt: Attempt, stack: ExitStack) -> int:
        if param.kind in FLOATS:
            return real(param, 1.0)
        if param.kind is Kind.POINTER:
            return self._pointer(stack)
        word = self._descriptor(position, param, attempt)
        if word is None:
            return attempt.number if param.kind is not Kind.HANDLE else 0
        stack.callback(word.close)
        return int(word.descriptor)

    def _pointer(self, stack: ExitStack) -> int:
        from aclnn_bindings import Cell

        cell = Cell()
        stack.callback(lambda: cell)
        return cell.handle

    def _descriptor(self, position: int, param: Param, attempt: Attempt) -> Any:
        runtime, address = self.runtime, self.memory.address
        match param.kind:
            case Kind.TENSOR:
                return Tensor(runtime, self.spec(position, attempt), address)
            case Kind.TENSOR_LIST:
                spec = self.spec(position, attempt)
                return TensorList(runtime, [Tensor(runtime, spec, address) for _ in range(2)])
            case Kind.SCALAR:
                return Scalar(runtime, self._scalar(param))
            case Kind.SCALAR_LIST:
                return ScalarList(runtime, [Scalar(runtime, self._scalar(param)) for _ in range(2)])
            case Kind.INT_ARRAY:
                return IntArray(runtime, attempt.array)
            case Kind.BOOL_ARRAY:
                return BoolArray(runtime, [True] * max(len(attempt.array), 1))
            case Kind.FLOAT_ARRAY:
                return FloatArray(runtime, [1.0] * max(len(attempt.array), 1))
        return None

    def _scalar(self, param: Param) -> ScalarSpec:
        known = self.dtypes(param)
        return ScalarSpec(1, next((d for d in ("FLOAT", "INT64") if d in known), "FLOAT"))


def tensors(signature: OpSignature) -> Iterator[int]:
    """Positions of phase 1's tensor parameters."""
    return (i for i, p in enumerate(signature.params) if p.kind is Kind.TENSOR)
