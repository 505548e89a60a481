"""Owns the chunks of a process's tensors, the items that write them, and those that read them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ..._tensor.geometry import Size
from ..._tensor.tensor import Tensor
from ..tensor._api import DTensor
from ..tensor._redistribute import local_shape_and_offset
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadItemType, ReadItem, TensorWriteData, WriteItem, WriteItemType

__all__ = ["create_read_items_for_chunk_list"]


def chunk_of(tensor: Tensor) -> ChunkStorageMetadata:
    """The box of the whole that this process has."""
    if isinstance(tensor, DTensor):
        sizes, offsets = local_shape_and_offset(tensor.shape, tensor.device_mesh, tensor.placements)
        return ChunkStorageMetadata(Size(offsets), Size(sizes))
    return ChunkStorageMetadata(Size([0] * tensor.ndim), tensor.size())


def is_here(value: object) -> bool:
    """Whether this process has a part; it need not be in the mesh of a DTensor."""
    return not isinstance(value, DTensor) or value.device_mesh.get_coordinate() is not None


def write_item(fqn: str, value: object) -> WriteItem:
    """The item that writes a value."""
    if not isinstance(value, Tensor):
        return WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)
    kind = WriteItemType.SHARD if isinstance(value, DTensor) else WriteItemType.TENSOR
    chunk, properties = chunk_of(value), TensorProperties.create_from_tensor(value)
    data = TensorWriteData(chunk, properties, value.size())
    return WriteItem(MetadataIndex(fqn, chunk.offsets), kind, tensor_data=data)


def read_items(fqn: str, stored: object, value: object) -> list[ReadItem]:
    """The items that fill a value; ValueError where the checkpoint has another kind of object."""
    if isinstance(stored, BytesStorageMetadata):
        index, nowhere = MetadataIndex(fqn), Size((0,))
        return [ReadItem(LoadItemType.BYTE_IO, index, nowhere, index, nowhere, nowhere)]
    if not isinstance(value, Tensor):
        raise ValueError(
            f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found"
            f" {type(stored)}"
        )
    assert isinstance(stored, TensorStorageMetadata)
    return create_read_items_for_chunk_list(fqn, stored, [chunk_of(value)])


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]
) -> list[ReadItem]:
    """An item for each stored chunk and each chunk of this process that have elements in common."""
    items = []
    for place, local in enumerate(local_chunks):
        for stored_place, stored in enumerate(checkpoint_md.chunks):
            box = _common(stored, local)
            if box is None:
                continue
            starts, lengths = box
            items.append(ReadItem(
                LoadItemType.TENSOR,
                MetadataIndex(fqn, local.offsets, place), _minus(starts, local.offsets),
                MetadataIndex(fqn, stored.offsets, stored_place), _minus(starts, stored.offsets),
                Size(lengths),
            ))  # fmt: skip
    return items


def _minus(starts: list[int], offsets: Size) -> Size:
    return Size([start - offset for start, offset in zip(starts, offsets, strict=True)])


def _common(a: ChunkStorageMetadata, b: ChunkStorageMetadata) -> tuple[list[int], list[int]] | None:
    """(first indices, sizes) of the box that is in both; None where none is."""
    starts = list(map(max, a.offsets, b.offsets))
    ends = [
        min(p + n, q + m) for p, n, q, m in zip(a.offsets, a.sizes, b.offsets, b.sizes, strict=True)
    ]
    lengths = [end - start for start, end in zip(starts, ends, strict=True)]
    return None if any(n <= 0 for n in lengths) else (starts, lengths)


def overlap(a: ChunkStorageMetadata, b: ChunkStorageMetadata) -> bool:
    """Whether two chunks have elements in common."""
    return _common(a, b) is not None


def _is_flat(values: list[Any]) -> bool:
    """Whether a list is kept as one object: no tensor and no dictionary is in it."""
    return not any(
        isinstance(v, dict | Tensor) or (isinstance(v, list) and not _is_flat(v)) for v in values
    )


def flattened(state: Any, visit: Callable[[tuple[Any, ...], Any], None], at: Any = ()) -> None:
    """Call `visit(path, value)` for what is in dictionaries, and in lists of tensors or of them."""
    if isinstance(state, dict):
        for key, value in state.items():
            flattened(value, visit, (*at, str(key)))
    elif isinstance(state, list) and not _is_flat(state):
        for place, value in enumerate(state):
            flattened(value, visit, (*at, place))
    else:
        visit(at, state)


def flatten_state_dict(state: Any) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """(values by names with dots, the path of each); ValueError for a name of two."""
    flat: dict[str, Any] = {}
    paths: dict[str, tuple[Any, ...]] = {}

    def keep(path: tuple[Any, ...], value: Any) -> None:
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name], paths[name] = value, path

    state.items()
    flattened(state, keep)
    return flat, paths


def set_element(state: Any, path: tuple[Any, ...], value: Any) -> None:
    """Put a value at a path; dictionaries and lists on the way are made where they are missing."""
    for key, after in pairwise(path):
        _lengthened(state, key)
        inner = state[key] if isinstance(key, int) else state.get(key)
        if inner is None:
            state[key] = inner = {} if isinstance(after, str) else []
        state = inner
    _lengthened(state, path[-1])
    state[path[-1]] = value


def _lengthened(state: Any, key: object) -> None:
    if isinstance(key, int) and isinstance(state, list):
        state.extend([None] * (key + 1 - len(state)))
