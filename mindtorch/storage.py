"""torch.storage: the classes of storages under torch's names."""

from ._tensor.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
