"""torch.storage: the classes of storages under torch's names."""

from mindtorch._tensor.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
