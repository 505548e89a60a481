"""Owns torch.utils._pytree: nested containers as a list of leaves and a spec, and back.

Classes become nodes by `register_pytree_node`; everything that is no node is a leaf.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ._pytree_nodes import (
    _BY_SERIALIZED_NAME as _BY_SERIALIZED_NAME,
    BUILTIN_TYPES as BUILTIN_TYPES,
    STANDARD_DICT_TYPES as STANDARD_DICT_TYPES,
    SUPPORTED_NODES as SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES as SUPPORTED_SERIALIZED_TYPES,
    Context as Context,
    FlattenFunc as FlattenFunc,
    GetAttrKey as GetAttrKey,
    IsLeaf,
    KeyEntry as KeyEntry,
    KeyPath as KeyPath,
    LeafTest,
    MappingKey as MappingKey,
    NodeDef as NodeDef,
    PyTree as PyTree,
    SequenceKey as SequenceKey,
    UnflattenFunc as UnflattenFunc,
    _defaultdict_flatten as _defaultdict_flatten,
    _defaultdict_unflatten as _defaultdict_unflatten,
    _deque_flatten as _deque_flatten,
    _deque_unflatten as _deque_unflatten,
    _deregister_pytree_node as _deregister_pytree_node,
    _dict_flatten as _dict_flatten,
    _dict_flatten_with_keys as _dict_flatten_with_keys,
    _dict_unflatten as _dict_unflatten,
    _list_flatten as _list_flatten,
    _list_flatten_with_keys as _list_flatten_with_keys,
    _list_unflatten as _list_unflatten,
    _namedtuple_flatten as _namedtuple_flatten,
    _namedtuple_unflatten as _namedtuple_unflatten,
    _ordereddict_flatten as _ordereddict_flatten,
    _ordereddict_flatten_with_keys as _ordereddict_flatten_with_keys,
    _ordereddict_unflatten as _ordereddict_unflatten,
    _register_pytree_node as _register_pytree_node,
    _tuple_flatten as _tuple_flatten,
    _tuple_flatten_with_keys as _tuple_flatten_with_keys,
    _tuple_unflatten as _tuple_unflatten,
    is_constant_class as is_constant_class,
    register_constant as register_constant,
    register_dataclass as register_dataclass,
    register_pytree_node as register_pytree_node,
)


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is one that `namedtuple` made, or under one."""
    fields = getattr(cls, "_fields", None)
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(fields, tuple)


