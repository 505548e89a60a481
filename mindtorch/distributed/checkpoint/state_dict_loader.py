"""Owns load: each process fills its parts of a state from a checkpoint, however it was cut."""

from __future__ import annotations

from typing import Any

from typing_extensions import deprecated

from .. import all_gather_object
from .._group import ProcessGroup
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader
from .metadata import Metadata
from .planner import LoadPlan, LoadPlanner
from .stateful import Stateful
from .storage import Place, StorageReader
from .utils import Processes, alone

__all__ = ["load", "load_state_dict"]
State = dict[str, Any]


def _reader(storage_reader: StorageReader | None, checkpoint_id: Place | None) -> StorageReader:
    if storage_reader is not None:
        storage_reader.reset(checkpoint_id)
        return storage_reader
    if not checkpoint_id:
        raise RuntimeError(
            "`checkpoint_id` must be specified if storage_reader/storage_writer is None."
        )
    return FileSystemReader(checkpoint_id)


def load(
    state_dict: State, *, checkpoint_id: Place | None = None,
    storage_reader: StorageReader | None = None, planner: LoadPlanner | None = None,
    process_group: ProcessGroup | None = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Fill the tensors of a state in place, and put its other objects in their places.

    CheckpointException in every process where one fails: for names that the checkpoint lacks and
    for other sizes.
    """
    no_dist = alone(no_dist, "load")
    reader = _reader(storage_reader, checkpoint_id)
    all_of = Processes(process_group, no_dist)
    keys = list(state_dict.keys())
    if not no_dist:
        everywhere: list[Any] = [None] * all_of.count
        all_gather_object(everywhere, keys, group=process_group)
        keys = sorted({key for part in everywhere for key in part})
    states = {}
    for key in keys:
        if key in state_dict:
            value = state_dict[key]
            states[key] = value.state_dict() if isinstance(value, Stateful) else value
    _load_state_dict(states, reader, process_group, no_dist=no_dist, planner=planner)
    for key, loaded in states.items():
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(loaded)
        else:
            state_dict[key] = loaded


@deprecated(
    "`load_state_dict` is deprecated and will be removed in future versions. "
    "Please use `load` instead.",
    category=FutureWarning,
)
def load_state_dict(
    state_dict: State, storage_reader: StorageReader, process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: LoadPlanner | None = None,
) -> None:  # fmt: skip
    """`load`'s older name."""
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _metadata(reader: StorageReader, rank: int) -> tuple[Metadata, bool]:
    """What the checkpoint holds, and whether all processes have that in common."""
    texts = []
    for common, what in ((True, "global metadata"), (False, "rank local metadata")):
        try:
            return reader.read_metadata(**{} if common else {"rank": rank}), common
        except Exception as error:
            texts.append(f"{what} read failed: {error}")
    raise AssertionError("; ".join(["metadata is None", *texts]))


def _load_state_dict(
    state_dict: State, storage_reader: StorageReader, process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: LoadPlanner | None = None,
) -> None:  # fmt: skip
    """Plan in each process, agree in one, and read in each."""
    all_of = Processes(process_group, no_dist, coordinator_rank)
    planner = planner or DefaultLoadPlanner()

    def local() -> LoadPlan:
        metadata, common = _metadata(storage_reader, all_of.rank)
        leads = all_of.is_coordinator
        planner.set_up_planner(state_dict, metadata, leads)
        storage_reader.set_up_storage_reader(
            metadata, leads, rank=all_of.rank, use_collectives=common
        )
        return storage_reader.prepare_local_plan(planner.create_local_plan())

    def decided(plans: list[LoadPlan]) -> list[LoadPlan]:
        return storage_reader.prepare_global_plan(planner.create_global_plan(plans))

    def read() -> None:
        storage_reader.read_data(planner.finish_plan(plan), planner).wait()

    plan = all_of.scatter("plan", local, decided)
    all_of.gather("read", read)


def _load_state_dict_from_keys(
    keys: set[str] | str | None = None, *, checkpoint_id: Place | None = None,
    storage_reader: StorageReader | None = None, process_group: ProcessGroup | None = None,
) -> State:  # fmt: skip
    """What a checkpoint holds below some names, or all of it, without a state to fill."""
    no_dist = alone(False, "load")
    reader = _reader(storage_reader, checkpoint_id)
    names = {keys} if isinstance(keys, str) else keys
    state: State = {}
    _load_state_dict(
        state, reader, process_group, no_dist=no_dist,
        planner=_EmptyStateDictLoadPlanner(names or None),
    )  # fmt: skip
    return state
