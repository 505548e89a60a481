"""Owns plain pickling and deepcopy of tensors; refuses files, which are `serialization`'s."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from io import BytesIO
from typing import Any

import numpy as np

from .._tensor import dtype as dt
from .._tensor.device import CPU, device as Device
from .._tensor.geometry import geometry
from .._tensor.loading import load
from .._tensor.no_memory import NoMemory
from .._tensor.storage import Storage
from .._tensor.subclass import off, plain
from .._tensor.tensor import Tensor, wrap
from .._tensor.typed_storage import TypedStorage
from .._tensor.untyped_storage import UntypedStorage
from ..ops.spec import aten


def from_bytes(
    data: bytes,
    dtype: dt.dtype,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    device: str,
    leaf: bool,
    kind: Any = None,
    state: Any = None,
) -> Tensor:
    """A tensor from plain pickling."""
    load()
    place = Device(device)
    storage = Storage(np.frombuffer(bytearray(data), np.uint8))
    if place.type == "meta":
        storage = aten.empty_strided(list(size), list(stride), dtype=dtype, device=place)._storage
    elif place.type != "cpu":
        storage = aten.to(_bytes_of(storage, CPU), place)._storage
    tensor: Any = wrap(geometry(tuple(size), tuple(stride), offset, dtype, place), storage)
    if kind is not None and kind is not Tensor:
        tensor = Tensor._make_subclass(kind, tensor)
    if state:
        tensor.__dict__.update(state)
    return tensor.requires_grad_() if leaf else tensor


def wrapper_from(kind: type[Tensor], leaf: bool, state: dict[str, Any], *geometry: Any) -> Tensor:
    """A tensor of a class of operators of its own, from plain pickling."""
    size, strides, offset, dtype, device = geometry
    tensor: Tensor = Tensor._make_wrapper_subclass(
        kind, size, strides, offset, dtype=dtype, device=device, requires_grad=leaf
    )
    tensor.__dict__.update(state)
    return tensor


def _reduce(self: Tensor, protocol: int) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    geom, storage = plain(self._geom), self._storage
    if hasattr(type(self), "__torch_dispatch__"):
        shape = tuple(geom.shape), geom.strides, geom.offset, geom.dtype, geom.device
        return wrapper_from, (type(self), self.requires_grad, self.__dict__, *shape)
    if not storage.nbytes or geom.device.type == "meta":
        data = b""
    else:
        data = bytes(_bytes_of(storage, self.device).cpu()._storage.bytes)
    args = (data, geom.dtype, tuple(geom.shape), geom.strides, geom.offset,
            str(self.device), self.requires_grad, type(self), self.__dict__ or None)  # fmt: skip
    return from_bytes, args


def _bytes_of(storage: Storage, device: Device) -> Tensor:
    """The whole memory of a storage as a tensor."""
    return wrap(geometry((storage.nbytes,), (1,), 0, dt.uint8, device), storage)


def _copied_storage(storage: Storage, device: Device, memo: dict[Any, Any]) -> Storage:
    """A copy of the whole memory; `memo` has one for all that share it."""
    copies: Any = memo.setdefault("torch", {})
    if id(storage) not in copies:
        copies[id(storage)] = (storage, aten.clone(_bytes_of(storage, device))._storage)
    copied: Storage = copies[id(storage)][1]
    return copied


def _over_copied_memory(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """The same view of a copy of the memory."""
    storage, geom = self._storage, plain(self._geom)
    if isinstance(storage, NoMemory):
        return self.clone()
    return wrap(geom, _copied_storage(storage, geom.device, memo))


def _deepcopy_of_untyped(self: UntypedStorage, memo: dict[int, Any]) -> UntypedStorage:
    return UntypedStorage.of(_copied_storage(self._storage, self.device, memo), self.device)


def _deepcopy_of_typed(self: TypedStorage, memo: dict[int, Any]) -> TypedStorage:
    copied = _deepcopy_of_untyped(self.untyped(), memo)
    return TypedStorage(wrap_storage=copied, dtype=self.dtype, _internal=True)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy"
            " protocol at the moment.  If you were attempting to deepcopy a module, this may be"
            " because of a torch.nn.utils.weight_norm usage, see"
            " https://github.com/pytorch/pytorch/pull/103001"
        )
    copied = _over_copied_memory(self.detach(), memo)
    if type(self) is not Tensor:
        _refuse_other_class(self)
        copied = Tensor._make_subclass(type(self), copied)
    if self.requires_grad:
        copied.requires_grad_()
    if self._grad is not None:
        copied._grad = self._grad.__deepcopy__(memo)
    memo[id(self)] = copied
    copied.__dict__.update(deepcopy(self.__dict__, memo))
    copied.__dict__.pop("_conjugated", None)  # a copy is written out
    return copied


def _refuse_other_class(tensor: Tensor) -> None:
    """RuntimeError in torch's words where `new_empty` gives no instance of the same class."""
    kind = type(tensor)
    if hasattr(kind, "_row_call") or kind.__module__.partition(".")[0] in ("mindtorch", "torch"):
        return
    with off():
        empty = tensor.new_empty([])
    if type(empty) is not kind:
        raise RuntimeError(
            "The default implementation of __deepcopy__() for non-wrapper subclasses only works for"
            " subclass types that implement new_empty() and for which that function returns another"
            " instance of the same subclass. You should either properly implement new_empty() for"
            " your subclass or override __deepcopy__() if it is intended behavior for new_empty()"
            " to return an instance of a different type."
        )


def _copy(self: Tensor) -> Tensor:
    """A leaf of the same class over the same memory, with the same attributes (copy.copy)."""
    copied = self.detach()
    if type(self) is not Tensor:
        copied = Tensor._make_subclass(type(self), copied)
    copied.__dict__.update(self.__dict__)
    return copied.requires_grad_() if self.requires_grad else copied


Tensor.__reduce_ex__ = _reduce  # type: ignore[method-assign,assignment]
_deepcopy.__name__, _deepcopy.__qualname__ = "__deepcopy__", "Tensor.__deepcopy__"
Tensor.__deepcopy__ = _deepcopy  # type: ignore[method-assign, assignment]
Tensor.__copy__ = _copy  # type: ignore[attr-defined]


def _reduce_storage(self: UntypedStorage | TypedStorage) -> tuple[Any, ...]:
    from ..serialization import save

    file = BytesIO()
    save(self, file, _use_new_zipfile_serialization=False)
    return load_from_bytes, (file.getvalue(),)


def load_from_bytes(data: bytes) -> Any:
    """A storage that was pickled."""
    from ..serialization import load

    return load(BytesIO(data), weights_only=False)


for _kind, _copier in ((UntypedStorage, _deepcopy_of_untyped), (TypedStorage, _deepcopy_of_typed)):
    setattr(_kind, "__deepcopy__", _copier)  # noqa: B010
    setattr(_kind, "__reduce__", _reduce_storage)  # noqa: B010
