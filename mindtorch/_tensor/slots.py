"""Owns how tensors, storages and nodes are laid out and made: in C, or in Python where unbuilt.

One made in C costs a fifth of one whose slots Python statements fill (75 ns instead of 350, where
`a + b` costs 1,000), so runners make results by `fresh`, views by `over` and nodes by `grown`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._slots import (
        NodeSlots,
        StorageSlots,
        TensorSlots,
        bind,
        builtin,
        descriptor,
        explain_by,
        fresh,
        grown,
        inherit,
        over,
    )
    from .geometry import Geometry
    from .types import Array
else:
    try:
        from ._slots import (
            NodeSlots,
            StorageSlots,
            TensorSlots,
            bind,
            builtin,
            descriptor,
            explain_by,
            fresh,
            grown,
            inherit,
            over,
        )
    except ImportError:
        _classes: list[Any] = []

        class TensorSlots:
            """The slots of a tensor."""

            __slots__ = (
                "_array", "_base", "_creation", "_fn", "_geom", "_grad", "_names", "_nr",
                "_retains", "_storage",
            )  # fmt: skip

            def __getattr__(self, name: str) -> object:
                if name == "_array":
                    self._array = array = _classes[2](self._geom, self._storage)
                    return array
                if name in ("_creation", "_grad", "_names", "_retains"):
                    return None
                return object.__getattribute__(self, name)

        class StorageSlots:
            """The slots of a storage."""

            __slots__ = ("_bytes", "memory", "value", "views")

        class NodeSlots:
            """The slots of a step of the backward graph."""

            __slots__ = ("args", "edges", "index", "outs", "saved", "seq")

        def bind(tensor: type, storage: type, host: Callable[..., Array]) -> None:
            """Say the classes of what is made, and what makes the array of a tensor."""
            _classes[:] = tensor, storage, host

        _inherited: list[object] = []

        def inherit(fn: object) -> None:
            """Say what views of a tensor whose `_fn` it is have too."""
            _inherited[:] = [fn]

        def over(
            geom: Geometry, storage: StorageSlots, base: TensorSlots | None = None
        ) -> TensorSlots:
            """A tensor over a storage that there is."""
            tensor = object.__new__(_classes[0])
            tensor._geom, tensor._storage, tensor._base = geom, storage, base
            fn = base._fn if base is not None else None
            tensor._fn, tensor._nr = fn if [fn] == _inherited else None, 0
            return tensor

        def fresh(geom: Geometry, memory: object, *array: Array) -> TensorSlots:
            """A tensor over a storage of its own."""
            tensor = over(geom, _classes[1](memory))
            if array:
                tensor._array = array[0]
            return tensor

        def builtin(function: Callable[..., Any], *_: object) -> Callable[..., Any]:
            """The function itself."""
            return function

        descriptor = builtin

        def explain_by(function: Callable[..., object]) -> None:
            """Functions of Python explain their own calls."""

        def grown(
            cls: type, seq: int, edges: tuple, outs: tuple, saved: Any, args: tuple, index: Any
        ) -> NodeSlots:
            """A node of this class."""
            node = object.__new__(cls)
            node.seq, node.edges, node.outs, node.saved = seq, edges, outs, saved
            node.args, node.index = args, index
            return node


__all__ = [
    "NodeSlots", "StorageSlots", "TensorSlots", "bind", "builtin", "descriptor", "explain_by",
    "fresh", "grown", "inherit", "over",
]  # fmt: skip
