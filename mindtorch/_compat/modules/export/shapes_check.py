"""Owns what is wrong with `dynamic_shapes`: said with the place, before a program is traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from mindtorch._tensor.tensor import Tensor
from mindtorch.utils import _pytree as pytree

from .._dynamo.exc import UserError
from .dynamic_shapes import Dim, _DimHint

_NODES = (dict, list, tuple)
_MORE = (
    "For more information about this error, see:"
    " https://pytorch.org/docs/main/generated/exportdb/index.html#dynamic-shapes-validation"
)


def _refuse(text: str) -> NoReturn:
    raise UserError(text + (" " if text.endswith(".") else "\n") + _MORE)


def entries_of(arguments: dict[str, Any], shapes: Any) -> list[tuple[str, Any]]:
    """What `dynamic_shapes` says of each leaf of the arguments, with the leaf's source.

    torch._dynamo.exc.UserError, with the place, where it does not fit the arguments.
    """
    if shapes is None or len(shapes) == 0:
        return [(source, None) for _, source, _ in _leaves("L", arguments, {}, "")]
    if not isinstance(shapes, _NODES):
        raise AssertionError(
            f"expected dynamic_shapes to be dict, tuple, or list, got {type(shapes)}"
        )
    tree: Any = arguments
    if isinstance(shapes, dict):
        _check_names(arguments, shapes)
    else:
        tree = type(shapes)(arguments.values())
    _compare(tree, shapes, "")
    if not isinstance(shapes, dict):
        shapes = dict(zip(arguments, shapes, strict=True))
        paths = {name: f"[{i}]" for i, name in enumerate(arguments)}
    else:
        paths = {name: f"[{name!r}]" for name in arguments}
    bounds: dict[str, tuple[Any, Any]] = {}
    entries: list[tuple[str, Any]] = []
    for name, value in arguments.items():
        for (path, source, leaf), entry in _pairs(name, value, shapes[name], paths[name]):
            _check(path, leaf, entry, bounds)
            entries.append((source, entry))
    return entries


def _check_names(arguments: dict[str, Any], shapes: Mapping[str, Any]) -> None:
    names, keys = list(arguments), list(shapes)
    if sorted(map(str, keys)) == sorted(names):
        return
    text = (
        "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names"
        f" {names} of `inputs`, but here they are {keys}. "
    )
    if len(names) == 1 and names[0] not in keys and isinstance(arguments[names[0]], dict):
        _refuse(
            f"{text}Since here `inputs` is a list/tuple enclosing a single dict, maybe you just"
            " forgot to enclose `dynamic_shapes` in a list/tuple?"
        )
    _refuse(
        f"{text}Alternatively, you could also ignore arg names entirely and specify"
        " `dynamic_shapes` as a list/tuple matching `inputs`."
    )


def _children(value: Any) -> list[tuple[str, str, Any]] | None:
    """The path, the key and the value of each child; None for a leaf."""
    if isinstance(value, dict):
        return [(f"[{k!r}]", f"[{k!r}]", v) for k, v in value.items()]
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [(f"[{i}]", f"[{i}]", v) for i, v in enumerate(value)]
    return None


def _compare(tree: Any, shapes: Any, path: str) -> None:
    """UserError at the first place where containers of the arguments have none or other ones."""
    start = "Detected mismatch between the structure of `inputs` and `dynamic_shapes`:"
    children = _children(tree)
    if children is None:
        return
    mine = f"{start} `inputs{path}`"
    other = f"`dynamic_shapes{path}`"
    if not isinstance(shapes, _NODES):
        _refuse(f"{mine} is a {type(tree)}, but {other} is not")
    if type(shapes) is not type(tree):
        _refuse(f"{mine} is a {type(tree)}, but {other} is a {type(shapes)}")
    if len(tree) != len(shapes):
        _refuse(f"{mine} has {len(tree)} elements, but {other} has {len(shapes)} elements")
    if isinstance(tree, dict) and set(tree) != set(shapes):
        _refuse(f"{mine} has keys {list(tree)}, but {other} has keys {list(shapes)}")
    keys: Sequence[Any] = list(tree) if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        _compare(tree[key], shapes[key], f"{path}[{key!r}]")


def _leaves(source: str, value: Any, shapes: Any, path: str) -> list[tuple[str, str, Any]]:
    """The path, the source and the value of each leaf, in pytree's order."""
    steps = pytree.tree_leaves_with_path(value)
    return [(path + pytree.keystr(p), source + pytree.keystr(p), leaf) for p, leaf in steps]


