"""torch.utils.weak: references to tensors that keep none alive; keys are told apart by identity."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, TypeAlias

from .._tensor.tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref[Any]):
    """A reference that is equal to another where both name the same living object."""

    __slots__ = ("_id",)
    _id: int

    def __new__(cls, key: Any, callback: Callable[[Any], Any] | None = None) -> WeakIdRef:
        reference = super().__new__(cls, key, callback)
        reference._id = id(key)
        return reference

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        ours, theirs = self(), other() if isinstance(other, weakref.ref) else None
        if ours is not None and theirs is not None:
            return ours is theirs
        return self is other


_Table: TypeAlias = dict[Any, Any]


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary whose entries go with their keys, which are told apart by identity."""

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: Any = WeakIdRef):
        self.data: _Table = {}
        self.ref_type = ref_type
        self_ref = weakref.ref(self)

        def remove(reference: Any) -> None:
            table = self_ref()
            if table is not None:
                table.data.pop(reference, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def _ref(self, key: Any) -> Any:
        return self.ref_type(key, self._remove)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self._ref(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list[Any]:
        """The references, some of which may be dead."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Another dictionary of the same entries."""
        other = WeakIdKeyDictionary(ref_type=self.ref_type)
        other.update(self)
        return other

    __copy__ = copy

    def __or__(self, other: Mapping[Any, Any]) -> WeakIdKeyDictionary:
        joined = self.copy()
        joined.update(other)
        return joined

    def __ior__(self, other: Mapping[Any, Any]) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A reference to a tensor, called to get it; None once it is gone."""

    ref: weakref.ref[Tensor]

    def __init__(self, tensor: Tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
