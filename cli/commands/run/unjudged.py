"""Says what was asked of a run and is not known after it: a missing verdict is not a pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from aclnn_bindings.layers import parent
from aclnn_bindings.layers.session import Ended

from ... import planted_faults
from ...plurals import plural
from . import unseen
from .options import RunOptions

if TYPE_CHECKING:
    from .verify import Verified


_DISPLAY_LIMIT: Final = 8


# By which generated custom operators launch; calls of known packages are internal.
_GENERATED_LAUNCH: Final = "NnopbaseRunWithWorkspace"


def reasons(
    options: RunOptions,
    ended: Ended,
    verified: Verified | None,
    calls: Mapping[str, tuple[int, int, int]],
    holds_data: bool = True,
) -> list[str]:
    """Why less was judged, recorded or changed than was asked for; none when all was. `calls` has
    the numbers of calls of each function that was recorded; `holds_data`, whether data was."""
    planted = planted_faults.unstruck()
    if not options.observes:
        return planted
    if not ended.loaded:
        return [*planted, f"the layers saw nothing of {unseen.with_reason(options.command[0])}"]
    launches = [*_of_packages(calls), *(_of_launches(verified) if verified else ())]
    if options.recording.data and not holds_data:
        launches.append(f"--data {' '.join(options.recording.data)} recorded no tensor")
    return [*planted, *_of_layers(options, ended), *launches]


def _of_layers(options: RunOptions, ended: Ended) -> Iterator[str]:
    if killed := parent.signal_name(ended.code):
        yield f"what the program did when {killed} killed it"
    if ended.unable:
        yield f"a layer did not do what was asked: {ended.unable}"
    if ended.running:
        pids = ", ".join(map(str, ended.running[:_DISPLAY_LIMIT]))
        yield f"processes that the program left behind still run, and are no longer seen: {pids}"
    if ended.failure:
        yield f"the recording ends early: {ended.failure}"
    if ended.lost:
        yield f"{plural(ended.lost, 'record')} found no room and are lost"
    for spec, count in zip(options.faults, ended.matches, strict=False):
        if not count:
            yield f"--fault {spec} matched no call"


def _of_packages(calls: Mapping[str, tuple[int, int, int]]) -> Iterator[str]:
    count = calls.get(_GENERATED_LAUNCH, (0, 0, 0))[0]
    if count:
        yield (
            f"{plural(count, 'launch')} of custom operators came from a library that no "
            "layer stands before: let ASCEND_CUSTOM_OPP_PATH name its package"
        )


def _of_launches(verified: Verified) -> Iterator[str]:
    counts = verified.counts()
    if not verified.judged_pairs:
        yield "--verify found no launch to judge"
    elif counts["SKIP"]:
        yield f"{counts['SKIP']} of {len(verified.judged_pairs)} launches"