def _pairs(name: str, value: Any, shapes: Any, path: str) -> list[tuple[tuple[str, str, Any], Any]]:
    """The leaves with what is said of each."""
    children = _children(value)
    if children is not None:
        keys: Sequence[Any] = list(value) if isinstance(value, dict) else range(len(value))
        pairs = []
        for key in keys:
            inner = _pairs(name, value[key], shapes[key], f"{path}[{key!r}]")
            pairs += [((p, s, v), e) for (p, s, v), e in inner]
        return _with_sources(name, value, pairs)
    leaves = _leaves(f"L[{name!r}]", value, shapes, path)
    if len(leaves) == 1 and leaves[0][2] is value:
        return [(leaves[0], shapes)]
    entries = list(shapes) if shapes is not None else [None] * len(leaves)
    return list(zip(leaves, entries, strict=True))


def _with_sources(
    name: str, value: Any, pairs: list[tuple[tuple[str, str, Any], Any]]
) -> list[tuple[tuple[str, str, Any], Any]]:
    sources = [source for _, source, _ in _leaves(f"L[{name!r}]", value, None, "")]
    return [
        ((path, source, leaf), entry)
        for source, ((path, _, leaf), entry) in zip(sources, pairs, strict=True)
    ]


def _check(path: str, leaf: Any, entry: Any, bounds: dict[str, tuple[Any, Any]]) -> None:
    if not isinstance(leaf, Tensor):
        if entry is not None and not isinstance(leaf, int):
            _refuse(
                f"Cannot associate shape {entry} specified at `dynamic_shapes{path}` to non-tensor"
                f" type {type(leaf)} at `inputs{path}` (expected None)"
            )
        return
    if entry is None:
        return
    if isinstance(entry, dict):
        pairs, place = list(entry.items()), "mapped to index "
    elif isinstance(entry, list | tuple):
        if len(entry) != len(leaf.shape):
            _refuse(
                f"Expected dynamic shape spec {entry} specified at `dynamic_shapes{path}` to have"
                f" the same length as the actual tensor shape {leaf.shape} (expected"
                f" {len(leaf.shape)}, but got {len(entry)} instead)"
            )
        pairs, place = list(enumerate(entry)), "#"
    else:
        _refuse(
            f"Unexpected input tensor shape {entry} specified at `dynamic_shapes{path}` (expected"
            " either a list/tuple of dimensions, or a dict mapping indices to dimensions, where"
            " each dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)"
        )
    for at, dim in pairs:
        if isinstance(dim, Dim):
            _check_bounds(dim, bounds)
        elif dim is not None and not isinstance(dim, int | _DimHint):
            gap = " " * isinstance(entry, dict)
            _refuse(
                f"Unexpected dimension {place}{at} in input tensor shape {entry} specified at"
                f" `dynamic_shapes{path}` (expected None, an int, a Dim, Dim.AUTO, Dim.STATIC, or"
                f" Dim.DYNAMIC, {gap}but got {dim!r} instead)"
            )


def _check_bounds(dim: Dim, bounds: dict[str, tuple[Any, Any]]) -> None:
    name, limits = dim.__name__, (dim.min, dim.max)
    first = bounds.setdefault(name, limits)
    if first != limits:
        raise UserError(
            f"Found different definitions {Dim._readable(name, *first)} and"
            f" {Dim._readable(name, *limits)} for the same symbolic dimension {dim}!"
        )
