"""Owns soaking: one operator launched over and over on the same inputs, every result compared
bit by bit with the others of its device; the digest that most launches gave goes to the vote.

Launches are queued ahead of the copies that read them back, so that the device stays busy. What a
device computes is compared on the host: the device is in question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

import mindtorch as torch
from mindtorch.testing.placement import to_host

from ..cases.case import SOAK, Case
from ..record.result import Result
from .bits import digest, first, words
from .memory_scan import MEMORY, judge, scan
from .tensors import synchronize

_AHEAD: Final = 8
_BEAT_SECONDS: Final = 5.0
# A soak has so many parts: in each its tensors lie elsewhere in memory.
_PLACES: Final = 3
# Of a soak that is run again by its case's name.
_SECONDS: Final = 10.0
# Distinct wrong results of one case that are kept: one says what is wrong, a few say which bits.
_MOST_PATTERNS: Final = 32
# Side of square matrices: heavy on a device's power, light enough for the simulator.
SIDES: Final = {"cann": 4096, "simulator": 64}
_MIX: Final[dict[str, Callable[..., Any]]] = {
    "matmul": torch.matmul,
    "add": torch.add,
    "mul": torch.mul,
    "exp": lambda a, _b: torch.exp(a),
    "softmax": lambda a, _b: torch.softmax(a, -1),
    "sum": lambda a, _b: torch.sum(a, -1),
}
_DTYPES: Final = {"matmul": ("float16", "float32")}


def mix(kind: str) -> list[str]:
    """The cases of a soak on an install of this kind: products first, then the vector unit."""
    side = SIDES.get(kind, SIDES["simulator"])
    return [
        Case(op, SOAK, detail=f"{dtype}/{side}").id
        for op in _MIX
        for dtype in _DTYPES.get(op, ("float32",))
    ]


def soak(
    case: Case, seed: int, device: str, request: Mapping[str, Any],
    note: Callable[[str, Mapping[str, Any]], None], beside: Callable[[], None] = lambda: None,
) -> Result:  # fmt: skip
    """Launch for `seconds` of the request, or this case's share of the time `until` its end: PASS
    when all launches agree, else FAIL. The memory's case scans it instead. `beside` is called now
    and then."""
    started = beat = time.monotonic()
    end = started + _seconds(case, request, started)
    if case.op == MEMORY:
        result = judge(scan(case, device, end), case, seed, note)
        return result.with_(seconds=time.monotonic() - started)
    seen: dict[str, list[Any]] = {}
    usual, launches, places = None, 0, 0
    while time.monotonic() < end or launches < 2:
        if time.monotonic() >= started + places * (end - started) / _PLACES:
            launch = _launcher(case, seed, device)  # the last tensors live on: others are elsewhere
            places += 1
        outputs = [launch() for _ in range(_AHEAD)]
        synchronize(device)
        for output in outputs:
            array = to_host(output)
            launches += 1
            if usual is not None and np.array_equal(array.view(np.uint8), usual[0]):
                usual[2] += 1
                continue
            entry = seen.setdefault(digest([array]), [array.view(np.uint8), array, 0])
            entry[2] += 1
            usual = max(seen.values(), key=lambda e: e[2])
            _forget(seen, usual)
        beside()
        if time.monotonic() - beat > _BEAT_SECONDS:
            beat = time.monotonic()
            note("beat", {"case": case.id, "launches": launches})
    assert usual is not None
    seconds = time.monotonic() - started
    return _judged(case, seed, seen, usual, launches, note).with_(seconds=seconds)


def _seconds(case: Case, request: Mapping[str, Any], now: float) -> float:
    if "until" not in request:
        return float(request.get("seconds", _SECONDS))
    cases = list(request["cases"])
    return float((request["until"] - now) / (len(cases) - cases.index(case.id)))


def _launcher(case: Case, seed: int, device: str) -> Callable[[], Any]:
    dtype, _, side = case.detail.partition("/")
    draw = np.random.default_rng(seed).standard_normal
    a, b = (
        torch.from_numpy(draw((int(side), int(side))).astype(np.float32))
        .to(getattr(torch, dtype)).to(device)
        for _ in range(2)
    )  # fmt: skip
    operator = _MIX[case.op]
    return lambda: operator(a, b)


def _forget(seen: dict[str, list[Any]], usual: list[Any]) -> None:
    """Keep a bounded number of wrong results; counts of the others are added to the last kept."""
    if len(seen) > _MOST_PATTERNS:
        name = next(n for n, e in reversed(seen.items()) if e is not usual)
        count = seen.pop(name)[2]
        next(e for e in seen.values() if e is not usual)[2] += count


def _judged(
    case: Case, seed: int, seen: Mapping[str, list[Any]], usual: list[Any], launches: int,
    note: Callable[[str, Mapping[str, Any]], None],
) -> Result:  # fmt: skip
    wrong = launches - usual[2]
    name = next(n for n, e in seen.items() if e is usual)
    differences = [
        d for e in seen.values() if e is not usual
        and (d := first([words(e[1])], [words(usual[1])])) is not None
    ]  # fmt: skip
    note("soak", {
        "case": case.id, "seed": seed, "launches": launches, "wrong": wrong, "digest": name,
        "differences": [d.as_json() for d in differences],
    })  # fmt: skip
    base = Result(case.id, case.op, SOAK, "PASS", dtype=case.detail.partition("/")[0], seed=seed,
                  digest=name, tier="T0", required="T0")  # fmt: skip
    if not wrong:
        return base
    difference = differences[0].text if differences else "shapes differ"
    reason = f"{wrong} of {launches} launches differ from the others; {difference}"
    return base.with_(verdict="FAIL", reason=reason, tier="")
