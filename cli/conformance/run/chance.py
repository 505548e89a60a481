"""Owns the law of rows that draw: five calls on the device, judged by distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mindtorch.testing.placement import to_host

from ...judge.distribution import objections
from ..cases.design import levels_of
from ..cases.spaces.random import RANDOM_KINDS, parameters
from ..cases.spaces.space import DesignLevels
from .tensors import call, results, synchronize

if TYPE_CHECKING:
    from ..record.result import Result
    from .trial import Trial

# What the generator advances by at most per call (Philox gives four numbers a counter).
_LATER = 1 << 22
_FAR = 1 << 40  # beyond the low half of a seed


def random(trial: Trial) -> Result:
    """The same seed twice, others, a later offset: see judge.distribution."""
    selection = DesignLevels(levels_of(trial.case))
    params = parameters(trial.op, selection)
    args, kwargs = trial.place()
    seeds = (
        (trial.seed + 1, 0),
        (trial.seed + 1, 0),
        (trial.seed + 2, 0),
        (trial.seed + 1, _LATER),
        (trial.seed + 1 + _FAR, 0),
    )
    draws = [_draw(trial, list(args[:-2]), kwargs, seed, offset) for seed, offset in seeds]
    trial.outputs = draws[:1]
    complaints = objections(RANDOM_KINDS[trial.op.name], params, *draws)
    if tuple(draws[0].shape) != tuple(args[0]):
        complaints.append(f"shape {list(draws[0].shape)}, expected {list(args[0])}")
    if complaints:
        return trial.result("FAIL", required="distribution", reason="; ".join(complaints))
    return trial.result("PASS", tier="none", required="distribution")


def _draw(trial: Trial, args: list[Any], kwargs: Any, seed: int, offset: int) -> Any:
    draws = results(call(trial.op, [*args, seed, offset], kwargs))
    synchronize(trial.device)
    return to_host(draws[0])
