"""Owns ways between checkpoints of shards and files of torch.save."""

from __future__ import annotations

from typing import Any

import mindtorch

from ..._tensor.tensor import Tensor
from ...futures import Future
from .. import broadcast, get_rank, is_initialized
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import Metadata, TensorProperties, TensorStorageMetadata
from .planner import LoadItemType, LoadPlan, LoadPlanner
from .planner_helpers import chunk_of, flatten_state_dict
from .state_dict_loader import _load_state_dict
from .state_dict_saver import _save_state_dict
from .storage import Place, StorageReader
from .utils import narrowed

__all__ = [
    "BroadcastingTorchSaveReader", "DynamicMetaLoadPlanner", "dcp_to_torch_save",
    "torch_save_to_dcp",
]  # fmt: skip


class BroadcastingTorchSaveReader(StorageReader):
    """Reads a file of torch.save in one process, which gives its tensors to the others."""

    def __init__(self, checkpoint_id: Place | None = None, coordinator_rank: int = 0) -> None:
        self.checkpoint_id, self.coordinator_rank = checkpoint_id, coordinator_rank

    def read_metadata(self, *args: object, **kwargs: Any) -> Metadata:
        return Metadata({})

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """RuntimeError for what is no tensor."""
        loaded: dict[str, Any] = {}
        if self.is_coordinator:
            assert self.checkpoint_id is not None
            state = mindtorch.load(self.checkpoint_id, map_location="cpu", weights_only=False)
            loaded, _ = flatten_state_dict(state)
        for item in plan.items:
            name = item.storage_index.fqn
            if item.type is LoadItemType.BYTE_IO:
                raise RuntimeError(
                    f"Non-tensor value identified at {name}. At this time {type(self).__name__}"
                    " only supports loading Tensors."
                )
            assert isinstance(planner, DefaultLoadPlanner)
            like = planner.state_dict[name]
            here = self.is_coordinator
            tensor: Tensor = loaded[name] if here else mindtorch.empty_like(like, device="cpu")
            if is_initialized():
                tensor = tensor.contiguous()
                broadcast(tensor, self.coordinator_rank)
            part = narrowed(tensor, item.storage_offsets, item.lengths)
            target = planner.resolve_tensor(item).detach()
            target.copy_(part)
            planner.commit_tensor(item, target)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: object, **kwargs: Any
    ) -> None:
        self.is_coordinator = is_coordinator
        if is_initialized() and is_coordinator != (get_rank() == self.coordinator_rank):
            raise AssertionError("the process that reads the file is that which decides")

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def reset(self, checkpoint_id: Place | None = None) -> None:
        self.checkpoint_id = checkpoint_id or self.checkpoint_id

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Place) -> bool:
        return True


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Takes what a file holds to be what the state has: for files that do not say it."""

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:  # fmt: skip
        super().set_up_planner(state_dict, metadata, is_coordinator)
        stored: dict[str, Any] = {}
        for name, value in self.state_dict.items():
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    f"Non-tensor value identified at {name}. At this time {type(self).__name__}"
                    " only supports loading Tensors."
                )
            whole = mindtorch.empty(value.size(), dtype=value.dtype, device="meta")
            properties = TensorProperties(dtype=value.dtype)
            stored[name] = TensorStorageMetadata(properties, value.size(), [chunk_of(whole)])
        self.metadata = Metadata(stored)


def dcp_to_torch_save(dcp_checkpoint_dir: Place, torch_save_path: Place) -> None:
    """Write a checkpoint, read whole in this process, as a file of torch.save."""
    state: dict[str, Any] = {}
    reader, planner = FileSystemReader(dcp_checkpoint_dir), _EmptyStateDictLoadPlanner()
    _load_state_dict(state, reader, planner=planner, no_dist=True)
    mindtorch.save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: Place, dcp_checkpoint_dir: Place) -> None:
    """Write what is in a file of torch.save, which is trusted, as a checkpoint."""
    state = mindtorch.load(torch_save_path, weights_only=False)
    _save_state_dict(state, FileSystemWriter(dcp_checkpoint_dir), no_dist=True)
