"""Owns what an exception of the device means for a case: its verdict and one line of reason."""

from __future__ import annotations

from aclnn_bindings.errors import (
    AclDeviceError,
    AclError,
    AclOutOfMemoryError,
    AclUnsupportedError,
)
from aclnn_bindings.failures import MissingSymbolError

_UNCLAIMED = "not claimed by header and documents, and refused: "
_INVALID = "ACLNN_ERR_PARAM_INVALID"


def verdict_of(error: Exception, dtype: str, claimed: tuple[str, ...]) -> tuple[str, str]:
    """(verdict, reason) of a case that raised where a result was expected."""
    text = one_line(error)
    if isinstance(error, AclOutOfMemoryError | MemoryError):
        return "OOM", text
    if isinstance(error, MissingSymbolError) or "is not implemented for NPU" in str(error):
        return "UNSUPPORTED", text
    if isinstance(error, AclUnsupportedError):
        return "UNSUPPORTED", text
    refused = isinstance(error, AclError) and error.name == _INVALID
    if refused and dtype not in claimed:
        return "UNSUPPORTED", _UNCLAIMED + text
    if refused:
        return "ERROR", f"{dtype} is claimed by the header, and refused: {text}"
    return "ERROR", text


def is_poisonous(error: str) -> bool:
    """Whether a reason smells of a device that may be unusable from now on."""
    return "507" in error or AclDeviceError.__name__ in error


def one_line(error: BaseException) -> str:
    """`Class: text`, without line breaks."""
    return f"{type(error).__name__}: " + " ".join(str(error).split())
