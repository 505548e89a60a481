"""Owns save and async_save: each process writes its parts of a state to a checkpoint."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

from typing_extensions import deprecated

from .._group import ProcessGroup
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .metadata import Metadata
from .planner import SavePlan, SavePlanner
from .staging import AsyncStager, DefaultStager, StagingOptions
from .stateful import Stateful
from .storage import Place, StorageWriter, WriteResult
from .utils import Processes, alone

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]
State = dict[str, Any]


class AsyncCheckpointerType(Enum):
    """Where async_save writes: a thread here, whichever is asked for."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """What async_save gives where the copy too is made beside training."""

    staging_completion: Future[None]
    upload_completion: Future[None]


def _writer(storage_writer: StorageWriter | None, checkpoint_id: Place | None) -> StorageWriter:
    if storage_writer is not None:
        storage_writer.reset(checkpoint_id)
        return storage_writer
    if not checkpoint_id:
        raise RuntimeError(
            "`checkpoint_id` must be specified if storage_reader/storage_writer is None."
        )
    return FileSystemWriter(checkpoint_id)


def _states(state_dict: State) -> State:
    """The state with what each Stateful says of itself."""
    return {k: v.state_dict() if isinstance(v, Stateful) else v for k, v in state_dict.items()}


def save(
    state_dict: State, *, checkpoint_id: Place | None = None,
    storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
    process_group: ProcessGroup | None = None, no_dist: bool = False, use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """Write a state, all processes together; what the checkpoint then holds.

    CheckpointException in every process where one fails.
    """
    no_dist = alone(no_dist, "save")
    writer = _writer(storage_writer, checkpoint_id)
    return _save_state_dict(
        _states(state_dict), writer, process_group, no_dist=no_dist, planner=planner,
        use_collectives=use_collectives,
    )  # fmt: skip


@deprecated(
    "`save_state_dict` is deprecated and will be removed in future versions."
    "Please use `save` instead.",
    category=FutureWarning,
)
def save_state_dict(
    state_dict: State, storage_writer: StorageWriter, process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: SavePlanner | None = None,
) -> Metadata:  # fmt: skip
    """`save`'s older name."""
    storage_writer.reset()
    return _save_state_dict(
        state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner
    )


def async_save(
    state_dict: State, *, checkpoint_id: Place | None = None,
    storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
    process_group: ProcessGroup | None = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: AsyncStager | None = None, no_dist: bool = False, use_collectives: bool = True,
) -> Future[Any] | AsyncSaveResponse:  # fmt: skip
    """Copy a state, and write the copy in a thread: a future of what `save` gives.

    The group must have no other calls meanwhile, unless it is this save's own.
    """
    stager = async_stager
    if stager is None and isinstance(storage_writer, AsyncStager):
        stager = storage_writer
    stager = stager or DefaultStager(StagingOptions(False, False, False))
    staged = stager.stage(_states(state_dict))

    def write() -> Metadata:
        state = staged.result() if isinstance(staged, Future) else staged
        return save(
            state, checkpoint_id=checkpoint_id, storage_writer=storage_writer, planner=planner,
            process_group=process_group, no_dist=no_dist, use_collectives=use_collectives,
        )  # fmt: skip

    thread = ThreadPoolExecutor(1)
    writing = thread.submit(write)
    thread.shutdown(wait=False)
    if isinstance(staged, Future):
        response: Any = AsyncSaveResponse(Future(), Future())
        _passed_on(staged, response.staging_completion)
        _passed_on(writing, response.upload_completion)
        return response
    if stager.should_synchronize_after_execute:
        stager.synchronize_staging()
    return writing


def _passed_on(source: Future[Any], to: Future[None]) -> None:
    def tell(done: Future[Any]) -> None:
        error = done.exception()
        to.set_exception(error) if error else to.set_result(None)

    source.add_done_callback(tell)


def _save_state_dict(
    state_dict: State, storage_writer: StorageWriter, process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: SavePlanner | None = None,
    use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """Plan in each process, share the work out in one, write in each, and say so in one."""
    all_of = Processes(process_group, no_dist, coordinator_rank)
    rank = all_of.rank
    steps = all_of if use_collectives else Processes(None, True)
    planner = planner or DefaultSavePlanner()
    metadata_made: list[Metadata] = []

    def local() -> SavePlan:
        leads = all_of.is_coordinator
        planner.set_up_planner(state_dict, storage_writer.storage_meta(), leads)
        storage_writer.set_up_storage_writer(leads, rank=rank, use_collectives=use_collectives)
        return storage_writer.prepare_local_plan(planner.create_local_plan())

    def decided(plans: list[SavePlan]) -> list[SavePlan]:
        plans, metadata = planner.create_global_plan(plans)
        metadata_made.append(metadata)
        return storage_writer.prepare_global_plan(plans)

    def write(plan: SavePlan) -> list[WriteResult]:
        writing = storage_writer.write_data(planner.finish_plan(plan), planner)
        writing.wait()
        return writing.value()

    def finish(results: list[list[WriteResult]]) -> Metadata:
        storage_writer.finish(metadata_made[0], results)
        return metadata_made[0]

    plan = steps.scatter("plan", local, decided)
    return steps.reduce("write", lambda: write(plan), finish)
