"""torch.storage: the classes of storages under torch's names."""

from mindtorch._tensor.typed_storage import TypedStorage
from mindtorch._tensor.untyped_storage import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
