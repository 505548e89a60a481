"""Owns torch.utils._pytree: nested containers as a list of leaves and a spec, and back.

Classes become nodes by `register_pytree_node`; everything that is no node is a leaf.
"""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

PyTree = Any
Context = Any
FlattenFunc = Callable[[Any], tuple[list[Any], Any]]
UnflattenFunc = Callable[[Iterable[Any], Any], Any]


class NodeDef(NamedTuple):
    """How a class comes apart, and together again."""

    type: type[Any]
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: Callable[[Any], Any] | None


class _Serialized(NamedTuple):
    """How a class and its context are written to JSON."""

    name: str
    dump: Callable[[Any], Any] | None
    load: Callable[[Any], Any] | None


SUPPORTED_NODES: dict[type[Any], NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[type[Any], _Serialized] = {}
_BY_SERIALIZED_NAME: dict[str, type[Any]] = {}


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A step into a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A step into a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
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
    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    SUPPORTED_SERIALIZED_TYPES[cls] = _Serialized(name, to_dumpable_context, from_dumpable_context)
    _BY_SERIALIZED_NAME[name] = cls


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Undo register_pytree_node."""
    del SUPPORTED_NODES[cls]
    del _BY_SERIALIZED_NAME[SUPPORTED_SERIALIZED_TYPES.pop(cls).name]


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make a dataclass a node: its fields that `__init__` takes are the children."""
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

    def with_keys(obj: Any) -> Any:
        values, context = flatten(obj)
        return [(GetAttrKey(n), v) for n, v in zip(context[0], values, strict=True)], context

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=with_keys,
    )  # fmt: skip


def _sequence_with_keys(flatten: FlattenFunc) -> Callable[[Any], Any]:
    def with_keys(obj: Any) -> Any:
        values, context = flatten(obj)
        return [(SequenceKey(i), v) for i, v in enumerate(values)], context

    return with_keys


