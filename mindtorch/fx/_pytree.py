"""torch.fx._pytree: takes containers apart as a spec says, without asking what they are."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from ..utils._pytree import SUPPORTED_NODES, PyTree, TreeSpec

FlattenFuncSpec = Callable[[PyTree, TreeSpec], list[Any]]
SUPPORTED_NODES_SPEC: dict[type[Any], FlattenFuncSpec] = {}


def register_pytree_flatten_spec(
    cls: type[Any], flatten_fn_spec: FlattenFuncSpec, flatten_fn_exact_match_spec: object = None
) -> None:
    """How a class is taken apart as a spec says."""
    SUPPORTED_NODES_SPEC[cls] = flatten_fn_spec


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec) -> list[Any]:
    """The leaves of a container that lies as the spec does."""
    if spec.is_leaf():
        return [pytree]
    flatten_fn = SUPPORTED_NODES_SPEC.get(spec.type)
    if flatten_fn is not None:
        inner = flatten_fn(pytree, spec)
    elif spec.type in (dict, OrderedDict, defaultdict):
        inner = [pytree[key] for key in spec.context]
    elif issubclass(spec.type, list | tuple):  # or what stands for one in a trace
        inner = [pytree[at] for at in range(spec.num_children)]
    else:
        inner = list(SUPPORTED_NODES[spec.type].flatten_fn(pytree)[0])
    parts = zip(inner, spec.children(), strict=False)
    return [leaf for part, child in parts for leaf in tree_flatten_spec(part, child)]
