"""Owns which classes are nodes of a pytree, and how each comes apart and together again."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from .._tensor.geometry import Size

PyTree = Any
Context = Any
FlattenFunc = Callable[[Any], tuple[list[Any], Any]]
UnflattenFunc = Callable[[Iterable[Any], Any], Any]
# Whether a value counts as a leaf though its class is a node.
IsLeaf = Callable[[Any], bool]
# Which leaves: of some classes, or those that a predicate takes.
LeafTest = type[Any] | tuple[type[Any], ...] | Callable[[Any], bool]


class NodeDef(NamedTuple):
    """How a class comes apart, and together again."""

    type: type[Any]
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: Callable[[Any], Any] | None


class _Serialized(NamedTuple):
    """How a class and its context are written to JSON."""

    name: str | None
    dump: Callable[[Any], Any] | None
    load: Callable[[Any], Any] | None


SUPPORTED_NODES: dict[type[Any], NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[type[Any], _Serialized] = {}
_BY_SERIALIZED_NAME: dict[str, type[Any]] = {}


class KeyEntry(Protocol):
    """A step from a container to one of its children."""

    def get(self, parent: Any, /) -> Any:
        """The child."""


KeyPath = tuple[KeyEntry, ...]


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A step into a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Sequence[Any]) -> Any:
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A step into a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Mapping[Any, Any]) -> Any:
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """A step to an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


def register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], Any] | None = None,
) -> None:
    """Make a class a node; ValueError where it is one."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or"
            " registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = serialized_type_name
    SUPPORTED_SERIALIZED_TYPES[cls] = _Serialized(name, to_dumpable_context, from_dumpable_context)
    if name is not None:
        _BY_SERIALIZED_NAME[name] = cls


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Undo register_pytree_node."""
    del SUPPORTED_NODES[cls]
    name = SUPPORTED_SERIALIZED_TYPES.pop(cls).name
    if name is not None:
        del _BY_SERIALIZED_NAME[name]


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make a dataclass a node: its fields that `__init__` takes are the children."""
    if field_names is None and not dataclasses.is_dataclass(cls):
        raise ValueError(
            "field_names must be specified with a list of all fields used to initialize"
            f" {cls}, as it is not a dataclass."
        )
    dropped = drop_field_names or []
    names = field_names or [
        f.name for f in dataclasses.fields(cls) if f.init and f.name not in dropped
    ]

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        there = [n for n in names if getattr(obj, n) is not None]
        return [getattr(obj, n) for n in there], [there, [n for n in names if n not in there]]

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        there, absent = context
        return cls(**dict(zip(there, values, strict=True)), **dict.fromkeys(absent))

    def with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Any]:
        values, context = flatten(obj)
        return [(GetAttrKey(n), v) for n, v in zip(context[0], values, strict=True)], context

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=with_keys,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """What the spec of a constant holds: its value."""

    value: Hashable


CONSTANT_NODES: set[type] = set()


def register_constant(cls: type[Any]) -> None:
    """Make a class a node without children, whose instances are in the spec; TypeError for one
    that does not compare its values."""
    for method, default in (("__eq__", object.__eq__), ("__hash__", None)):
        if getattr(cls, method) is default:
            raise TypeError(
                f"register_constant(cls) expects `cls` to have a non-default `{method}`"
                " implementation."
            )

    def flatten(value: Hashable) -> tuple[list[object], ConstantNode]:
        return [], ConstantNode(value)

    def unflatten(values: object, context: ConstantNode) -> object:
        return context.value

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=flatten)
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Whether `register_constant` was called with a class."""
    return cls in CONSTANT_NODES


def _sequence_with_keys(flatten: FlattenFunc) -> Callable[[Any], Any]:
    def with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Any]:
        values, context = flatten(obj)
        return [(SequenceKey(i), v) for i, v in enumerate(values)], context

    return with_keys


def _mapping_with_keys(flatten: FlattenFunc, keys: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Any]:
        values, context = flatten(obj)
        return [(MappingKey(k), v) for k, v in zip(keys(context), values, strict=True)], context

    return with_keys


def _list_flatten(value: list[Any]) -> tuple[list[Any], Context]:
    return value, None


def _list_unflatten(values: Iterable[Any], context: Context) -> list[Any]:
    return list(values)


def _tuple_flatten(value: tuple[Any, ...]) -> tuple[list[Any], Context]:
    return list(value), None


def _tuple_unflatten(values: Iterable[Any], context: Context) -> tuple[Any, ...]:
    return tuple(values)


def _namedtuple_flatten(value: tuple[Any, ...]) -> tuple[list[Any], Context]:
    return list(value), type(value)


def _namedtuple_unflatten(values: Iterable[Any], context: Context) -> Any:
    return context(*values)


def _dict_flatten(value: dict[Any, Any]) -> tuple[list[Any], Context]:
    return list(value.values()), list(value.keys())


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _ordereddict_unflatten(values: Iterable[Any], context: Context) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(value: defaultdict[Any, Any]) -> tuple[list[Any], Context]:
    return list(value.values()), [value.default_factory, list(value.keys())]


def _defaultdict_unflatten(values: Iterable[Any], context: Context) -> defaultdict[Any, Any]:
    return defaultdict(context[0], zip(context[1], values, strict=True))


def _deque_flatten(value: deque[Any]) -> tuple[list[Any], Context]:
    return list(value), value.maxlen


def _deque_unflatten(values: Iterable[Any], context: Context) -> deque[Any]:
    return deque(values, maxlen=context)


_dict_flatten_with_keys = _mapping_with_keys(_dict_flatten, lambda context: context)
_list_flatten_with_keys = _sequence_with_keys(_list_flatten)
_tuple_flatten_with_keys = _sequence_with_keys(_tuple_flatten)
_ordereddict_flatten = _dict_flatten
_ordereddict_flatten_with_keys = _dict_flatten_with_keys

_NODES: tuple[Any, ...] = (
    (tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    (Size, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    (list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    (dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    (namedtuple, _namedtuple_flatten, _namedtuple_unflatten,
     lambda v: ([(GetAttrKey(f), getattr(v, f)) for f in v._fields], type(v))),
    (OrderedDict, _dict_flatten, _ordereddict_unflatten, _dict_flatten_with_keys),
    (defaultdict, _defaultdict_flatten, _defaultdict_unflatten,
     _mapping_with_keys(_defaultdict_flatten, lambda context: context[1])),
    (deque, _deque_flatten, _deque_unflatten, _sequence_with_keys(_deque_flatten)),
)  # fmt: skip
for _cls, _flatten, _unflatten, _keyed in _NODES:
    register_pytree_node(
        _cls,
        _flatten,
        _unflatten,
        flatten_with_keys_fn=_keyed,
        serialized_type_name=f"{getattr(_cls, '__module__', 'collections')}.{_cls.__name__}",
    )

STANDARD_DICT_TYPES = frozenset((dict, OrderedDict, defaultdict))
BUILTIN_TYPES = frozenset((tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque))
