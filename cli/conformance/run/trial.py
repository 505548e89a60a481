"""Owns one case on one device: subject, rule, inputs, what was written where; judges nothing."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any

from mindtorch.ops import Op

from ...judge import guards
from ...judge.classes import Requirement
from ..cases.case import Case
from ..cases.inputs import main_dtype
from ..cases.layouts import REPEATED
from ..cases.recipe import Recipe, Slot, describe, recipe
from ..record.result import Result
from .modes import in_mode
from .subject import Subject
from .tensors import Placed, on_device


class Trial:
    """One case on one device: its subject, rule, inputs and references."""

    def __init__(
        self, subject: Subject, case: Case, device: str, seed: int, arrays: Any = None
    ) -> None:
        self.subject, self.case, self.device, self.seed = subject, case, device, seed
        self.recipe: Recipe = recipe(subject, case, seed, arrays)
        customize = getattr(subject, "customize", None)
        if arrays is None and customize is not None:
            changed = customize(self.recipe.slots)
            if changed is not None:
                self.recipe = recipe(subject, case, seed, changed)
        self.need: Requirement = in_mode(
            subject.requirement(self.dtype), self.recipe, subject.calls, device
        )
        self.placed: list[Placed] = []
        self.outputs: list[Any] = []
        self.expected: list[Any] = []

    @property
    def op(self) -> Op:
        """The row; LookupError for an ACLNN operator that has none."""
        if self.subject.op is None:
            raise LookupError(f"{self.subject.name}: no row of mindtorch calls it")
        return self.subject.op

    @property
    def dtype(self) -> str:
        """The dtype under test: the case's, else that of the sample's main tensor."""
        return self.case.dtype or main_dtype([s.arg for s in self.recipe.slots])

    @cached_property
    def _common(self) -> dict[str, Any]:
        """What each result of the case says alike."""
        layout = "" if self.case.designed else self.case.layout
        inputs = tuple(describe(s, layout or s.arg.layout) for s in self.recipe.slots)
        return {"inputs": inputs, "aclnn": ", ".join(self.subject.calls), "dtype": self.dtype,
                "seed": self.seed}  # fmt: skip

    def result(self, verdict: str, **fields: Any) -> Result:
        fields = {**self._common, **fields}
        return Result(self.case.id, self.case.op, self.case.form, verdict, **fields)

    def place(self, changing: Collection[int] = ()) -> tuple[list[Any], Any]:
        """The arguments on the device; tensors at the positions `changing` may be written."""
        self.placed = []
        layout = self.case.layout

        def make(slot: Slot) -> Any:
            if self.case.designed:
                return self._designed(slot, changing)
            may_change = len(self.placed) in changing
            # What is written may not overlap itself; indices keep their values.
            plain = layout in REPEATED and (may_change or slot.arg.values is not None)
            placed = on_device(
                slot.array, self.device, "contiguous" if plain else layout, may_change
            )
            self.placed.append(placed)
            return placed.tensor

        args, kwargs = self.recipe.fill(make)
        # Factories make their tensor where they are told to.
        if not self.placed and any(a.name == "device" for a in self.op.schema.args):
            kwargs = {"device": self.device, **kwargs}
        return args, kwargs

    def _designed(self, slot: Slot, changing: Collection[int]) -> Any:
        """A tensor in its own layout; one that is passed twice is the same tensor."""
        if slot.same is not None:
            same = self.placed[slot.same]
            self.placed.append(same)
            return same.tensor
        may_change = len(self.placed) in changing
        layout = slot.arg.layout
        # What is written may not overlap itself.
        if may_change and layout in REPEATED:
            layout = "sliced"
        self.placed.append(on_device(slot.array, self.device, layout, may_change))
        return self.placed[-1].tensor

    @property
    def aliased(self) -> bool:
        """Whether `out` is to be the first input."""
        return dict(self.case.factors).get("alias") == "out"

    def trespass(self) -> list[str]:
        """What was written that may not be."""
        placed = {id(p): p for p in self.placed}.values()
        inputs = sum(p.trespass() for p in placed if not p.may_change)
        outputs = sum(p.trespass() for p in placed if p.may_change)
        return guards.trespass(inputs, outputs)
