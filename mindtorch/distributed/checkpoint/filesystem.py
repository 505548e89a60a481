"""Owns checkpoints in folders: a file or more for each process, and `.metadata` once all are there.

A file has torch.save's archives one after the other; `.metadata` says where each begins and ends.
Both are as torch's, which reads what is written here and writes what is read here.
"""

from __future__ import annotations

import io
import os
import pickle
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO

import mindtorch

from ..._tensor.tensor import Tensor
from ...futures import Future
from ...serialization._reading import imported
from ...serialization._writing import PicklerForTorch
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from .staging import BlockingAsyncStager
from .storage import Place, StorageReader, StorageWriter, WriteResult
from .utils import narrowed

__all__ = [
    "FileSystem", "FileSystemBase", "FileSystemReader", "FileSystemWriter", "SerializationFormat",
]  # fmt: skip
_SUFFIX = ".distcp"


@dataclass
class _StorageInfo:
    """Where an item lies: `length` bytes of a file, from `offset` on."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: list[str] | None = None


@dataclass
class _StoragePrefix:
    """How the names of a process's files begin."""

    prefix: str


class SerializationFormat(Enum):
    """How tensors are written."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


class FileSystemBase(ABC):
    """What a writer and a reader ask of files."""

    @abstractmethod
    def create_stream(self, path: Place, mode: str) -> Any:
        """A context that opens a file."""

    @abstractmethod
    def concat_path(self, path: Place, suffix: str) -> Place:
        """A path below another."""

    @abstractmethod
    def rename(self, path: Place, new_path: Place) -> None:
        """Move a file, over one that is there."""

    @abstractmethod
    def init_path(self, path: Place) -> Place:
        """A path as this kind has them."""

    @abstractmethod
    def mkdir(self, path: Place) -> None:
        """Make a folder, and those above it."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: Place) -> bool:
        """Whether this kind has such paths."""

    @abstractmethod
    def exists(self, path: Place) -> bool:
        """Whether a file is there."""

    @abstractmethod
    def rm_file(self, path: Place) -> None:
        """Delete a file."""


class FileSystem(FileSystemBase):
    """The files of this machine."""

    @contextmanager
    def create_stream(self, path: Place, mode: str) -> Iterator[Any]:
        with open(path, mode) as stream:
            yield stream

    def concat_path(self, path: Place, suffix: str) -> Place:
        return Path(path) / suffix

    def init_path(self, path: Place) -> Place:
        return Path(path)

    def rename(self, path: Place, new_path: Place) -> None:
        os.replace(path, new_path)

    def mkdir(self, path: Place) -> None:
        os.makedirs(path, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Place) -> bool:
        if isinstance(checkpoint_id, Path):
            return True
        if "://" in str(checkpoint_id):
            return False
        return any(p.exists() and os.access(p, os.W_OK) for p in Path(checkpoint_id).parents)

    def exists(self, path: Place) -> bool:
        return os.path.exists(path)

    def rm_file(self, path: Place) -> None:
        os.unlink(path)


def _in_bins(items: list[WriteItem], bins: int) -> list[list[WriteItem]]:
    """Items for each thread: objects in turn, tensors from the largest on to whom has least."""
    if bins == 1:
        return [items]
    tensors = [i for i in items if i.type is not WriteItemType.BYTE_IO]
    objects = [i for i in items if i.type is WriteItemType.BYTE_IO]
    parts: list[list[WriteItem]] = [objects[place::bins] for place in range(bins)]
    sizes = [0] * bins
    for item in sorted(tensors, key=_bytes_of, reverse=True):
        place = sizes.index(min(sizes))
        parts[place].append(item)
        sizes[place] += _bytes_of(item)
    return parts


def _bytes_of(item: WriteItem) -> int:
    return item.tensor_storage_size() or 0


class FileSystemWriter(BlockingAsyncStager, StorageWriter):
    """Writes to the folder `path`: a file for each process, or for each of its threads, or items.

    NotImplementedError for other formats than torch.save's and for extensions.
    """

    def __init__(
        self, path: Place, single_file_per_rank: bool = True, sync_files: bool = True,
        thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False, overwrite: bool = True, _extensions: object = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:  # fmt: skip
        super().__init__(cache_staged_state_dict)
        if _extensions or serialization_format is not SerializationFormat.TORCH_SAVE:
            raise NotImplementedError("FileSystemWriter: it writes torch.save's format alone")
        self.fs = FileSystem()
        self.path = self.fs.init_path(path)
        self.single_file_per_rank, self.sync_files = single_file_per_rank, sync_files
        self.thread_count, self.per_thread_copy_ahead = thread_count, per_thread_copy_ahead
        self.save_id, self.overwrite = str(uuid.uuid4()), overwrite
        self.serialization_format = serialization_format
        self.rank: int | None = None
        self.use_collectives = True

    def reset(self, checkpoint_id: Place | None = None) -> None:
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: object, **kwargs: Any) -> None:
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """RuntimeError where a checkpoint is there already and is not to be written over."""
        self.fs.mkdir(self.path)
        if self.fs.exists(self._get_metadata_path()):
            if not self.overwrite:
                raise RuntimeError("Checkpoint already exists and self.overwrite=False.")
            warnings.warn(
                f"Detected an existing checkpoint in {self.path}, overwriting since"
                f" {self.overwrite=}. Past version 2.5 of PyTorch, `overwrite` will default to"
                " False. Set this variable to True to maintain this functionality or False to raise"
                " when an existing checkpoint is found.",
                stacklevel=2,
            )
        if self.rank is not None and not self.use_collectives:
            plan = replace(plan, storage_data=_StoragePrefix(f"__{self.rank}_"))
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return [
            plan if plan.storage_data is not None
            else replace(plan, storage_data=_StoragePrefix(f"__{rank}_"))
            for rank, plan in enumerate(plans)
        ]  # fmt: skip

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        bins = [[item] for item in plan.items]
        if self.single_file_per_rank:
            bins = _in_bins(plan.items, self.thread_count)

        def write(place: int) -> list[WriteResult]:
            name = f"{plan.storage_data.prefix}{place}{_SUFFIX}"
            return self._write_file(name, bins[place], planner)

        done: Future[list[WriteResult]] = Future()
        if self.thread_count == 1:
            results = [write(place) for place in range(len(bins))]
        else:
            with ThreadPoolExecutor(self.thread_count) as threads:
                results = list(threads.map(write, range(len(bins))))
        done.set_result([result for part in results for result in part])
        return done

    def _write_file(
        self, name: str, items: list[WriteItem], planner: SavePlanner
    ) -> list[WriteResult]:
        """Objects first, then tensors."""
        results = []
        with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
            for item in sorted(items, key=lambda i: i.type is not WriteItemType.BYTE_IO):
                start = stream.tell()
                value = planner.resolve_data(item)
                if isinstance(value, io.BytesIO):
                    stream.write(value.getbuffer())
                else:
                    mindtorch.save(_alone(value), stream)
                length = stream.tell() - start
                info = _StorageInfo(name, start, length)
                results.append(WriteResult(item.index, length, info))
            if self.sync_files:
                stream.flush()
                os.fsync(stream.fileno())
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        metadata.version = "1.0.0"
        metadata.storage_data = {r.index: r.storage_data for part in results for r in part}
        metadata.storage_meta = self.storage_meta()
        rank = self.rank if not self.use_collectives else None
        final = self._get_metadata_path(rank)
        beside = self.fs.concat_path(self.path, f"{os.path.basename(final)}.tmp")
        with self.fs.create_stream(beside, "wb") as stream:
            PicklerForTorch(stream, {}, pickle.DEFAULT_PROTOCOL).dump(metadata)
            if self.sync_files:
                stream.flush()
                os.fsync(stream.fileno())
        self.fs.rename(beside, final)

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)

    def _get_metadata_path(self, rank: int | None = None) -> Place:
        return self.fs.concat_path(self.path, _metadata_name(rank))

    @property
    def checkpoint_id(self) -> Place:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Place) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)


def _metadata_name(rank: int | None) -> str:
    return ".metadata" if rank is None else f"__{rank}.metadata"


def _alone(tensor: Tensor) -> Tensor:
    """The tensor on the cpu, without elements of its memory that are not its own."""
    tensor = tensor.detach().cpu()
    owns = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.itemsize
    return tensor if owns else tensor.clone()


class _MetadataReader(pickle.Unpickler):
    """Reads `.metadata`: torch's names are ours."""

    def find_class(self, module: str, name: str) -> Any:
        return imported(module, name, super().find_class)


class FileSystemReader(StorageReader):
    """Reads from the folder `path` what FileSystemWriter, torch's too, wrote there."""

    def __init__(self, path: Place, _extension_registry: object = None) -> None:
        self.fs = FileSystem()
        self.path = self.fs.init_path(path)
        self.storage_data: dict[MetadataIndex, _StorageInfo] = {}
        self.load_id = str(uuid.uuid4())
        self.rank: int | None = None
        self.use_collectives = True

    def reset(self, checkpoint_id: Place | None = None) -> None:
        self.storage_data = {}
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: object, **kwargs: Any) -> Metadata:
        path = self.fs.concat_path(self.path, _metadata_name(kwargs.get("rank")))
        with self.fs.create_stream(path, "rb") as stream:
            metadata: Metadata = _MetadataReader(stream).load()
        if getattr(metadata, "storage_meta", None) is None:
            metadata.storage_meta = StorageMeta()
        assert metadata.storage_meta is not None
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: object, **kwargs: Any
    ) -> None:
        self.storage_data = metadata.storage_data
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        by_file: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            name = self.storage_data[item.storage_index].relative_path
            by_file.setdefault(name, []).append(item)
        for name, items in by_file.items():
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "rb") as stream:
                for item in items:
                    self._read(item, stream, planner)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _read(self, item: ReadItem, stream: BinaryIO, planner: LoadPlanner) -> None:
        info = self.storage_data[item.storage_index]
        if info.transform_descriptors:
            raise NotImplementedError(f"{info.relative_path}: {info.transform_descriptors}")
        stream.seek(info.offset)
        data = io.BytesIO(stream.read(info.length))
        if item.type is LoadItemType.BYTE_IO:
            planner.load_bytes(item, data)
            return
        tensor = mindtorch.load(data, map_location="cpu", weights_only=True)
        tensor = narrowed(tensor, item.storage_offsets, item.lengths)
        target = planner.resolve_tensor(item).detach()
        if target.size() != tensor.size():
            raise AssertionError(
                f"req {item.storage_index} mismatch sizes {target.size()} vs {tensor.size()}"
            )
        target.copy_(tensor)
        planner.commit_tensor(item, target)

    @property
    def checkpoint_id(self) -> Place:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Place) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)
