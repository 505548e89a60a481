"""Owns how a case of an ACLNN operator runs: place, call by header name, read back, compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from aclnn_bindings.interface.dtypes import DTYPES
from aclnn_bindings.runtime.status import AclError
from mindtorch.npu import install
from mindtorch.testing.placement import fill_free_memory

from ...judge import guards
from ...judge.precision import Array, name_of, numpy_dtype
from ..cases.layouts import REPEATED
from ..cases.recipe import Slot
from ..cases.shapes import NotApplicableError
from ..record.result import Result
from ..run import beside
from ..run.cann_words import one_line
from ..run.comparison import compare
from ..run.invariance import Launched, laws
from ..run.laws import twice_run, within_ranks
from ..run.reference import Golden
from ..run.subject import Law
from ..run.trial import Trial
from . import reported
from .draws import complaints
from .group import OWN_GROUP, own_group
from .nans import with_open_places
from .placing import TILES, GuardedTensor, PackedInt4, ResultSlot, blank, in_tiles, lay

# Garbage of outputs and free memory in the two runs of a case.
_GARBAGE: Final = (0xFF, 0x3C)
_WORKSPACES: Final = (512, 4096, 32768)


class Launch:
    """Launches of a trial's operator: its tensors on the device, by header parameter. Inputs are
    placed once, and may not change in any launch; outputs are fresh garbage in each."""

    def __init__(self, trial: Trial, operator: Any, golden: Golden) -> None:
        self.trial, self.operator, self.golden = trial, operator, golden
        self.cann = install.cann()
        self.values = operator.values(trial.recipe, golden)
        self.call: Callable[..., Any] = self.cann.op(operator.name)
        self.inputs: dict[str, GuardedTensor | PackedInt4] = {}
        self.results: dict[int, GuardedTensor | PackedInt4] = {}
        # Results whose size the device decides: index by parameter, and what is wrong with the
        # shapes that launches reported of them.
        self.sized: dict[str, int] = {}
        self.complaints: list[str] = []

    def prepare(self, garbage: int) -> None:
        """Place every tensor, outputs full of `garbage` (a byte)."""
        self._release()
        self.garbage = garbage
        self.arguments = {name: self._argument(name, v, name) for name, v in self.values.items()}

    def launch(self, stream: Any = None) -> None:
        """Queue one launch, on the current stream by default; wait for one that reports the size
        of a result."""
        if not self.sized:
            self.call(**self.arguments, stream=stream)
            return
        shapes = reported.launch(self.cann, self.call, self.arguments)
        for name, index in self.sized.items():
            expected = self.golden.native[index].shape
            if words := reported.complaint(name, shapes[name], expected):
                self.complaints.append(words)

    def run(self, garbage: int) -> None:
        """Place everything, launch once and wait."""
        self.prepare(garbage)
        self._dirty()
        self.launch()
        self.cann.runtime.current_stream().synchronize()

    def _dirty(self) -> None:
        sizes = {a.nbytes for a in self.golden.native if a is not None} | set(_WORKSPACES)
        fill_free_memory(self.trial.device, sizes, self.garbage)

    def _argument(self, name: str, value: Any, place: str) -> Any:
        if isinstance(value, ResultSlot):
            return self._written(name, value)
        if isinstance(value, Slot):
            if place not in self.inputs:
                form = self.operator.format(name)
                tiles = form == TILES
                self.inputs[place] = lay(
                    self.cann, in_tiles(value.array) if tiles else value.array,
                    "contiguous" if tiles else self._layout(value), format=form)  # fmt: skip
            return self.inputs[place].tensor
        if isinstance(value, list):
            return tuple(self._argument(name, v, f"{place}[{i}]") for i, v in enumerate(value))
        return own_group(self.cann) if value == OWN_GROUP else value

    def _layout(self, slot: Slot) -> str:
        if self.trial.case.designed:
            return slot.arg.layout
        layout = self.trial.case.layout
        # Indices keep their values, which stride 0 would repeat.
        if self.trial.case.form == "out" or (layout in REPEATED and slot.arg.values is not None):
            return "contiguous"
        explicit = slot.arg.values is not None and layout == "contiguous"
        return slot.arg.layout if explicit else layout  # given values may lie as the sample says

    def _written(self, name: str, value: Any) -> Any:
        case = self.trial.case
        to = dict(case.factors).get("to", "contiguous")
        layout_name = (
            to
            if case.designed
            else case.layout
            if case.form == "out" or value.slot is not None
            else "contiguous"
        )
        layout = "contiguous" if layout_name in REPEATED else layout_name
        layout = self.operator.layout(name) or layout
        form = self.operator.format(name)
        if value.slot is not None:
            placement = lay(self.cann, value.slot.array, layout, True, form)
        else:
            like = self.golden.native[value.index]
            room = reported.room_of(self.operator.name, self.values, name)
            if room is not None:
                self.sized[name] = value.index
                like = reported.with_room(like, room)
            if value.dtype:
                like = like.astype(numpy_dtype(DTYPES[value.dtype].numpy))
            placement = blank(self.cann, like, layout, self.garbage, form)
        self.results[value.index] = placement
        return placement.tensor

    def read(self) -> list[Any]:
        """The results in the reference's order."""
        sized = self.sized.values()
        return [
            reported.packed(self.results[k].read(), self.golden.native[k].shape)
            if k in sized else self.results[k].read() for k in sorted(self.results)
        ]  # fmt: skip

    def outside(self) -> list[str]:
        """What the last launch wrote outside of its outputs."""
        return guards.trespass(0, sum(p.trespass() for p in self.results.values()))

    def changed(self) -> list[str]:
        """What any launch wrote to its inputs."""
        return guards.trespass(sum(p.trespass() for p in self.inputs.values()), 0)

    def _release(self) -> None:
        for placement in self.results.values():
            placement.close()
        self.results = {}

    def close(self) -> None:
        for placement in (*self.inputs.values(), *self.results.values()):
            placement.close()


