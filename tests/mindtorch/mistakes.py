"""Ordinary mistakes, and whether mindtorch says of them what torch says.

`python tests/mindtorch/mistakes.py --device npu` tries every call of `data/mistakes.txt` (or of the
files given) in torch on the cpu and in mindtorch, and tells what differs by section.
"""

import argparse
import copy
import pickle
import re
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TABLE = Path(__file__).parent / "data" / "mistakes.txt"
# Those of which something else is said, by device; why is told in front of them.
KNOWN = Path(__file__).parent / "data" / "mistakes_known.txt"
SECONDS = 120  # what ends a hang
VERDICTS = ("same", "text", "class", "taken", "refused", "device")


@dataclass(frozen=True)
class Mistake:
    """Statements under a section's title."""

    section: str
    code: str


def mistakes(path: Path = TABLE) -> list[Mistake]:
    """The table's rows: `# title` begins a section, `\\n` in a row begins a new line."""
    section, listed = "", []
    for line in path.read_text().splitlines():
        if line.startswith("# "):
            section = line[2:]
        elif line.strip():
            listed += [Mistake(section, code.replace("\\n", "\n")) for code in codes(line)]
    return listed


def codes(row: str) -> list[str]:
    """`f | (1) | (2)` is `f(1)` and `f(2)`, `f g | (1)` is `f(1)` and `g(1)`."""
    first, *rest = row.split(" | ")
    return [start + end for start in first.split() for end in rest] or [row]


def names(library: Any) -> dict[str, Any]:
    """What the statements see: small tensors of each kind."""
    x = library.arange(12, dtype=library.float32).reshape(3, 4) / 12
    r = library.ones(3, 4, requires_grad=True)
    return {
        "torch": library, "nn": library.nn, "F": library.nn.functional, "np": np, "x": x,
        "copy": copy, "pickle": pickle, "v": library.ones(4), "b": library.ones(2, 3, 4),
        "idx": library.tensor([0, 1]), "mask": x > 0.5, "r": r, "r2": r * 2,
    }  # fmt: skip


def raised(library: Any, device: str, code: str) -> BaseException | None:
    """The error of the statements on a device, None without one."""
    with warnings.catch_warnings(), _within(SECONDS), library.device(device):
        warnings.simplefilter("ignore")
        scope = names(library)
        library.manual_seed(0)
        try:
            exec(compile(code, "mistake", "exec"), scope)
            if device == "npu":
                library.npu.synchronize()
        except Exception as error:
            if device == "npu":
                _settle(library)
            return error
        finally:
            library.set_grad_enabled(True)
            library.set_default_dtype(library.float32)
            library.use_deterministic_algorithms(False)
            # What torch._dynamo turns off for all, once something was compiled.
            library.distributions.Distribution.set_default_validate_args(True)
    return None


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def said(error: BaseException) -> str:
    """An error's first line as it is compared: without addresses, devices by one name."""
    text = str(error).split("\nException raised")[0].strip().split("\n")[0]
    text = re.sub(r"0x[0-9a-f]+", "0x", text).replace("mindtorch", "torch")
    text = re.sub(r"\bnpu(:0)?\b", "cpu", text)
    return re.sub(r"\bNPU", "CPU", text).replace("torch.cpu.", "torch.")


def _settle(library: Any) -> None:
    """Wait for what is queued, and begin anew where it failed."""
    try:
        library.npu.synchronize()
    except Exception:
        library.npu.restart_device(0)


def _of_device(error: BaseException | None) -> bool:
    return type(error).__name__ in ("AclDeviceError", "AclDeviceLostError")


def verdict(got: BaseException | None, expected: BaseException | None) -> str:
    """`same`, another `text` or `class`, `taken` where torch refuses, `refused` where it takes.

    `device`: what only a device met, as it ran.
    """
    if _of_device(got):
        return "device"
    if got is None or expected is None:
        return "same" if got is expected else "taken" if got is None else "refused"
    if type(got).__name__ != type(expected).__name__:
        return "class"
    return "same" if said(got) == said(expected) else "text"


def both(
    torch: Any, ours: Any, device: str, code: str
) -> tuple[BaseException | None, BaseException | None]:
    """The errors of mindtorch on a device and of torch on the cpu."""
    return raised(ours, device, code), raised(torch, "cpu", code)


def show(error: BaseException | None) -> str:
    return "no error" if error is None else f"{type(error).__name__}: {said(error)[:230]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "npu"))
    parser.add_argument("--all", action="store_true", help="those that torch takes as well")
    parser.add_argument("--known", action="store_true", help="tell only what is not in the list")
    parser.add_argument("--every", type=int, default=1, help="each n-th mistake alone")
    parser.add_argument("files", nargs="*", type=Path, default=[TABLE])
    asked = parser.parse_args()
    import torch

    import mindtorch

    counts: Counter[tuple[str, str]] = Counter()
    differing: set[str] = set()
    asked_for = [m for path in asked.files for m in mistakes(path)][:: asked.every]
    for mistake in asked_for:
        got, expected = both(torch, mindtorch, asked.device, mistake.code)
        if expected is None and got is None and not asked.all:
            print(f"no mistake: {mistake.code!r}")
            continue
        outcome = verdict(got, expected)
        counts[mistake.section, outcome] += 1
        if outcome == "same":
            continue
        differing.add(mistake.code)
        if not asked.known:
            print(f"{outcome}: {mistake.code!r}")
            print(f"    got      {show(got)}\n    expected {show(expected)}")
    _table(counts)
    if asked.known:
        listed = {m.code for m in mistakes(KNOWN) if m.section in ("both", asked.device)}
        sys.exit(_unlisted(differing, listed & {m.code for m in asked_for}))


def _unlisted(differing: set[str], listed: set[str]) -> int:
    """How many differ and are not listed, or are listed and do not differ; told."""
    for code in sorted(differing ^ listed):
        print(("not listed: " if code in differing else "agrees now: ") + repr(code))
    return min(len(differing ^ listed), 100)


def _table(counts: Counter[tuple[str, str]]) -> None:
    for section in dict.fromkeys(s for s, _ in counts):
        told = ", ".join(f"{counts[section, v]} {v}" for v in VERDICTS if counts[section, v])
        print(f"{section}: {told}")
    total, same = counts.total(), sum(n for (_, v), n in counts.items() if v == "same")
    print(f"{total} mistakes: {same} same ({same / total:.1%})")


if __name__ == "__main__":
    main()
