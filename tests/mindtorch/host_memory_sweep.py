"""Refuses one allocation of host memory after another to a scenario and judges what comes of it.

`python tests/mindtorch/host_memory_sweep.py [SCENARIO …] [--every N] [--start N]` lets each of
Python's allocations in turn fail (`_testcapi.set_nomemory`, which numpy's and cffi's go through
too). The process lives, a call that returns gives what it gave before, and the scenario, run again
at once, gives it too. Which error comes is not judged: CPython's and numpy's own C code make a
TypeError or SystemError of some.
"""

import argparse
import gc
import io
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import aclnn_bindings
import mindtorch as torch


def step() -> Any:
    """Gradients, lists of tensors, and a number read back."""
    a = torch.ones(4, 4, device="npu", requires_grad=True)
    b = (a @ a + 1).relu()
    torch.cat([b, b])[1:3].sum().backward()
    torch._foreach_add_([a.grad], 1)
    return a.grad.add_(2).sum().item()


def streams() -> Any:
    """Two streams, an event between them."""
    side, event = torch.npu.Stream(), torch.npu.Event()
    with torch.npu.stream(side):
        x = torch.full((100,), 2.0, device="npu")
        event.record()
    event.wait()
    x.record_stream(torch.npu.current_stream())
    return (x + 1).tolist()[0]


def views() -> Any:
    """Views, writes through them, and by index."""
    x = torch.arange(12.0).npu().view(3, 4)
    x.t()[1].mul_(2)
    x[0] = 5
    x[x > 3] = 1
    return [part.sum().item() for part in torch.split(x, 2)]


def copies() -> Any:
    """Pinned memory, copies that do not wait, and a file."""
    x = torch.ones(10).pin_memory().npu(non_blocking=True)
    back = torch.empty(10, pin_memory=True)
    back.copy_(x, non_blocking=True)
    torch.npu.synchronize()
    file = io.BytesIO()
    torch.save({"x": x, "back": back}, file)
    file.seek(0)
    return {name: t.tolist() for name, t in torch.load(file).items()}


def calls() -> Any:
    """Operators by their own names, one call like the one before."""
    cann = aclnn_bindings.open()
    a, out = (cann.tensor(np.full(6, k, np.float32)) for k in (2, 0))
    for _ in range(2):
        cann.ops.aclnnAdd(self=a, other=a, alpha=1.0, out=out)
    return out.numpy().tolist()


SCENARIOS: dict[str, Callable[[], Any]] = {
    f.__name__: f for f in (step, streams, views, copies, calls)
}


def refused(run: Callable[[], Any], number: int) -> tuple[str, Any]:
    """What the scenario came to with allocation `number` refused: its result, or an error."""
    import _testcapi

    gc.collect()
    gc.disable()  # so that allocations come in the same order each time
    try:
        _testcapi.set_nomemory(number, number + 1)
        try:
            result = run()
        finally:
            _testcapi.remove_mem_hooks()
    except Exception as error:
        return type(error).__name__, None
    finally:
        gc.enable()
    return "returned", result


def sweep(name: str, every: int = 1, start: int = 0) -> tuple[Counter[str], list[str]]:
    """Counts of outcomes, and what was wrong; ends when no allocation is left to refuse."""
    run = SCENARIOS[name]
    wanted = [run() for _ in range(3)][-1]
    gc.collect()
    gc.freeze()  # what is there by now lives to the end: collections need not walk it
    outcomes, bad, number, untouched = Counter[str](), [], start, 0
    while untouched < 20:  # an allocation whose refusal CPython survives returns, too
        print(name, number, file=sys.stderr, flush=True)  # the last line tells where it died
        outcome, result = refused(run, number)
        outcomes[outcome] += 1
        untouched = untouched + 1 if outcome == "returned" else 0
        if outcome == "returned" and result != wanted:
            bad.append(f"{name} {number}: {result!r}, not {wanted!r}")
        try:
            again = run()
            if again != wanted:
                bad.append(f"{name} {number}: afterwards {again!r}, not {wanted!r}")
        except Exception as error:
            bad.append(f"{name} {number}: afterwards {error!r}")
        number += every
    return outcomes, bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    failed = 0
    for name in options.scenarios or SCENARIOS:
        outcomes, bad = sweep(name, options.every, options.start)
        print(f"{name}: {outcomes.total()} refused,", dict(outcomes), *bad, sep="\n  ")
        failed += len(bad)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
