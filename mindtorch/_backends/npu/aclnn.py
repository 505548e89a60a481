"""Owns the questions about operators that others ask by name: is there an install, has it these."""

from __future__ import annotations

from collections.abc import Iterable

from . import runtime

CORE = ("aclnnAdd", "aclnnMul", "aclnnRelu", "aclnnReduceSum", "aclnnMatmul")


def has_ops(names: Iterable[str]) -> bool:
    """Whether the install declares these operators and exports both phases of each."""
    return all(runtime.cann().has_op(name) for name in names)


def is_available() -> bool:
    """Whether an install with ACLNN operators was found and sees a device."""
    return runtime.is_available() and has_ops(("aclnnAdd",))


def symbols_ok() -> bool:
    """Whether the operators that the smallest model needs are there."""
    return runtime.is_available() and has_ops(CORE)


def arange_symbols_ok() -> bool:
    """Whether write-back can make indices on the device."""
    return has_ops(("aclnnArange",))


def index_put_impl_symbols_ok() -> bool:
    """Whether write-back can write by index."""
    return has_ops(("aclnnIndexPutImpl",))


def strided_slice_assign_symbols_ok() -> bool:
    """Whether write-back can assign to a strided slice."""
    return has_ops(("aclnnStridedSliceAssignV2",))
