"""Owns what an operator is made of: rows with kernels that it and its derivative call, and
kernels that bear its name.

`check layer_norm` asks about kernels that other rows name. Rows are traced on the simulator, which
takes seconds; `python -m mindtorch_npu.conformance.cases.decomposition` writes decomposition.json.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np

from mindtorch.ops import OPS, Op

from .inputs import samples
from .spaces.table import space_of

_FILE: Final = "decomposition.json"
# Calls that every operator may make on the way, and what says nothing about it.
_GLUE: Final = frozenset(("_to_copy", "copy", "clone", "zero", "fill", "full", "zeros", "ones",
                          "empty_strided"))  # fmt: skip


@cache
def stored() -> dict[str, tuple[str, ...]]:
    """Every row with the rows that it is made of; the file names rows of the same parts at once."""
    data = json.loads((files(__package__) / _FILE).read_text("ascii"))
    pairs = data["rows of parts"].items()
    return {name: tuple(parts.split()) for parts, names in pairs for name in names.split()}


def with_parts(names: Iterable[str], exported: Collection[str] = ()) -> tuple[str, ...]:
    """The names, then what they are made of; `exported` are the ACLNN operators at hand."""
    requested = tuple(names)
    rows = tuple(dict.fromkeys((*requested, *(p for n in requested for p in _rows_of(n)))))
    by_word: dict[str, list[str]] = {}
    for kernel in exported:
        by_word.setdefault(_word(kernel), []).append(kernel)
    # Rows in public stand for themselves; what a row calls is in its own cases.
    rows_here = [n for n in rows if n in requested or not OPS[n].places]
    # The row of a gradient has fixed sizes; its kernel by name has a design of its own.
    calling = [n for n in rows if n in OPS and (n in requested or not n.endswith("_backward"))]
    called = {c.name for n in calling for c in OPS[n].kernels.aclnn}
    kernels = (k for n in rows_here for word in _words(n) for k in by_word.get(word, ())
               if k.replace("aclnnInplace", "aclnn", 1) not in called)  # fmt: skip
    return tuple(dict.fromkeys((*rows, *kernels)))


def _word(kernel: str) -> str:
    """`aclnnInplaceGeluBackwardV2` -> `gelu`: what the kernels of one operator have in common."""
    return _AFFIXES.sub("", kernel).lower()


_AFFIXES: Final = re.compile(r"^aclnn(Inplace)?|((Backward|Grad|Out)?(V\d+)?)$")


def _words(name: str) -> Iterator[str]:
    if name in OPS and not OPS[name].is_view:
        yield from (_word(call.name) for call in OPS[name].kernels.aclnn)
        yield OPS[name].base_name.replace("_", "").lower()


def _rows_of(name: str) -> Iterator[str]:
    if name in OPS:
        yield from stored().get(name, ())
        return
    base = name.replace("aclnnInplace", "aclnn", 1)
    for row in OPS.values():
        calls = {c.name for c in row.kernels.aclnn}
        if space_of(row.name) is not None and not calls.isdisjoint((name, base)):
            yield row.name


def traced(op: Op) -> tuple[str, ...]:
    """The rows with kernels that samples of `op` and their derivatives call on the simulator."""
    import mindtorch as torch

    from ..run.tensors import call, on_device, results
    from .case import Case
    from .recipe import recipe

    forward: dict[str, None] = {}
    backward: dict[str, None] = {}
    for i, sample in enumerate(samples(op.testing)):
        if sample.error:
            continue
        inputs = recipe(op.testing, Case(op.name, "functional", i), 0)
        leaves: list[Any] = []

        def leaf(slot: Any, leaves: list[Any] = leaves) -> Any:
            tensor = on_device(slot.array, "npu", "contiguous").tensor
            if slot.array.dtype.kind == "f" and slot.arg.grad:
                leaves.append(tensor.requires_grad_())
            return tensor

        args, kwargs = inputs.fill(leaf)
        try:
            with np.errstate(all="ignore"):
                with _Noting(forward):
                    outs = [o for o in results(call(op, args, kwargs)) if o.requires_grad]
                flows = [torch.ones_like(o) for o in outs]
                with _Noting(backward):
                    torch.autograd.grad(outs, leaves, flows, allow_unused=True)
        except Exception:  # what refuses has said which rows it called so far
            continue
    names = [n for n in forward if n != op.name]
    # Of a derivative, what is nothing by itself: other rows have their own names to ask for.
    names += [n for n in backward if n not in forward and n != op.name and not OPS[n].places]
    return tuple(n for n in names if n not in _GLUE and _sampled(OPS[n]))


def _sampled(op: Op) -> bool:
    if not op.kernels.aclnn or op.is_view:
        return False
    return op.testing.samples is not None or bool(space_of(op.name))


class _Noting:
    """Notes which rows made plans: all tables are emptied on entry."""

    def __init__(self, rows: dict[str, None]) -> None:
        self.rows = rows

    def __enter__(self) -> None:
        for op in OPS.values():
            for name in ("plans", "plans_"):
                if name in op.cache:
                    op.cache[name].clear()

    def __exit__(self, *_: object) -> None:
        for op in OPS.values():
            if any(op.cache.get(name) for name in ("plans", "plans_")):
                self.rows[op.name] = None


def main() -> None:
    """Write decomposition.json."""
    rows = {name: traced(OPS[name]) for name in OPS}
    note = "Generated by `python -m mindtorch_npu.conformance.cases.decomposition`; do not edit."
    alike: dict[str, list[str]] = defaultdict(list)
    for name, parts in sorted(rows.items()):
        if parts:
            alike[" ".join(parts)].append(name)
    names = {parts: " ".join(some) for parts, some in alike.items()}
    text = json.dumps({"note": note, "rows of parts": names}, indent=0)
    Path(__file__).with_name(_FILE).write_text(text + "\n", "ascii")


if __name__ == "__main__":
    main()
