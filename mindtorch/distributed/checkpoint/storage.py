"""Owns what storages of checkpoints are asked for, by writers and readers of one's own too."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ...futures import Future
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]
Place = str | os.PathLike[str]


@dataclass(frozen=True)
class WriteResult:
    """An item that was written: how long it is, and where it is to be found."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(ABC):
    """Writes a checkpoint: set up, local plan, global plan (one process), data, finish (one)."""

    @abstractmethod
    def reset(self, checkpoint_id: Place | None = None) -> None:
        """Begin a save, to another place where one is named."""

    @abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: object, **kwargs: Any) -> None:
        """Begin in this process."""

    @abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """This process's plan before others know it."""

    @abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """All plans, in one process."""

    @abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write what the plan says."""

    @abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write what the checkpoint holds, in one process; until then there is none."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: Place) -> bool:
        """Whether this kind of storage has such places."""

    def storage_meta(self) -> StorageMeta | None:
        """What planners are told of this save."""
        return None


class StorageReader(ABC):
    """Reads a checkpoint: metadata, set up, local plan, global plan (one process), data."""

    @abstractmethod
    def reset(self, checkpoint_id: Place | None = None) -> None:
        """Begin a load, from another place where one is named."""

    @abstractmethod
    def read_metadata(self, *args: object, **kwargs: Any) -> Metadata:
        """What the checkpoint holds."""

    @abstractmethod
    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: object, **kwargs: Any
    ) -> None:
        """Begin in this process."""

    @abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """This process's plan before others know it."""

    @abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """All plans, in one process."""

    @abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read what the plan says."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: Place) -> bool:
        """Whether this kind of storage has such places."""