def functional(trial: Trial) -> Result:
    """device = reference, of some cases twice, with other garbage in memory; nothing else is
    written."""
    operator: Any = trial.subject
    golden = operator.golden(trial.recipe, trial.need)
    within_ranks(trial, golden)
    runs, objections = [], []
    launch = Launch(trial, operator, golden)
    try:
        again = operator.draws is not None or twice_run(trial.case)
        for garbage in _GARBAGE if again else _GARBAGE[:1]:
            launch.run(garbage)
            runs.append(launch.read())
            objections += launch.outside()
        objections += launch.changed()
        if again and trial.need.tier != "none" and beside.applies(trial.case):
            objections += _beside(trial, launch, runs[0])
    except AclError as error:
        if not operator.elsewhere:
            raise
        why = f"documents do not list this product: {one_line(error)}"
        return trial.result("UNSUPPORTED", reason=why)
    finally:
        launch.close()
    if launch.complaints:
        return trial.result("FAIL", required="T0", reason=launch.complaints[0])
    indices = sorted(launch.results)
    whole, golden = golden, golden.only(indices)
    if trial.need.tier != "none" and again:
        pairs = zip(*(_without_open(operator, golden, run) for run in runs), strict=True)
        objections += [o for a, b in pairs if (o := guards.second_run(a, b))]
    if "nan" in (trial.case.fill, dict(trial.case.factors).get("values")):
        golden = with_open_places(golden, trial.recipe, runs[0], lambda r: operator.golden(
            r, trial.need).only(indices))  # fmt: skip
    got = [(name_of(a), a) for a in runs[0]]
    result = compare(trial, operator.settle(golden, runs[0]), got, list(dict.fromkeys(objections)))
    if operator.draws is None or result.verdict != "PASS":
        return result
    against = complaints(
        trial, operator.draws, runs[0][0], runs[1][0], lambda t: _first_result(t, whole)
    )
    return result.with_(verdict="FAIL", reason="; ".join(against)) if against else result


def _beside(trial: Trial, launch: Launch, first: list[Array]) -> list[str]:
    """What objects to results that differ while another launch is in flight."""
    if launch.sized or launch.operator.draws is not None or launch.operator.open_results:
        return []
    companion = beside.companion(trial)
    golden = launch.operator.golden(companion.recipe, companion.need)
    other = Launch(companion, launch.operator, golden)
    try:
        other.run(_GARBAGE[0])
        alone = other.read()
        other.prepare(_GARBAGE[0])
        launch.prepare(_GARBAGE[0])
        device = launch.cann.runtime.device()
        launch.launch()
        other.launch(device.stream())
        device.synchronize()
        return beside.differing([*first, *alone], [*launch.read(), *other.read()])
    finally:
        other.close()


def _without_open(operator: Any, golden: Golden, run: list[Array]) -> list[Array]:
    """What came, less the elements that a row with several right answers leaves open (NaN)."""
    if not operator.open_results:
        return run
    return [a if v is None or v.dtype.kind != "f" else np.where(np.isnan(v), 0, a).astype(a.dtype)
            for a, v in zip(run, golden.values, strict=True)]  # fmt: skip


def _first_result(trial: Trial, golden: Golden) -> Any:
    """The first result of one launch."""
    launch = Launch(trial, trial.subject, golden)
    try:
        launch.run(_GARBAGE[0])
        return launch.read()[0]
    finally:
        launch.close()


def launched(trial: Trial) -> Launched:
    """One launch of a trial: its reference, and what came."""
    operator: Any = trial.subject
    if operator.draws is not None:
        raise NotApplicableError("its results are drawn")
    golden = operator.golden(trial.recipe, trial.need)
    within_ranks(trial, golden)
    launch = Launch(trial, operator, golden)
    try:
        launch.run(_GARBAGE[0])
        golden = golden.only(sorted(launch.results))
        return golden, _without_open(operator, golden, launch.read())
    except AclError as error:
        if not operator.elsewhere:
            raise
        why = f"documents do not list this product: {one_line(error)}"
        raise NotApplicableError(why) from error
    finally:
        launch.close()


LAWS: Final[dict[str, Law]] = {
    "functional": functional,
    "out": functional,
    **laws(launched),
}
