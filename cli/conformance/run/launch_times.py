"""Owns rounds of timed launches on a device, between its cases and through a soak: how fast it is
beside others shows under whatever load there is. A round says nothing of what is right.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

import mindtorch as torch

from ..cases.case import SOAK, Case

NOTE: Final = "launch_times"
_LAUNCHES: Final = 4  # of an operator in a round; its fastest one counts
# Sides of square matrices, of products and of the others: a launch takes long beside the events
# around it. The last one is of the product that goes ahead while the host queues what is timed, so
# that no launch waits for the host.
_SIDES: Final = {"cann": (2048, 2048, 4096), "simulator": (80, 128, 448)}
_OPERATORS: Final[tuple[tuple[str, Callable[[Any, Any], Any]], ...]] = (
    ("float16", torch.matmul),
    ("float32", torch.matmul),
    ("vector", lambda a, _b: torch.exp(a)),
    ("vector", lambda a, _b: torch.tanh(a)),
    ("vector", lambda a, _b: torch.sigmoid(a)),
    ("vector", lambda a, _b: torch.softmax(a, -1)),
    ("vector", lambda a, _b: torch.sum(a, -1)),
)
# The operands of so many rounds live: the next ones lie elsewhere in memory.
_PLACES: Final = 4
_AHEAD: Final = 2  # such products
_PAUSE: Final = 1e-3
# A round may take this part of the time at most, however loaded the host is.
_SHARE: Final = 1 / 3


class LaunchTimer:
    """Rounds on `device`, with `seconds` between two at least; it owns the events and tensors."""

    def __init__(self, device: str, kind: str, seconds: float) -> None:
        self.device, self.rounds = device, 0
        self._seconds, self._next = seconds, 0.0
        matrix, vector, ahead = _SIDES.get(kind, _SIDES["simulator"])
        draw = np.random.default_rng(0).standard_normal
        self._operands = {
            name: [torch.from_numpy(draw((side, side), np.float32)).to(dtype).to(device)
                   for _ in range(2)]
            for name, side, dtype in (("float16", matrix, torch.float16),
                                      ("float32", matrix, torch.float32),
                                      ("vector", vector, torch.float32))
        }  # fmt: skip
        self._ahead = torch.ones(ahead, ahead).to(device)
        self._events = [
            [torch.npu.Event(enable_timing=True) for _ in range(_LAUNCHES + 1)] for _ in _OPERATORS
        ]
        self._outlasted = torch.npu.Event()
        self._places: deque[Any] = deque(maxlen=_PLACES)

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._next

    @property
    def case(self) -> str:
        """The name that the round to come has for whoever waits for it."""
        return Case("launches", SOAK, detail=f"timed/{self.rounds}").id

    def round(self) -> list[float]:
        """The fastest launch of each operator, in milliseconds; nothing where the device had to
        wait for the host."""
        started = time.monotonic()
        waited = self._queue()
        while not self._events[-1][-1].query():
            time.sleep(_PAUSE)  # a thread that waits in the driver is woken at each launch
        ended = time.monotonic()
        self._next = ended + max(self._seconds, (ended - started) * (1 / _SHARE - 1))
        if waited:
            return []
        self.rounds += 1
        return [round(_fastest(events), 6) for events in self._events]

    def _queue(self) -> bool:
        """Queue a round; whether the device was through with what goes ahead before its end."""
        here = {name: [a.clone() for a in pair] for name, pair in self._operands.items()}
        self._places.append(here)
        for _ in range(_AHEAD):
            torch.matmul(self._ahead, self._ahead)
        self._outlasted.record()
        for (name, operator), (first, *others) in zip(_OPERATORS, self._events, strict=True):
            first.record()
            for event in others:
                operator(*here[name])
                event.record()
        return bool(self._outlasted.query())


def _fastest(events: Sequence[Any]) -> float:
    """What happens between launches makes others longer, hardly ever all of them."""
    return min(float(a.elapsed_time(b)) for a, b in pairwise(events))
