"""Owns FlopCounterMode: floating-point operations of matrix products and convolutions."""

from __future__ import annotations

from math import prod
from typing import Any

from .._dispatch.overrides import TorchFunctionMode
from .._tensor.tensor import Tensor


def _product(a: Tensor, b: Tensor) -> int:
    """2·m·k·n for each pair of matrices that a matrix product multiplies."""
    rows = a.shape[:-1] if a.ndim > 1 else ()
    columns = b.shape[-1] if b.ndim > 1 else 1
    batch = prod(b.shape[:-2]) if b.ndim > a.ndim else 1
    return 2 * batch * prod(rows) * a.shape[-1] * columns


def _count(name: str, args: Any, result: Any) -> int:
    if name in ("mm", "bmm", "matmul", "mv", "dot"):
        return _product(args[0], args[1])
    if name in ("addmm", "baddbmm"):
        return _product(args[1], args[2])
    if name == "linear":
        return 2 * prod(args[0].shape) * args[1].shape[0]
    if name in ("convolution", "conv1d", "conv2d", "conv3d") and isinstance(result, Tensor):
        return 2 * prod(result.shape) * prod(args[1].shape[1:])
    return 0


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
        flops = _count(name, args, result)
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