def _mapping_with_keys(flatten: FlattenFunc, keys: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def with_keys(obj: Any) -> Any:
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


def _namedtuple_flatten(value: Any) -> tuple[list[Any], Context]:
    return list(value), type(value)


def _namedtuple_unflatten(values: Iterable[Any], context: Context) -> Any:
    return context(*values)


def _dict_flatten(value: dict[Any, Any]) -> tuple[list[Any], Context]:
    return list(value.values()), list(value.keys())


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _ordereddict_unflatten(values: Iterable[Any], context: Context) -> Any:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(value: Any) -> tuple[list[Any], Context]:
    return list(value.values()), [value.default_factory, list(value.keys())]


def _defaultdict_unflatten(values: Iterable[Any], context: Context) -> Any:
    return defaultdict(context[0], zip(context[1], values, strict=True))


def _deque_flatten(value: Any) -> tuple[list[Any], Context]:
    return list(value), value.maxlen


def _deque_unflatten(values: Iterable[Any], context: Context) -> Any:
    return deque(values, maxlen=context)


_dict_flatten_with_keys = _mapping_with_keys(_dict_flatten, lambda context: context)
_list_flatten_with_keys = _sequence_with_keys(_list_flatten)
_tuple_flatten_with_keys = _sequence_with_keys(_tuple_flatten)
_ordereddict_flatten = _dict_flatten
_ordereddict_flatten_with_keys = _dict_flatten_with_keys

for _cls, _flatten, _unflatten, _keyed in (
    (tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    (list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    (dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    (namedtuple, _namedtuple_flatten, _namedtuple_unflatten,  # type: ignore[list-item]
     lambda v: ([(GetAttrKey(f), getattr(v, f)) for f in v._fields], type(v))),
    (OrderedDict, _dict_flatten, _ordereddict_unflatten, _dict_flatten_with_keys),
    (defaultdict, _defaultdict_flatten, _defaultdict_unflatten,
     _mapping_with_keys(_defaultdict_flatten, lambda context: context[1])),
    (deque, _deque_flatten, _deque_unflatten, _sequence_with_keys(_deque_flatten)),
):  # fmt: skip
    register_pytree_node(
        _cls, _flatten, _unflatten, flatten_with_keys_fn=_keyed,
        serialized_type_name=f"{getattr(_cls, '__module__', 'collections')}.{_cls.__name__}",
    )  # type: ignore[arg-type]  # fmt: skip

STANDARD_DICT_TYPES = frozenset((dict, OrderedDict, defaultdict))
BUILTIN_TYPES = frozenset((tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque))


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is one that `namedtuple` made, or under one."""
    fields = getattr(cls, "_fields", None)
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(fields, tuple)


def is_namedtuple(obj: Any) -> bool:
    """Whether an object, or a class, is a named tuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    return namedtuple if is_namedtuple_class(kind) else kind


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether a value is a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return True
    return _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


@dataclasses.dataclass(init=False, frozen=True, eq=True, repr=False)
class TreeSpec:
    """The structure of a tree without its leaves."""

    type: Any
    _context: Any
    _children: tuple[TreeSpec, ...]
    num_nodes: int = dataclasses.field(compare=False)
    num_leaves: int = dataclasses.field(compare=False)
    num_children: int = dataclasses.field(compare=False)

    def __init__(self, type: Any, context: Any = None, children: Any = ()):
        put = object.__setattr__
        children = tuple(children)
        put(self, "type", type)
        put(self, "_context", context)
        put(self, "_children", children)
        leaf = type is None
        put(self, "num_nodes", 1 + sum(c.num_nodes for c in children))
        put(self, "num_leaves", 1 if leaf else sum(c.num_leaves for c in children))
        put(self, "num_children", len(children))

    @property
    def context(self) -> Any:
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        return list(self._children)

    def children(self) -> list[TreeSpec]:
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        return self._children[index]

    def is_leaf(self) -> bool:
        return self.type is None

    def __repr__(self, indent: int = 0) -> str:
        if self.is_leaf():
            return "*"
        inner = (",\n" + " " * (indent + 2)).join(c.__repr__(indent + 2) for c in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inner}])"

    def __hash__(self) -> int:
        context = self.context
        if self.type in (dict, OrderedDict):
            context = tuple(context)
        elif self.type is defaultdict:
            context = (context[0], tuple(context[1]))
        try:
            return hash((self.type, context, self._children))
        except TypeError:
            return hash((self.type, repr(context), self._children))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """A tree of this structure; ValueError for another number of leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec"
                f" refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._built(iter(leaves))

    def _built(self, leaves: Iterator[Any]) -> Any:
        if self.is_leaf():
            return next(leaves)
        children = [child._built(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self._context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` where this spec has leaves; ValueError where they differ."""
        if self.is_leaf():
            return [tree]
        kind = _get_node_type(tree)
        dicts = kind in STANDARD_DICT_TYPES and self.type in STANDARD_DICT_TYPES
        if kind is not self.type and not dicts:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        children = list(children)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if dicts:
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {keys}, but got {list(tree)}.")
            children = [tree[key] for key in keys]
        elif context != self.context and kind is not deque:
            raise ValueError(
                f"Node context mismatch for custom node type {self.type!r}."
                if kind not in BUILTIN_TYPES
                else f"Node type mismatch; expected {self.context!r}, but got {context!r}."
            )
        return [
            leaf
            for spec, child in zip(self._children, children, strict=True)
            for leaf in spec.flatten_up_to(child)
        ]


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    def __init__(self, type: Any = None, context: Any = None, children: Any = ()):
        super().__init__(None, None, ())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and other.is_leaf()

    def __hash__(self) -> int:
        return hash(None)


_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> TreeSpec:
    """The spec of a leaf."""
    return _LEAF_SPEC


def _flatten_into(tree: Any, leaves: list[Any], is_leaf: Any) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF_SPEC
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten_into(c, leaves, is_leaf) for c in children])


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves, in order, and the spec that puts them together again."""
    leaves: list[Any] = []
    spec = _flatten_into(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of a spec with these leaves; TypeError where the spec is none."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but"
            f" got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """The leaves, one by one."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The spec."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Any, tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """The tree with each leaf replaced by `func` of it (and of the others' at its place)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten(func(*row) for row in zip(*columns, strict=True))


def tree_map_(func: Any, tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Calls `func` on each leaf; gives the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    for row in zip(*columns, strict=True):
        func(*row)
    return tree


def map_only(kind: Any, /) -> Callable[[Any], Any]:
    """Decorates a function of a leaf: leaves that are no `kind` pass by it."""
    test = kind if callable(kind) and not isinstance(kind, type) else None

    def wrapper(func: Any) -> Any:
        def inside(x: Any) -> Any:
            return func(x) if (test(x) if test else isinstance(x, kind)) else x

        return inside

    return wrapper


def tree_map_only(kind: Any, /, func: Any, tree: Any, is_leaf: Any = None) -> Any:
    """tree_map over leaves of some types, or that a predicate takes."""
    return tree_map(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_map_only_(kind: Any, /, func: Any, tree: Any, is_leaf: Any = None) -> Any:
    """tree_map_ over leaves of some types."""
    return tree_map_(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Whether all leaves satisfy `pred`."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Whether a leaf satisfies `pred`."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(kind: Any, /, pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """tree_all over leaves of some types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, kind))


