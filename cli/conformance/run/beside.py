"""Owns a case's launch beside another one in flight, on a second stream and with other inputs:
what both share by mistake shows in the first one's results."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np

import mindtorch as torch
from mindtorch.testing.placement import to_host

from ...judge.metrics import same
from ...judge.precision import Array
from ..cases.case import Case
from .tensors import call, results, synchronize
from .trial import Trial

# One of so many cases; and every operator's first sample or plain call.
_ONE_OF: Final = 32
# Its inputs are those of another seed: equal values would hide that one was taken for the other.
_OTHER_SEED: Final = 1


def applies(case: Case) -> bool:
    """Whether a case runs beside another launch too."""
    first = not case.designed and not case.sample and not case.dtype
    plain = first and (case.layout, case.shape, case.fill) == ("contiguous", "sample", "normal")
    plain = plain or (case.designed and not {n for n, _ in case.factors} - {"dtype"})
    return plain or zlib.crc32(case.id.encode()) % _ONE_OF == 1


def companion(trial: Trial) -> Trial:
    """The same case with other inputs."""
    return Trial(trial.subject, trial.case, trial.device, trial.seed + _OTHER_SEED)


def row_beside(trial: Trial, first: Sequence[Array]) -> list[str]:
    """What objects to a row whose results differ while another launch is in flight."""
    if not trial.device.startswith("npu"):
        return []
    other, stream = companion(trial), torch.npu.Stream(trial.device)
    args, kwargs = trial.place()
    others = other.place()
    alone = [to_host(t) for t in results(call(other.op, *others, trial.case.form))]
    synchronize(trial.device)
    ours = results(call(trial.op, args, kwargs, trial.case.form))
    with torch.npu.stream(stream):
        theirs = results(call(other.op, *others, trial.case.form))
    synchronize(trial.device)
    return differing([*first, *alone], [to_host(t) for t in (*ours, *theirs)])


def differing(first: Sequence[Array], second: Sequence[Array]) -> list[str]:
    """An objection for each result that is another beside a second launch."""
    words = []
    for alone, beside in zip(first, second, strict=True):
        if alone.shape != beside.shape:
            words.append("with a launch in flight on another stream the result has another shape")
            continue
        with np.errstate(all="ignore"):
            count = int((~same(alone, beside)).sum())
        if count:
            words.append(f"with a launch in flight on another stream {count} of {alone.size} "
                         "elements differ")  # fmt: skip
    return words
