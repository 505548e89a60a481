"""Owns questions about kernels that a checker of operators asks: which devices run one, and that
rows run in numpy alone while they are the reference."""

from __future__ import annotations

from .._backends.registry import registry
from .._compat.signatures import takes_out
from .._dispatch.plans import clear as forget_plans, references as reference_kernels
from .._dispatch.programs import replays
from .._tensor.loading import load as load_operators
from ..ops.spec import Op

__all__ = ["devices", "forget_plans", "load_operators", "reference_kernels", "replays", "takes_out"]


def devices(op: Op) -> tuple[str, ...]:
    """The kinds of device that have a kernel for `op`."""
    return tuple(registry.devices(op))
