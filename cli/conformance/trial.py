"""Owns one case on one device: row, rule, inputs, what was written where; judges nothing."""

from __future__ import annotations

from typing import Any

from mindtorch.ops import Op

from . import guards, subject
from .case import Case
from .classes import Requirement, requirement
from .recipe import Recipe, Slot, describe, main_dtype, recipe
from .result import Result
from .subject import Placed, on_device


class Trial:
    """One case on one device: its row, rule, inputs and references."""

    def __init__(self, case: Case, device: str, seed: int, arrays: Any = None) -> None:
        self.case, self.device, self.seed = case, device, seed
        self.op: Op = subject.row(case.op)
        self.recipe: Recipe = recipe(self.op, case, seed, arrays)
        self.need: Requirement = requirement(case.op, self.op.tolerance, self.dtype)
        self.placed: list[Placed] = []
        self.outputs: list[Any] = []
        self.expected: list[Any] = []

    @property
    def dtype(self) -> str:
        """The dtype under test: the case's, else that of the sample's main tensor."""
        return self.case.dtype or main_dtype([s.arg for s in self.recipe.slots])

    def result(self, verdict: str, **fields: Any) -> Result:
        inputs = tuple(describe(s, self.case.layout) for s in self.recipe.slots)
        names = ", ".join(c.name for c in self.op.aclnn)
        fields = {"inputs": inputs, "aclnn": names, "dtype": self.dtype, "seed": self.seed,
                  **fields}  # fmt: skip
        return Result(self.case.id, self.case.op, self.case.form, verdict, **fields)

    def place(self, changing: int | None = None) -> tuple[list[Any], Any]:
        """The arguments on the device; tensor `changing` may be written."""
        self.placed = []
        layout = self.case.layout

        def make(slot: Slot) -> Any:
            may_change = len(self.placed) == changing
            # What is written may not overlap itself; indices keep their values.
            plain = layout == "expanded" and (may_change or slot.arg.values is not None)
            found = on_device(
                slot.array, self.device, "contiguous" if plain else layout, may_change
            )
            self.placed.append(found)
            return found.tensor

        args, kwargs = self.recipe.fill(make)
        # Factories make their tensor where they are told to.
        if not self.placed and any(a.name == "device" for a in self.op.schema.args):
            kwargs = {"device": self.device, **kwargs}
        return args, kwargs

    def trespass(self) -> list[str]:
        """What was written that may not be."""
        inputs = sum(p.trespass() for p in self.placed if not p.may_change)
        outputs = sum(p.trespass() for p in self.placed if p.may_change)
        return guards.trespass(inputs, outputs)
