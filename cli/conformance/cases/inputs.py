"""Owns the tensors that a sample describes, and `Input`: an `Arg` that says how it is filled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from mindtorch.ops.samples import Arg, Sample

from ...judge.formats import FORMATS


@dataclass(frozen=True, slots=True)
class Input(Arg):
    """A tensor of a designed case.

    `fill` names how elements are drawn (see values.py); `operand` counts the operands, so that two
    of them differ; `same` is the position of the tensor that this one is (one tensor passed twice);
    `size` bounds indices, which lie in [0, size); `marks` are numbers that the call states, such as
    limits and thresholds, which some fills draw too.
    """

    fill: str = "normal"
    operand: int = 0
    same: int | None = None
    size: int = 0
    op: str = ""
    marks: tuple[float, ...] = ()


# What a data tensor may be filled with; each has a meaning for floats and for integers.
FILLS: Final = (
    "normal", "special", "wide", "integer", "halfway", "tiny", "large", "hard", "offset", "nan",
)  # fmt: skip
# Where sums or products on the way overflow, nobody promises which.
SUMMED: Final = ("normal", "mixed", "integer", "halfway", "offset", "nan")
INDEX_FILLS: Final = ("random", "edges", "sorted", "reversed", "repeated", "gaps")


class Sampled(Protocol):
    """What has samples: how a row of mindtorch is tested, or a subject."""

    @property
    def samples(self) -> Callable[[], Iterable[Sample]] | None: ...


def samples(op: Sampled) -> list[Sample]:
    """The samples of a row or subject; none where it has none."""
    return list(op.samples()) if op.samples is not None else []


def tensors_of(sample: Sample) -> list[Arg]:
    """The sample's tensors in order of appearance."""
    tensors: list[Arg] = []
    sample.map(lambda arg: tensors.append(arg))
    return tensors


def main_dtype(args: list[Arg]) -> str:
    """The dtype that a dtype axis replaces: that of the first float tensor, else of the first."""
    for arg in args:
        if arg.dtype in FORMATS:
            return arg.dtype
    return args[0].dtype if args else ""
