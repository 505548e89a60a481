"""Owns what backward checks while anomalies are looked for; knows no modes of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._compat.warn_once import warn
from .._tensor.dtype import FLOAT
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from .node import STATE, Node

# Key of a node's metadata under which torch keeps the lines of the forward call.
TRACEBACK = "traceback_"


def watched(apply: Callable[[list[Any]], Any], node: Node, grads: list[Any]) -> Any:
    """A step's results; RuntimeError for NaN in one, and a warning that shows the forward call."""
    try:
        results = apply(grads)
        if STATE.check_nan:
            _refuse_nan(node, results)
    except Exception:
        warn(_forward_trace_message(node), UserWarning)
        raise
    return results


def _refuse_nan(node: Node, results: Any) -> None:
    op = getattr(node, "op", None)
    if op is not None and op.name == "linear" and len(results) == 3:  # torch's addmm
        results = (results[2], *results[:2]) if results[2] is not None else results
    for number, result in enumerate(results):
        if not isinstance(result, Tensor) or result.device.type == "meta":
            continue
        geom = result._geom
        if geom.dtype.category < FLOAT or not bool(aten.any(aten.isnan(result)).item()):
            continue
        raise RuntimeError(
            f"Function '{node.name()}' returned nan values in its {number}th output."
        )


def _forward_trace_message(node: Node) -> str:
    lines = node.__dict__.get("_metadata", {}).get(TRACEBACK)
    if lines is None:
        return (
            f"Error detected in {node.name()}. No forward pass information available. Enable"
            " detect anomaly during forward pass for more information."
        )
    return (
        f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
        f"{''.join(lines)}"
    )
