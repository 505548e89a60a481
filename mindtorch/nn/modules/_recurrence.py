"""Owns the arithmetic of recurrent cells and of walking them over
time; refuses weights' layout (rnn.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import mindtorch

from ..._autograd.grad_mode import LOCAL, MODES
from ..._tensor.tensor import Tensor
from ...ops.spec import aten
from .. import functional as F
from ..parameter import Parameter

State = tuple[Any, ...]  # (h,) or, for LSTM, (h, c)
Cell = Callable[[Any, State, Sequence[Any]], State]


def _alike(*tensors: Tensor) -> bool:
    """Whether one kernel takes them: plain tensors of one dtype, as autocast may not give."""
    first = tensors[0]
    return all(t.__class__ is Tensor and t.dtype is first.dtype for t in tensors)


def rnn_tanh(x: Tensor, state: State, w: Sequence[Any]) -> State:
    """One step; x is the projected input, w is (w_hh, b_hh)."""
    return (mindtorch.tanh(F.linear(state[0], w[0], w[1]) + x),)


def rnn_relu(x: Tensor, state: State, w: Sequence[Any]) -> State:
    """One step with relu."""
    return (F.relu(F.linear(state[0], w[0], w[1]) + x),)


def gru(x: Tensor, state: State, w: Sequence[Any]) -> State:
    """One step; gates in the order reset, update, new."""
    h = state[0]
    gates = F.linear(h, w[0], w[1])
    if _alike(x, gates, h):
        return (aten._gru_gates(x, gates, h),)
    xr, xz, xn = x.chunk(3, -1)
    hr, hz, hn = gates.chunk(3, -1)
    reset, update = mindtorch.sigmoid(xr + hr), mindtorch.sigmoid(xz + hz)
    new = mindtorch.tanh(xn + reset * hn)
    return (new + update * (h - new),)


def lstm(x: Tensor, state: State, w: Sequence[Any]) -> State:
    """One step; gates in the order input, forget, cell, output; w may hold a projection last."""
    h, c = state
    gates = F.linear(h, w[0], w[1])
    if x.device.type == "npu" and c.dtype is not mindtorch.bfloat16 and _alike(x, gates, c):
        h, c, _ = aten._lstm_cell(x, gates, c)
    elif _alike(gates := gates + x, c):
        h, c = aten._lstm_gates(gates, c)
    else:
        i, f, g, o = gates.chunk(4, -1)
        c = mindtorch.sigmoid(f) * c + mindtorch.sigmoid(i) * mindtorch.tanh(g)
        h = mindtorch.sigmoid(o) * mindtorch.tanh(c)
    if len(w) > 2:
        h = F.linear(h, w[2])
    return h, c


# One launch for all steps, where the device has such an operator.
_LAYERS: dict[Cell, Any] = {lstm: aten._lstm_layer_states, gru: aten._gru_layer_states}


def _whole(cell: Cell, x: Tensor, state: State, weights: Sequence[Any]) -> bool:
    """Whether a layer's operator takes them, and nobody counts the steps' operators."""
    if cell not in _LAYERS or len(weights) > 4 or x.device.type != "npu":
        return False
    kinds = (Tensor, Parameter)
    return (
        not MODES.active
        and not LOCAL.autocast
        and all(
            t is None or (t.__class__ in kinds and t.dtype is x.dtype)
            for t in (x, *state, *weights)
        )
    )


CELLS: dict[str, Cell] = {"RNN_TANH": rnn_tanh, "RNN_RELU": rnn_relu, "GRU": gru, "LSTM": lstm}


def over_time(
    cell: Cell, x: Tensor, state: State, weights: Sequence[Any], reverse: bool
) -> tuple[Any, State]:
    """Runs one direction of one layer over x `[T, N, I]`;
    weights (w_ih, w_hh, b_ih, b_hh[, w_hr])."""
    w_ih, w_hh, b_ih, b_hh, *more = weights
    if _whole(cell, x, state, weights):
        layer = _LAYERS[cell]
        steps_first = mindtorch.flip(x, (0,)) if reverse else x
        out, *ends = layer(steps_first, *(s.unsqueeze(0) for s in state), *weights)
        out = mindtorch.flip(out, (0,)) if reverse else out
        return out, tuple(s.squeeze(0) for s in ends)
    projected = F.linear(x, w_ih, b_ih)
    steps = projected.unbind(0)  # at once: its derivative is one stack
    outputs = []
    for step in reversed(steps) if reverse else steps:
        state = cell(step, state, (w_hh, b_hh, *more))
        outputs.append(state[0])
    if reverse:
        outputs.reverse()
    return mindtorch.stack(outputs), state


def over_packed(
    cell: Cell, x: Tensor, sizes: list[int], state: State, weights: Sequence[Any], reverse: bool
) -> tuple[Any, State]:
    """As over_time for packed data `[sum of sizes, I]`, longest sequence first."""
    w_ih, w_hh, b_ih, b_hh, *more = weights
    rest, counts = (w_hh, b_hh, *more), [1] * len(sizes)
    whole = _whole(cell, x, state, weights)
    if whole:  # steps with as many sequences are one call
        sizes, counts = map(
            list, zip(*[(n, len([*same])) for n, same in groupby(sizes)], strict=True)
        )
        parts = list(x.split([n * count for n, count in zip(sizes, counts, strict=True)]))
    else:
        parts = list(F.linear(x, w_ih, b_ih).split(sizes))
    order = range(len(sizes))
    outputs: list[Any] = [None] * len(sizes)
    live = tuple(s[: sizes[-1]] for s in state) if reverse else state
    ended: list[State] = []
    have = sizes[-1 if reverse else 0]  # rows that are live
    for t in reversed(order) if reverse else order:
        size = sizes[t]
        if size < have:  # the shortest sequences end: their states are kept aside
            ended.append(tuple(s[size:] for s in live))
            live = tuple(s[:size] for s in live)
        elif size > have:  # going backwards, longer sequences join with their first state
            joins = (
                mindtorch.cat([s, first[have:size]]) for s, first in zip(live, state, strict=True)
            )
            live = tuple(joins)
        have = size
        if whole:
            steps = parts[t].unflatten(0, (counts[t], size))
            out, live = over_time(cell, steps, live, weights, reverse)
            outputs[t] = out.flatten(0, 1)
        else:
            live = cell(parts[t], live, rest)
            outputs[t] = live[0]
    ended.append(live)
    ended.reverse()
    final = tuple(mindtorch.cat(list(pieces)) for pieces in zip(*ended, strict=True))
    return mindtorch.cat(outputs), final
