"""Owns what must hold for every op, whoever asks: tests call these laws, and so may `check`.

A law takes an op and a sample and raises `LawBroken`, or `NotApplicable` with the reason. Laws
whose names end in `oracle` compare with torch, which the caller passes in: it is never imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindtorch.ops.samples import Sample
from mindtorch.ops.spec import MISSING, OPS, Op
from mindtorch.testing.kernels import load_operators, replays

from .compare import LawBroken, NotApplicable, call, compare_values, samples
from .gradients import (
    differentiable,
    gradients,
    gradients_match_differences,
    gradients_match_oracle,
)
from .values import (
    cpu_matches_oracle,
    device_matches_cpu,
    errors_match_oracle,
    inplace_matches_functional,
    meta_matches_cpu,
    on_device,
    out_matches_functional,
    replay_matches_body,
    strided_matches_contiguous,
    writeback_matches_eager,
)

load_operators()

__all__ = [
    "DEVICE_LAWS", "LAWS", "ORACLE_LAWS", "LawBroken", "NotApplicable", "call", "cases",
    "compare_values", "concerns", "gradients", "samples",
]  # fmt: skip

DEVICE_LAWS: dict[str, Callable[[Op, Sample, str], None]] = {
    "device = cpu": on_device(device_matches_cpu),
    "strided = contiguous": on_device(strided_matches_contiguous),
    "in place = functional": on_device(inplace_matches_functional),
    "out= = functional": on_device(out_matches_functional),
    "writeback = eager": on_device(writeback_matches_eager),
}
LAWS: dict[str, Callable[[Op, Sample], None]] = {
    "meta = cpu": meta_matches_cpu,
    "strided = contiguous": strided_matches_contiguous,
    "in place = functional": inplace_matches_functional,
    "out= = functional": out_matches_functional,
    "writeback = eager": writeback_matches_eager,
    "replay = body": replay_matches_body,
    "gradient = differences": gradients_match_differences,
}
ORACLE_LAWS: dict[str, Callable[[Op, Sample, Any], None]] = {
    "cpu = torch": cpu_matches_oracle,
    "errors = torch": errors_match_oracle,
    "gradient = torch": gradients_match_oracle,
    "second gradient = torch": lambda op, s, torch: gradients_match_oracle(op, s, torch, 2),
}


def concerns(law: str, op: Op, sample: Sample) -> bool:
    """Whether a law may say something about a case, judged without running anything."""
    if sample.error:
        return law == "errors = torch"
    if law == "errors = torch":
        return False
    if law in ("in place = functional", "writeback = eager"):
        return op.writes.inplace
    if law == "replay = body":
        return op.body is not None and op.testing.tolerance != "random" and replays(op)
    if law == "out= = functional":
        layer = op.body is not None and "nn" in op.places
        return "function" in op.places and not (op.is_view or "." in op.name or layer)
    if "gradient" in law:
        known = op.body is not None or (op.grad is not MISSING and bool(op.grad))
        return known and op.testing.tolerance != "random" and bool(differentiable(sample))
    return True


def cases() -> list[tuple[Op, int, Sample]]:
    """Every row with its samples, numbered."""
    return [(op, i, s) for op in OPS.values() for i, s in enumerate(samples(op))]
