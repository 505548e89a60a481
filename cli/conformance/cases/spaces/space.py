"""Owns what a space is: factors drawn from a row's schema and class, and the call that levels
make; and the sizes and layouts that all of them share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from mindtorch.ops import Op
from mindtorch.ops.samples import Sample

from ....judge.formats import FORMATS
from ....spec.factors import Factor, Levels, factor
from ..inputs import FILLS, INDEX_FILLS, Input

# Around the widths that kernels block by: vector registers, rows of a core, tiles, cores, and 2^16.
QUICK_SIZES: Final = (5, 1, 8, 33, 65, 257, 513, 1025, 4097, 65537)
FULL_SIZES: Final = (
    5, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 509, 511,
    512, 513, 1023, 1024, 1025, 2039, 4095, 4096, 4097, 65535, 65536, 65537, 1048583,
)  # fmt: skip
QUICK_CAP: Final = 1 << 17
FULL_CAP: Final = 1 << 21
LAYOUTS: Final = (
    "contiguous", "transposed", "sliced", "stepped", "expanded", "middle", "reversed",
)  # fmt: skip
OUT_LAYOUTS: Final = ("contiguous", "transposed", "sliced", "stepped", "reversed")
INDEX_DTYPES: Final = ("int64", "int32")


@dataclass(frozen=True, slots=True)
class DesignScope:
    """What a design may draw from: dtypes that the row and the device take, and the level."""

    dtypes: tuple[str, ...]
    full: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        return FULL_SIZES if self.full else QUICK_SIZES

    def upto(self, most: int) -> tuple[int, ...]:
        """The sizes up to `most`."""
        return tuple(n for n in self.sizes if n <= most)


class DesignLevels(dict[str, str]):
    """Levels by factor, read as what they mean."""

    def number(self, name: str, default: int = 0) -> int:
        return int(self.get(name, default))

    def flag(self, name: str) -> bool:
        return self.get(name) == "yes"


@dataclass(frozen=True, slots=True)
class Space:
    """A family's factors and the call that they make. `build` never fails for levels of `factors`;
    combinations that mean nothing mean the nearest that does. `singled` are combinations of three
    or more levels in which defects live, which pairs would meet by luck alone."""

    factors: Callable[[Op, DesignScope], Sequence[Factor]]
    build: Callable[[Op, DesignLevels], Sample]
    singled: Callable[[Op, DesignScope], Iterable[Levels]] = lambda _op, _scope: ()


def forms(op: Op) -> Factor:
    """How the op is called: functional, out, in place, as a method."""
    names = ["functional"]
    tensors = bool(op.schema.returns) and all(
        r.type == "Tensor" and not r.list for r in op.schema.returns
    )
    if tensors and not op.is_view and op.body is None and "function" in op.places:
        names.append("out")
    if op.writes.inplace:
        names.append("inplace")
    first = op.text.partition("(")[2].partition(",")[0]
    if "method" in op.places and first.startswith("Tensor") and not first.endswith("condition"):
        names.append("method")
    return factor("form", *names)


def common(op: Op, scope: DesignScope, fills: Sequence[str] = FILLS) -> list[Factor]:
    """Factors of every family: form, dtype, layouts of the input and of `out`, values."""
    factors = [
        forms(op), factor("dtype", *first_float(scope.dtypes)), factor("layout", *LAYOUTS),
        factor("values", *fills),
    ]  # fmt: skip
    if "out" in factors[0].levels:
        factors.append(factor("to", *OUT_LAYOUTS))
    return factors


def first_float(dtypes: Sequence[str]) -> list[str]:
    """float32 first where it is taken: the plain case's dtype."""
    return sorted(dtypes, key=lambda d: d != "float32")


def capped(shape: Sequence[int], keep: int, cap: int = FULL_CAP) -> tuple[int, ...]:
    """`shape` with dimensions other than `keep` cut until it has at most `cap` elements."""
    sizes = list(shape)
    for d in range(len(sizes)):
        if d != keep and prod(sizes) > cap:
            sizes[d] = max(1, cap // max(prod(sizes) // max(sizes[d], 1), 1))
    return tuple(sizes)


def data(
    op: Op, shape: Sequence[int], selection: DesignLevels, operand: int = 0, dtype: str = "",
    span: tuple[float, float] = (-2.0, 2.0), layout: str = "",
) -> Input:  # fmt: skip
    """A data tensor: dtype, layout and fill as chosen (operand 1 has `layout1` …)."""
    name = "layout" + (str(operand) if operand else "")
    return Input(
        tuple(shape), dtype or selection["dtype"], *span,
        layout=layout or selection.get(name, "contiguous"),
        fill=selection.get("values", "normal"), operand=operand, op=op.name,
    )  # fmt: skip


def indices(shape: Sequence[int], size: int, selection: DesignLevels, layout: str = "") -> Input:
    """A tensor of indices into [0, size), filled as `pattern` says."""
    return Input(
        tuple(shape), selection.get("index", "int64"), 0, max(size - 1, 0),
        layout=layout or selection.get("layouti", "contiguous"),
        fill=selection.get("pattern", INDEX_FILLS[0]), size=size, grad=False, operand=9,
    )  # fmt: skip


def span_of(op: Op, position: int = 0) -> tuple[float, float]:
    """The range that the row's first sample draws its tensor `position` from."""
    from ..inputs import samples, tensors_of

    for sample in samples(op.testing):
        tensors = tensors_of(sample)
        if not sample.error and position < len(tensors):
            return tensors[position].low, tensors[position].high
    return -2.0, 2.0


def is_float(dtype: str) -> bool:
    return dtype in FORMATS


def attributes(options: Mapping[str, Sequence[Any]]) -> list[Factor]:
    """Factors of attributes with these values, the first plain."""
    return [factor(name, *(repr(v) if isinstance(v, str) else v for v in values))
            for name, values in options.items()]  # fmt: skip