def is_namedtuple(obj: object) -> bool:
    """Whether an object, or a class, is a named tuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: object) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    if issubclass(kind, tuple) and kind.__module__.endswith("torch.return_types"):
        register_pytree_node(
            kind,
            _tuple_flatten,
            lambda values, _: kind(tuple(values)),
            flatten_with_keys_fn=_tuple_flatten_with_keys,
        )
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

    def __init__(self, type: type | None, context: Any = None, children: Iterable[TreeSpec] = ()):
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
        return self.children()[index]

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
            what = "Node type" if self.type in BUILTIN_TYPES else "Type"
            raise ValueError(f"{what} mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        children = list(children)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if dicts:
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(_mismatch(list(keys), list(tree)))
            children = [tree[key] for key in keys]
        elif context != self.context and kind is not deque:
            raise ValueError(
                f"Node context mismatch for custom node type {self.type!r}."
                if kind not in BUILTIN_TYPES
                else f"Node context mismatch for node type {self.type!r}; expected"
                f" {self.context!r}, but got {context!r}."
            )
        return [
            leaf
            for spec, child in zip(self._children, children, strict=True)
            for leaf in spec.flatten_up_to(child)
        ]


def _mismatch(expected: list[Any], keys: list[Any]) -> str:
    """What keys a dict lacks and has too many."""
    lacks, more = set(expected) - set(keys), set(keys) - set(expected)
    parts = [f"missing key(s): {lacks}"] * bool(lacks) + [f"extra key(s): {more}"] * bool(more)
    return f"Node keys mismatch; {'; '.join(parts)}."


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The spec of a leaf; another one, a copy too, comes with a FutureWarning."""

    def __new__(cls, *_: object, **__: object) -> LeafSpec:
        warnings.warn(
            "`isinstance(treespec, LeafSpec)` is deprecated, use `isinstance(treespec, TreeSpec)"
            " and treespec.is_leaf()` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return super().__new__(cls)

    def __init__(
        self, type: type | None = None, context: Any = None, children: Iterable[TreeSpec] = ()
    ):
        super().__init__(None, None, ())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and other.is_leaf()

    def __hash__(self) -> int:
        return hash(None)


_LEAF_SPEC: LeafSpec = object.__new__(LeafSpec)
TreeSpec.__init__(_LEAF_SPEC, None, None, ())


def treespec_leaf() -> TreeSpec:
    """The spec of a leaf."""
    return _LEAF_SPEC


class _Star:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The tree with a star for each leaf."""
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The spec of a tuple of these; ValueError for what is no spec."""
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The spec of a dict of these; ValueError for what is no spec."""
    specs = dict(mapping, **kwargs)
    if not all(isinstance(child, TreeSpec) for child in specs.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {specs!r}.")
    return TreeSpec(dict, list(specs), list(specs.values()))


def _flatten_into(tree: Any, leaves: list[Any], is_leaf: IsLeaf | None) -> TreeSpec:
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
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type"
            f" {type(treespec)}."
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


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """The tree with each leaf replaced by `func` of it (and of the others' at its place)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten(func(*row) for row in zip(*columns, strict=True))


def tree_map_(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """Calls `func` on each leaf; gives the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    for row in zip(*columns, strict=True):
        func(*row)
    return tree


def map_only(kind: LeafTest, /) -> Callable[[Any], Any]:
    """Decorates a function of a leaf: leaves that are no `kind` pass by it."""
    if not (isinstance(kind, type | tuple) or callable(kind)):
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")
    test = kind if not isinstance(kind, type | tuple) else lambda x: isinstance(x, kind)

    def wrapper(func: Callable[..., Any]) -> Callable[[Any], Any]:
        def inside(x: Any) -> Any:
            return func(x) if test(x) else x

        return inside

    return wrapper


def tree_map_only(
    type_or_types_or_pred: LeafTest,
    /,
    func: Callable[..., Any],
    tree: Any,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """tree_map over leaves of some types, or that a predicate takes."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: LeafTest,
    /,
    func: Callable[..., Any],
    tree: Any,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """tree_map_ over leaves of some types."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[..., Any], tree: Any, is_leaf: IsLeaf | None = None) -> bool:
    """Whether all leaves satisfy `pred`."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[..., Any], tree: Any, is_leaf: IsLeaf | None = None) -> bool:
    """Whether a leaf satisfies `pred`."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: type | tuple[type, ...],
    /,
    pred: Callable[..., Any],
    tree: Any,
    is_leaf: IsLeaf | None = None,
) -> bool:
    """tree_all over leaves of some types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(
    type_or_types: type | tuple[type, ...],
    /,
    pred: Callable[..., Any],
    tree: Any,
    is_leaf: IsLeaf | None = None,
) -> bool:
    """tree_any over leaves of some types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: IsLeaf | None = None
) -> list[Any] | None:
    """The leaves of `tree` repeated to fit a spec; None where they do not."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _get_node_type(tree)
    if treespec.is_leaf() or kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    leaves: list[Any] = []
    for child, spec in zip(children, treespec.children(), strict=True):
        row = _broadcast_to_and_flatten(child, spec, is_leaf)
        if row is None:
            return None
        leaves += row
    return leaves


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeSpec]:
    """Pairs of key path and leaf, and the spec."""
    return list(_paths((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """Pairs of key path and leaf."""
    return list(_paths((), tree, is_leaf))


def _paths(path: tuple[Any, ...], tree: Any, is_leaf: IsLeaf | None) -> Iterator[Any]:
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


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """tree_map whose function takes the key path first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [*zip(*pairs, strict=True)] if pairs else [(), ()]
    columns += [tuple(spec.flatten_up_to(rest)) for rest in rests]
    return spec.unflatten(func(*row) for row in zip(*columns, strict=True))


def keystr(kp: Iterable[Any]) -> str:
    """A key kp as it is written in Python."""
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """What a key kp leads to."""
    for key in kp:
        obj = key.get(obj)
    return obj


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of a call's arguments."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_iter(value)]


_PROTOCOL = 1


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A spec as JSON; TypeError where it is none, ValueError for another protocol."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type"
            f" {type(treespec)}."
        )
    if protocol not in (None, _PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return json.dumps((_PROTOCOL, _to_json(treespec)))


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    serialized = SUPPORTED_SERIALIZED_TYPES[spec.type]
    if serialized.name is None:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your"
            " _register_pytree_node call with a `serialized_type_name` kwarg."
        )
    if spec.type is namedtuple:
        context: Any = f"{spec.context.__module__}.{spec.context.__qualname__}"
    elif serialized.dump is not None:
        context = serialized.dump(spec.context)
    else:
        try:
            context = json.dumps(spec.context)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register"
                " a custom serializer using _register_pytree_node."
            ) from error
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


def is_structseq_class(cls: type) -> bool:
    """Whether a class is one of Python's own named tuples, such as `time.struct_time`, or of
    torch.return_types."""
    return issubclass(cls, tuple) and all(
        isinstance(getattr(cls, name, None), int)
        for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    )


def is_structseq_instance(obj: object) -> bool:
    """Whether an object is one of Python's own named tuples."""
    return is_structseq_class(type(obj))


is_structseq = is_structseq_instance
