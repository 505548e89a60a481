"""Owns the low-level switches that the source documents name."""

from __future__ import annotations


def _npu_aclnn_available() -> bool:
    """Whether ACLNN libraries (CANN's or the simulator's) can be loaded."""
    from ._backends import npu

    return npu.is_available()


def _npu_aclnn_symbols_ok() -> bool:
    """Whether every ACLNN symbol that rows call is exported."""
    from ._backends import npu

    return npu.symbols_ok()


def _log_api_usage_once(event: str) -> None:
    """Nothing: no usage is logged. Model libraries call it as they build their models."""
