"""Owns what backward checks while anomalies are looked for; knows no modes of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._compat.warn_once import warn
from .._tensor.dtype import FLOAT
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from .grad_mode import LOCAL
from .node import STATE, Node, counter

# Key of a node's metadata under which torch keeps the lines of the forward call.
TRACEBACK = "traceback_"
# And of the node whose step made it.
PARENT = "parent_"


def watched(apply: Callable[[list[Any]], Any], node: Node, grads: list[Any]) -> Any:
    """A step's results; RuntimeError for NaN in one, and warnings that show the forward call and
    the steps of earlier passes that led to it."""
    outer, LOCAL.node = LOCAL.node, node
    try:
        since = next(counter)
        results = apply(grads)
        if LOCAL.grad and STATE.mark is not None:
            STATE.mark(results, since)
        if STATE.check_nan:
            _refuse_nan(node, results)
    except Exception:
        _show_forward_calls(node)
        raise
    finally:
        LOCAL.node = outer
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


def _show_forward_calls(node: Node) -> None:
    message = "Error detected in {}. Traceback of forward call that caused the error:\n{}"
    step: Node | None = node
    while step is not None:
        known = vars(step).get("_metadata", {})
        if TRACEBACK not in known:
            warn(
                f"Error detected in {step.name()}. No forward pass information available. Enable"
                " detect anomaly during forward pass for more information.",
                UserWarning,
            )
            return
        warn(message.format(step.name(), "".join(known[TRACEBACK])), UserWarning)
        message = (
            "\n\nPrevious calculation was induced by {}. Traceback of forward call that induced the"
            " previous calculation:\n{}"
        )
        step = known.get(PARENT)
