"""Owns FlopCounterMode: floating-point operations of products, convolutions, attention."""

from __future__ import annotations

from typing import Any

from .._dispatch.overrides import TorchFunctionMode
from ..ops.costs import elements, lookup, sized
from ..ops.spec import OPS


def _count(name: str, args: Any, kwargs: Any, result: Any) -> int:
    """What the row `name` counts; nothing for rows that count elements, as in torch."""
    op = OPS.get(name)
    if op is None:
        return 0
    cost = op.testing.cost
    if cost in (elements, lookup) or not any(True for _ in sized([result])):
        return 0
    names = [a.name for a in op.schema.args]
    known = {"self" if k == "input" and "input" not in names else k: v for k, v in kwargs.items()}
    return cost(dict(zip(names, args, strict=False)) | known, [*sized([result])]).flops


class FlopCounterMode(TorchFunctionMode):
    """`with FlopCounterMode() as counter:`; `get_total_flops()` sums what calls inside took.

    Backward passes are counted where they call these functions.
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None
    ):
        self.display = display
        self.flop_counts: dict[str, dict[str, int]] = {"Global": {}}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        flops = _count(name, args, kwargs or {}, result)
        if flops:
            counts = self.flop_counts["Global"]
            counts[name] = counts.get(name, 0) + flops
        return result

    def get_total_flops(self) -> int:
        """Operations of all calls."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Operations by function."""
        return self.flop_counts

    def get_table(self, depth: int | None = None) -> str:
        """The counts, one function a line."""
        return "\n".join(f"{n:<30} {c:>16,}" for n, c in self.flop_counts["Global"].items())

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        if self.display:
            print(self.get_table())
