"""Owns what a checkpoint of shards holds: names, whole sizes, and the chunks they are cut into.

A checkpoint's `.metadata` is the pickle of a `Metadata`, whose fields are those of torch's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import mindtorch

from ..._functional.queries import layout as Layout
from ..._tensor.dtype import dtype as Dtype
from ..._tensor.geometry import Size
from ..._tensor.tensor import Tensor

__all__ = [
    "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta",
    "TensorProperties", "TensorStorageMetadata",
]  # fmt: skip


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor: its first indices, and its sizes."""

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):  # noqa: N801 - the name is in files
    """Memory formats as files hold them."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = ("contiguous_format", "channels_last", "preserve_format")


@dataclass
class TensorProperties:
    """What a tensor is besides its size."""

    dtype: Dtype = field(default_factory=mindtorch.get_default_dtype)
    layout: Layout = mindtorch.strided
    requires_grad: bool = False
    memory_format: Any = mindtorch.contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        at = [getattr(mindtorch, name) for name in _FORMATS]
        if self.memory_format not in at:
            raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")
        place = _MEM_FORMAT_ENCODING(at.index(self.memory_format))
        return self.dtype, self.layout, self.requires_grad, place, self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, place, self.pin_memory = state
        self.memory_format = getattr(mindtorch, _FORMATS[place.value])

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """Those of `tensor`."""
        return TensorProperties(
            tensor.dtype, tensor.layout, tensor.requires_grad, pin_memory=tensor.is_pinned()
        )


@dataclass
class TensorStorageMetadata:
    """A tensor as a whole, and its chunks."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object that is no tensor."""


@dataclass
class StorageMeta:
    """Where a checkpoint is, and the marks of one save and one load."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """A checkpoint: what it holds by name, what planners and storages keep beside it."""

    state_dict_metadata: dict[str, Any]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """A name, and the first indices of a chunk; `index` is the chunk's likely place."""

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(
        self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None
    ) -> None:
        vars(self).update(fqn=fqn, index=index)
        if offset is not None:
            vars(self)["offset"] = Size(offset)