def tree_any_only(kind: Any, /, pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """tree_any over leaves of some types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, kind))


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: Any = None) -> Any:
    """The leaves of `tree` repeated to fit a spec; None where they do not."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _get_node_type(tree)
    if treespec.is_leaf() or kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    rows = [
        _broadcast_to_and_flatten(child, spec, is_leaf)
        for child, spec in zip(children, treespec.children(), strict=True)
    ]
    return None if None in rows else [leaf for row in rows for leaf in row]


def tree_flatten_with_path(tree: Any, is_leaf: Any = None) -> tuple[list[Any], TreeSpec]:
    """Pairs of key path and leaf, and the spec."""
    return list(_paths((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: Any = None) -> list[Any]:
    """Pairs of key path and leaf."""
    return list(_paths((), tree, is_leaf))


def _paths(path: tuple[Any, ...], tree: Any, is_leaf: Any) -> Iterator[Any]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    with_keys = SUPPORTED_NODES[_get_node_type(tree)].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {type(tree)}. Please pass a"
            " flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _paths((*path, key), child, is_leaf)


def tree_map_with_path(func: Any, tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """tree_map whose function takes the key path first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [*zip(*pairs, strict=True)] if pairs else [(), ()]
    columns += [tuple(spec.flatten_up_to(rest)) for rest in rests]
    return spec.unflatten(func(*row) for row in zip(*columns, strict=True))


def keystr(path: Iterable[Any]) -> str:
    """A key path as it is written in Python."""
    return "".join(str(key) for key in path)


def key_get(obj: Any, path: Iterable[Any]) -> Any:
    """What a key path leads to."""
    for key in path:
        obj = key.get(obj)
    return obj


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of a call's arguments."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_iter(value)]


_PROTOCOL = 1


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A spec as JSON; TypeError where it is none, ValueError for another protocol."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps(): expected a TreeSpec, got {type(treespec)}.")
    if protocol not in (None, _PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return json.dumps((_PROTOCOL, _to_json(treespec)))


def _to_json(spec: TreeSpec) -> Any:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    serialized = SUPPORTED_SERIALIZED_TYPES[spec.type]
    if spec.type is namedtuple:
        context: Any = f"{spec.context.__module__}.{spec.context.__qualname__}"
    elif serialized.dump is not None:
        context = serialized.dump(spec.context)
    else:
        context = json.dumps(spec.context)
    children = [_to_json(child) for child in spec.children()]
    return {"type": serialized.name, "context": context, "children_spec": children}


def treespec_loads(serialized: str) -> TreeSpec:
    """The spec that treespec_dumps wrote."""
    protocol, schema = json.loads(serialized)
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return _from_json(schema)


def _from_json(schema: Mapping[str, Any]) -> TreeSpec:
    if schema["type"] is None:
        return _LEAF_SPEC
    kind = _BY_SERIALIZED_NAME.get(schema["type"])
    if kind is None:
        raise NotImplementedError(f"Deserializing {schema['type']} in pytree is not registered.")
    load = SUPPORTED_SERIALIZED_TYPES[kind].load
    context = (load or json.loads)(schema["context"])
    return TreeSpec(kind, context, [_from_json(child) for child in schema["children_spec"]])
