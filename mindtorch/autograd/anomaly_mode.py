"""torch.autograd.anomaly_mode: which forward call a failing or NaN step of backward came from."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._autograd.anomaly import PARENT, TRACEBACK
from .._autograd.grad_mode import LOCAL
from .._autograd.node import STATE, AccumulateGrad, Node, Sentinel, counter, public_node
from .._autograd.scope import StepScope
from .._dispatch.overrides import TorchFunctionMode
from .._tensor.tensor import Tensor


class _Traces(TorchFunctionMode):
    """Keeps, with each new node, the lines of the program that called for it."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        since = next(counter)
        result = func(*args, **(kwargs or {}))
        _mark_results(result, since)
        return result


def _mark_results(result: Any, since: int = 0) -> None:
    """Give the lines of the present call to the nodes of its results that were made `since`."""
    lines: list[str] = []
    for value in result if isinstance(result, tuple | list) else (result,):
        if isinstance(value, Tensor) and value.grad_fn is not None:
            lines = lines or traceback.format_list(_of_the_program())
            _mark(value.grad_fn, lines, since)


def _of_the_program() -> list[traceback.FrameSummary]:
    """The stack without this package's own frames."""
    package = __package__.rpartition(".")[0]
    frames = traceback.walk_stack(None)
    program_frames = [
        f for f, _ in frames if not str(f.f_globals.get("__name__", "")).startswith(package)
    ]
    summary = traceback.StackSummary.extract((f, f.f_lineno) for f in reversed(program_frames))
    return [frame for frame in summary if not frame.filename.startswith("<mindtorch")]


def _mark(root: Node, lines: list[str], since: int) -> None:
    """Give lines, and the node whose step made them, to a node and to those under it that have
    none: one call may make several."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, AccumulateGrad | Sentinel) or node.seq < since:
            continue
        if TRACEBACK in node.metadata:
            continue
        node.metadata[TRACEBACK] = lines
        if LOCAL.node is not None:
            node.metadata[PARENT] = public_node(LOCAL.node)
        stack.extend(edge[0] for edge in node.edges if edge is not None)


class set_detect_anomaly(StepScope):  # noqa: N801 - torch's name
    """Look for anomalies from now on, or within a `with` statement."""

    def __init__(self, mode: bool, check_nan: bool = True):
        if not isinstance(mode, bool):
            raise TypeError(
                "set_anomaly_enabled(): argument 'enabled' (position 1) must be bool, not"
                f" {type(mode).__name__}"
            )
        self._before = STATE.on, STATE.check_nan
        _set(mode, check_nan)

    def steps(self) -> Iterator[None]:
        try:
            yield None
        finally:
            _set(*self._before)


_running: list[_Traces] = []


def _set(mode: bool, check_nan: bool) -> None:
    if mode and not _running:  # before the state is set, which an interrupt here would leave on
        traces = _Traces()
        traces.__enter__()
        _running.append(traces)
    STATE.on, STATE.check_nan = mode, check_nan
    STATE.mark = _mark_results if mode else None
    if not mode and _running:
        _running.pop().__exit__(None, None, None)


class detect_anomaly(StepScope):  # noqa: N801 - torch's name
    """Look for anomalies within a `with` statement: NaN in gradients, and where errors come from.

    A RuntimeError names the step of backward; a warning shows the forward call that made it.
    Slow: for debugging alone.
    """

    def __init__(self, check_nan: bool = True):
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should"
            " only be enabled for debugging.",
            UserWarning,
            stacklevel=2,
        )

    def steps(self) -> Iterator[None]:
        before = STATE.on, STATE.check_nan
        try:
            _set(True, self.check_nan)
            yield None
        finally:
            _set(*before)


def is_anomaly_enabled() -> bool:
    """Whether anomalies are looked for."""
    return STATE.on


def is_anomaly_check_nan_enabled() -> bool:
    """Whether gradients are searched for NaN while anomalies are looked for."""
    return STATE.check_nan


__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled",
           "set_detect_anomaly"]  # fmt: skip
