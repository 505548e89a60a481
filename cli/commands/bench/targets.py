"""Owns what a workload runs: a torch row, or an ACLNN operator called by its header."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Protocol

from mindtorch.ops import OPS, Op
from mindtorch.testing.placement import from_host, to_host

from ...conformance.cases.case import Case
from ...conformance.cases.recipe import Recipe
from ...conformance.operators.find import subject
from ...conformance.operators.laws import Launch
from ...conformance.run.reference import Golden, golden
from ...conformance.run.subject import PREFIX
from ...conformance.run.tensors import dtype_name, results, synchronize
from ...judge.classes import Requirement, requirement
from ...recording.cases import subject as recorded
from . import rivals

Run = Callable[[], Any]


class BenchTarget(Protocol):
    """One workload's call: its rule, reference, results, and what it is compared with."""

    need: Requirement
    reference: Golden

    @property
    def op(self) -> Op | None: ...  # the row that knows the cost
    def run(self) -> Run: ...
    def outputs(self, run: Run) -> list[tuple[str, Any]]: ...
    def rival(self, side: str) -> Run: ...


class RowTarget:
    """A row of mindtorch."""

    def __init__(self, op: Op, recipe: Recipe, device: str) -> None:
        self.op, self.recipe, self.device = op, recipe, device
        self.need = requirement(op.testing.tolerance, op.testing.rule)
        whole = golden(op, recipe, self.need, "functional")
        # Inputs that a call writes move with every call: no result of the measured ones.
        self.reference = whole.only(list(range(len(whole.native) - len(whole.moved))))

    def run(self) -> Run:
        """The call with inputs of its own on the device."""
        args, kwargs = self.recipe.fill(lambda slot: from_host(slot.array).to(self.device))
        function = self.op.entry("aten")
        return lambda: function(*args, **kwargs)

    def outputs(self, run: Run) -> list[tuple[str, Any]]:
        """(dtype, elements) of every result of one call."""
        outputs = results(run())
        synchronize(self.device)
        return [(dtype_name(t), to_host(t)) for t in outputs]

    def rival(self, side: str) -> Run:
        make = rivals.in_torch if side == "torch" else rivals.in_numpy
        return make(self.op, self.recipe)


# What outputs hold before a launch, as a byte.
_GARBAGE: Final = 0xFF


class OperatorTarget:
    """An ACLNN operator; its outputs are made once and written by every call."""

    def __init__(self, name: str, recipe: Recipe, operator: Any) -> None:
        self.recipe, self.name, self.operator = recipe, name, operator
        # The row that says how it is called, which knows its cost too.
        self.op: Op | None = operator.op
        self.need = self.operator.requirement("")
        self.whole: Golden = self.operator.golden(recipe, self.need)
        present = [k for k, a in enumerate(self.whole.native) if a is not None]
        self.reference = self.whole.only(present)

    def _launch(self) -> Launch:
        case = Case(self.name, "functional")
        trial: Any = SimpleNamespace(recipe=self.recipe, case=case, device="npu:0")
        launch = Launch(trial, self.operator, self.whole)
        launch.prepare(_GARBAGE)
        return launch

    def run(self) -> Run:
        return self._launch().launch

    def outputs(self, run: Run) -> list[tuple[str, Any]]:  # noqa: ARG002 - one launch of its own
        """(dtype, elements) of every result, of fresh inputs: an operator may write its inputs."""
        launch = self._launch()
        launch.run(_GARBAGE)
        outputs = launch.read()
        selection = self.whole.only(sorted(launch.results))
        self.reference = self.operator.settle(selection, outputs)
        launch.close()
        return [(a.dtype.name, a) for a in outputs]

    def rival(self, side: str) -> Run:
        if side == "torch":
            raise rivals.NoRivalError(f"torch has no function {self.name}")
        return lambda: self.operator.golden(self.recipe, self.need)


def target(name: str, recipe: Recipe, device: str, recording: Path | None = None) -> BenchTarget:
    """What the workload of `name` runs; UnknownSubjectError for an operator without a formula.

    With a `recording`, names are those of its distinct launches.
    """
    if name.startswith(PREFIX):
        from mindtorch.npu import install

        declared = install.cann().declarations
        what = recorded(recording, name, declared) if recording else subject(name, declared)
        return OperatorTarget(name, recipe, what)
    return RowTarget(OPS[name], recipe, device)


def open_device(device: str, home: Any, simulator: bool) -> Any:
    """The CANN that holds `device`, which is the current one from here on; None for a cpu."""
    if not device.startswith("npu"):
        return None
    import aclnn_bindings
    from mindtorch.npu import install

    cann = aclnn_bindings.open(home, simulator=simulator)
    install.use(cann)
    install.device(int(device.partition(":")[2] or 0))
    return cann
