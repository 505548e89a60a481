"""Owns torch.types' names for annotations."""

import os
from typing import IO, Any, TypeAlias

from ._tensor.device import device
from ._tensor.dtype import dtype
from ._tensor.geometry import Size
from ._tensor.tensor import Tensor

Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
_dtype = dtype
_device = device
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | tuple[Tensor, ...] | list[Tensor]
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Storage = Any
