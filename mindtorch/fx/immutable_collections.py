"""Owns the lists and dicts of a node's arguments: read like Python's, and written to by none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..utils._pytree import register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]


def _forbidden(kind: str, name: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(
            f"{kind!r} object does not support mutation. If you are attempting to modify the kwargs"
            " or args of a torch.fx.Node object,\ninstead create a new copy of it and assign the"
            " copy to the node:\n\n    new_args = ...  # copy and mutate args\n"
            "    node.args = new_args"
        )

    refuse.__name__ = name
    return refuse


class immutable_list(list[Any]):  # noqa: N801 - torch's name
    """A list that refuses to change."""

    def __reduce__(self) -> tuple[type, tuple[tuple[Any, ...]]]:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):  # noqa: N801 - torch's name
    """A dict that refuses to change."""

    def __reduce__(self) -> tuple[type, tuple[tuple[Any, ...]]]:
        return immutable_dict, (tuple(self.items()),)


setattr(immutable_list, "__hash__", lambda self: hash(tuple(self)))  # noqa: B010
setattr(immutable_dict, "__hash__", lambda self: hash(frozenset(self.items())))  # noqa: B010
for _name in ("__delitem__", "__iadd__", "__imul__", "__setitem__", "append", "clear", "extend",
              "insert", "pop", "remove", "reverse", "sort"):  # fmt: skip
    setattr(immutable_list, _name, _forbidden("immutable_list", _name))
for _name in ("__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem", "setdefault",
              "update"):  # fmt: skip
    setattr(immutable_dict, _name, _forbidden("immutable_dict", _name))


register_pytree_node(
    immutable_list, lambda x: (list(x), None), lambda values, _: immutable_list(values)
)
register_pytree_node(
    immutable_dict,
    lambda x: (list(x.values()), list(x)),
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
)
