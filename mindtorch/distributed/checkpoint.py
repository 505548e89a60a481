"""torch.distributed.checkpoint's names: checkpoints of shards are refused, states of models not."""

from pathlib import Path

from .._compat.refusals import refusals

_NAMES = (
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata",
    "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter",
    "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "LoadPlan", "LoadPlanner",
    "Metadata", "ReadItem", "SavePlan", "SavePlanner", "StorageReader", "StorageWriter",
    "TensorStorageMetadata", "WriteItem", "async_save", "load", "load_state_dict", "save",
    "save_state_dict",
)  # fmt: skip
_WHY = "files of shards are not written; torch.save on rank 0 writes what full_tensor() gives"

__path__ = [str(Path(__file__).with_name("_checkpoint"))]  # the rest is in absent_modules.txt
__all__ = list(_NAMES)
__getattr__ = refusals("torch.distributed.checkpoint", _WHY, _NAMES)
