"""torch.fx.traceback: what a program says of the nodes that are made while it runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .._compat.refusals import refusals
from .node import Node

__all__ = ["annotate", "annotate_fn", "format_stack", "get_current_meta",
           "has_preserved_node_meta", "preserve_node_meta", "set_current_meta",
           "set_stack_trace"]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
# What new nodes have of the current one.
_COPIED = ("stack_trace", "nn_module_stack", "source_fn_stack", "original_aten", "recompute",
           "custom")  # fmt: skip


class _CurrentMeta:
    """The meta of the node that is being run, and whether new nodes have it."""

    meta: dict[str, Any] = {}
    preserved = False


@contextmanager
def _with(**values: Any) -> Iterator[None]:
    before = _CurrentMeta.meta, _CurrentMeta.preserved
    try:
        for name, value in values.items():
            setattr(_CurrentMeta, name, value)
        yield
    finally:
        _CurrentMeta.meta, _CurrentMeta.preserved = before


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Inside, new nodes have the meta of those that are run."""
    with _with(meta=_CurrentMeta.meta.copy(), preserved=enable):
        yield


def has_preserved_node_meta() -> bool:
    """Whether new nodes have the meta of those that are run."""
    return _CurrentMeta.preserved


def get_current_meta() -> dict[str, Any]:
    """The meta of the node that is being run; empty where none is."""
    return _CurrentMeta.meta


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Inside, a node is the one that is being run, where that is preserved."""
    if not _CurrentMeta.preserved or not node.meta:
        yield
        return
    with _with(meta=node.meta.copy()):
        yield


def set_stack_trace(stack: list[str]) -> None:
    """Let nodes that are made from here on have a stack trace."""
    if _CurrentMeta.preserved and stack:
        _CurrentMeta.meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """The stack trace of the node that is being run; [] where there is none."""
    return (
        [_CurrentMeta.meta["stack_trace"]] if _CurrentMeta.preserved and _CurrentMeta.meta else []
    )


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Inside, new nodes have these entries in `meta["custom"]`, with those from outside."""
    custom = {**_CurrentMeta.meta.get("custom", {}), **annotation_dict}
    with _with(meta={**_CurrentMeta.meta, "custom": custom}):
        yield


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[F], F]:
    """A decorator: the function's nodes are annotated."""
    decorator: Callable[[F], F] = annotate(annotation_dict)
    return decorator


def note_current(node: Node) -> None:
    """Give a new node what is kept of the one that is being run."""
    if _CurrentMeta.preserved:
        known = _CurrentMeta.meta
        node.meta.update({k: copy.copy(known[k]) for k in _COPIED if k in known})


_NAMES = ("NodeSource", "NodeSourceAction", "get_current_replay_node", "get_graph_provenance_json",
          "reset_grad_fn_seq_nr", "set_current_replay_node", "set_grad_fn_seq_nr")  # fmt: skip
__getattr__ = refusals("torch.fx.traceback", "nodes keep no list of what they came from", _NAMES)
