"""Owns what an exception of the device means for a case: its verdict and one line of reason."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aclnn_bindings import (
    AclDeviceError,
    AclError,
    AclOutOfMemoryError,
    AclUnsupportedError,
    MissingSymbolError,
)
from mindtorch.ops.rules import needs_values

from ..cases.claims import Claims

_INVALID = "ACLNN_ERR_PARAM_INVALID"
_REFUSED = 161  # thousands of the codes of wrong parameters
_PREFIX = re.compile(r"\[PID: \d+\] [\d:.-]+ |^\w+\(\w+\): ")


def verdict_of(
    error: Exception, calls: Sequence[str], dtype: str, claims: Claims
) -> tuple[str, str]:
    """(verdict, reason) of a case of the functions `calls` that raised instead of a result."""
    text = one_line(error)
    if isinstance(error, AclOutOfMemoryError | MemoryError):
        return "OOM", text
    if isinstance(error, MissingSymbolError):
        return "UNSUPPORTED", text
    if isinstance(error, AclUnsupportedError):
        if claims.person and error.op in calls:
            return "ERROR", f"no kernel for what {claims.source} declares: {text}"
        return "UNSUPPORTED", text
    if "is not implemented for NPU" in text or needs_values(error):
        return "UNSUPPORTED", text
    if isinstance(error, AclError) and not claims.person and claims.excluded(error.op or ""):
        return "UNSUPPORTED", f"{error.op} is of other products by its document: {text}"
    if claims.assumed and isinstance(error, AclError) and error.code // 1000 == _REFUSED:
        return "UNSUPPORTED", f"assumed, and refused by CANN: {text}"
    if not isinstance(error, AclError) or error.name != _INVALID:
        return "ERROR", text
    is_ours = error.op in calls
    undocumented = not claims.person and _undocumented(error, claims)
    if undocumented or (is_ours and dtype not in claims.dtypes):
        return "UNSUPPORTED", f"not declared by {claims.source}, and refused by CANN: {text}"
    if is_ours:
        return "ERROR", f"{dtype} is declared by {claims.source}, and refused by CANN: {text}"
    return "ERROR", text


def _undocumented(error: AclError, claims: Claims) -> bool:
    """Whether a tensor of the call has a dtype that documents do not list for its parameter."""
    listed = claims.listed(error.op or "")
    if listed is None or len(listed) != len(error.dtypes):
        return False
    return any(d not in names for d, names in zip(error.dtypes, listed, strict=True) if names)


def is_poisonous(error: str) -> bool:
    """Whether a reason smells of a device that may be unusable from now on."""
    return "507" in error or AclDeviceError.__name__ in error


def one_line(error: BaseException) -> str:
    """`Class: text` without line breaks; a status code with CANN's own words for it."""
    if isinstance(error, AclError):
        message = _PREFIX.sub("", " ".join(error.message.split()))
        message = _PREFIX.sub("", message)
        what = f" for {error.given()}" if error.given() else ""
        return f"{error.call} answered {error.code} ({error.name}){what}: {message}".rstrip(": ")
    return f"{type(error).__name__}: " + " ".join(str(error).split())
