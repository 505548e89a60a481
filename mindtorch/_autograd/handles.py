"""Owns the handle of a registered hook, of tensors, nodes, modules and optimizers alike."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from typing import Any

Hooks = MutableMapping[int, Any]


def _reference(hooks: Hooks) -> Callable[[], Hooks | None]:
    """A weak reference where there can be one: plain dicts have none."""
    return (lambda: hooks) if type(hooks) is dict else weakref.ref(hooks)


class RemovableHandle:
    """Removes one hook from the dict it was put into; also a
    context manager that removes on exit."""

    __module__ = f"{__name__.partition('.')[0]}.utils.hooks"
    next_id: int = 0
    id: int

    def __init__(self, hooks_dict: Hooks, *, extra_dict: Hooks | list[Hooks] | None = None) -> None:
        self.hooks_dict_ref = _reference(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extras = [] if extra_dict is None else extra_dict
        extras = extras if isinstance(extras, list) else [extras]
        self.extra_dict_ref = tuple(_reference(extra) for extra in extras)

    def remove(self) -> None:
        """Drops the hook; a second call does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        extras = tuple(reference() for reference in self.extra_dict_ref)
        return self.hooks_dict_ref(), self.id, extras

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id, extras = state
        # A dict that died before pickling is replaced by an empty one, so that remove() still
        # works.
        self.hooks_dict_ref = _reference(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(
            _reference(OrderedDict() if extra is None else extra) for extra in extras
        )
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.remove()


def add_hook(table: dict[int, Any], hook: Callable[..., Any]) -> RemovableHandle:
    """Put a hook into the table of a node or a tensor."""
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle
