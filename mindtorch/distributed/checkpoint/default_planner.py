"""Owns the planners that saves and loads take unless they are given others."""

from __future__ import annotations

import io
import math
from collections import ChainMap
from dataclasses import replace
from typing import Any

import mindtorch

from ..._tensor.tensor import Tensor
from ..tensor._api import DTensor
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from .planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from .planner_helpers import (
    flatten_state_dict,
    is_here,
    overlap,
    read_items,
    set_element,
    write_item,
)
from .utils import find_state_dict_object, narrowed

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan",
    "create_default_global_save_plan", "create_default_local_load_plan",
    "create_default_local_save_plan",
]  # fmt: skip


class DefaultSavePlanner(SavePlanner):
    """Each process writes its parts; what several have is written by the one with least to do."""

    mappings: dict[str, tuple[Any, ...]]

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None, dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:  # fmt: skip
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.mappings = {}
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self._cached_plans_key = type(self).__name__
        self._enable_plan_caching = enable_plan_caching

    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:  # fmt: skip
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        all_plans = _shared_out(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(all_plans)
        if self.flatten_state_dict:
            metadata.planner_data = dict(ChainMap(*(p.planner_data for p in plans)))
        if not _is_whole(plans, metadata):
            raise ValueError("Failed to validate global plan")
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """What the state has; for planners that look elsewhere."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """What is written of it; for planners that change it."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        stream = io.BytesIO()
        mindtorch.save(object, stream)
        return stream


class DefaultLoadPlanner(LoadPlanner):
    """Each process reads what its part of each tensor needs."""

    original_state_dict: dict[str, Any]
    mappings: dict[str, tuple[Any, ...]]

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:  # fmt: skip
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.original_state_dict, self.mappings = {}, {}
        self.allow_partial_load = allow_partial_load

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:  # fmt: skip
        _give_memory(state_dict)
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata = state_dict, metadata
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> LoadPlan:
        if self.metadata is None:
            raise AssertionError("self.metadata is not None")
        return create_default_local_load_plan(
            self.state_dict, self.metadata, not self.allow_partial_load
        )

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        name, loaded = read_item.dest_index.fqn, mindtorch.load(value, weights_only=False)
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], loaded)
        self.state_dict[name] = loaded

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Nothing."""

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """This process's part of a tensor; for planners that look elsewhere."""
        tensor: Tensor = find_state_dict_object(self.state_dict, index)
        return tensor

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """The box that is read to; for planners that change it."""
        return narrowed(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Reads a checkpoint, or names of it and what is below them, into an empty dictionary."""

    def __init__(self, keys: set[str] | None = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _wanted(self, name: str, metadata: Metadata) -> bool:
        if self.keys is None or name in self.keys:
            return True
        path, above = (metadata.planner_data or {}).get(name, ()), ""
        for key in path:
            above = f"{above}.{key}" if above else str(key)
            if above in self.keys:
                return True
        return False

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:  # fmt: skip
        if state_dict:
            raise AssertionError("not state_dict")
        if metadata is None:
            raise AssertionError("metadata is not None")
        for name, stored in metadata.state_dict_metadata.items():
            if not self._wanted(name, metadata):
                continue
            value: Any = stored
            if isinstance(stored, TensorStorageMetadata):
                value = mindtorch.empty(stored.size, dtype=stored.properties.dtype)
            path = (metadata.planner_data or {}).get(name)
            set_element(state_dict, path or (name,), value)
        super().set_up_planner(state_dict, metadata, is_coordinator)


def _give_memory(state: Any) -> None:
    """Give tensors on meta memory of the current device, in place."""
    pairs = state.items() if isinstance(state, dict) else enumerate(state)
    for key, value in list(pairs):
        if isinstance(value, Tensor) and value.is_meta:
            state[key] = _with_memory(value)
        elif isinstance(value, dict | list):
            _give_memory(value)


def _with_memory(tensor: Tensor) -> Tensor:
    if isinstance(tensor, DTensor):
        local = tensor.to_local()
        place = tensor.device_mesh.device_type
        return DTensor.from_local(
            mindtorch.empty_like(local, device=place), tensor.device_mesh, tensor.placements,
            shape=tensor.size(), stride=tensor.stride(),
        )  # fmt: skip
    return mindtorch.empty_like(tensor, device=mindtorch.get_default_device())


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """Items for all that this process has."""
    return SavePlan([write_item(name, v) for name, v in state_dict.items() if is_here(v)])


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """The plans with each chunk's place among those of its tensor, and what they make."""
    stored: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name, data = item.index.fqn, item.tensor_data
            if data is None:
                stored[name] = BytesStorageMetadata()
                items.append(item)
                continue
            whole = stored.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
            if rewrite_index_hints:
                index = replace_index(item.index, len(whole.chunks))
                item = replace(item, index=index)
            items.append(item)
            whole.chunks.append(data.chunk)
        plans.append(replace(plan, items=items))
    return plans, Metadata(stored)


def replace_index(index: MetadataIndex, place: int) -> MetadataIndex:
    """An index with another likely place."""
    return MetadataIndex(index.fqn, index.offset, place)


def _shared_out(plans: list[SavePlan], to_lowest: bool) -> list[SavePlan]:
    """Each item in one plan: the first that has it, or the one with the fewest bytes so far."""
    owners: dict[MetadataIndex, list[int]] = {}
    items: dict[MetadataIndex, WriteItem] = {}
    for place, plan in enumerate(plans):
        for item in plan.items:
            owners.setdefault(item.index, []).append(place)
            items[item.index] = item
    loads = [0] * len(plans)
    owner = {}
    for index, places in owners.items():
        place = places[0] if to_lowest else min(places, key=lambda p: loads[p])
        owner[index] = place
        loads[place] += items[index].tensor_storage_size() or 1
    return [
        replace(plan, items=[i for i in plan.items if owner[i.index] == place])
        for place, plan in enumerate(plans)
    ]


def _is_whole(plans: list[SavePlan], metadata: Metadata) -> bool:
    """Whether the chunks of each tensor are in it, are its elements, and no two have the same."""
    for stored in metadata.state_dict_metadata.values():
        if not isinstance(stored, TensorStorageMetadata):
            continue
        chunks: list[ChunkStorageMetadata] = stored.chunks
        if any(
            end > whole
            for c in chunks
            for end, whole in zip(map(sum, zip(c.offsets, c.sizes, strict=True)), stored.size,
                                  strict=True)
        ):  # fmt: skip
            return False
        if any(overlap(a, b) for i, a in enumerate(chunks) for b in chunks[i + 1 :]):
            return False
        if sum(math.prod(c.sizes) for c in chunks) != math.prod(stored.size):
            return False
    return True


def create_default_local_load_plan(
    state_dict: dict[str, Any], metadata: Metadata, strict: bool = True
) -> LoadPlan:
    """Items for all that this process has; RuntimeError for what the checkpoint lacks, which is
    left as it is where `strict` is False; ValueError for another size."""
    items: list[ReadItem] = []
    for fqn, value in state_dict.items():
        if fqn not in metadata.state_dict_metadata:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {fqn}.")
            continue
        stored = metadata.state_dict_metadata[fqn]
        if (
            isinstance(stored, TensorStorageMetadata)
            and isinstance(value, Tensor)
            and stored.size != value.size()
        ):
            raise ValueError(
                f"Size mismatch between saved {stored.size} and current: {value.size()} for {fqn}"
            )
        if is_here(value):
            items += read_items(fqn, stored, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are."""
    return all_plans
