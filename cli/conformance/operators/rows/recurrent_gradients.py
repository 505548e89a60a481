"""Gradients of gated recurrences, back through time from what their forward passes kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import given, spec, t, take
from .recurrent import gru

_ROW: Final[dict[str, Any]] = {"family": "recurrent", "tolerance": "gradient",
                               "dtypes": ("float32",), "specials": False}  # fmt: skip
_I, _H, _T, _B = 6, 8, 5, 2
# (d of the step's rows for W, for U, d of the state before, what else goes back) from d of a state.
Step = Callable[[int, int, Array, Array], tuple[Array, Array, Array, Array]]


def _fixed(*shape: int, high: float = 2.0) -> Array:
    drawn = t(*shape, low=-high, high=high).array()
    return drawn.astype(np.float32).astype(np.float64)


def _params(gates: int, layers: int, ways: int) -> list[Array]:
    return [_fixed(*shape, high=0.4) for layer in range(layers) for _ in range(ways)
            for shape in ((gates * _H, _I if layer == 0 else _H * ways), (gates * _H, _H),
                          (gates * _H,), (gates * _H,))]  # fmt: skip


def _args(values: list[Array]) -> list[Any]:
    return [given(v.tolist(), "float32") for v in values]


def through_time(
    x: Array, params: list[Array], before: Array, states: list[Array], dy: Array, dh: Array,
    rest: Array, layers: int, ways: int, step: Step,
) -> tuple[Array, Array, Array, list[Array]]:  # fmt: skip
    """(dx, d of first states, d of what else began, d of weights), last layer first.

    `states` are all states of each cell, `rest` is what flows into its end besides `dh`.
    """
    grads: list[Array] = [np.zeros(0)] * len(params)
    first, other, flow = np.zeros_like(before), np.zeros_like(rest), dy
    for layer in reversed(range(layers)):
        own = x if layer == 0 else np.concatenate(states[(layer - 1) * ways : layer * ways], -1)
        dx = np.zeros_like(own)
        for way in range(ways):
            n = layer * ways + way
            w, u = params[4 * n], params[4 * n + 1]
            order = list(range(len(own)))[:: -1 if way else 1]
            dw, du, db, dc = (np.zeros_like(p) for p in params[4 * n : 4 * n + 4])
            back, more = dh[n], rest[n]
            for place in reversed(range(len(order))):
                at = order[place]
                old = states[n][order[place - 1]] if place else before[n]
                back = back + flow[at, :, way * _H : (way + 1) * _H]
                into_w, into_u, direct, more = step(n, at, back, more)
                dw, du = dw + into_w.T @ own[at], du + into_u.T @ old
                db, dc = db + into_w.sum(0), dc + into_u.sum(0)
                dx[at] += into_w @ w
                back = direct + into_u @ u
            first[n], other[n] = back, more
            grads[4 * n : 4 * n + 4] = [dw, du, db, dc]
        flow = dx
    return flow, first, other, grads


def _gru(layers: int, both: bool) -> Any:
    ways = 1 + both
    x, params, hx = _fixed(_T, _B, _I), _params(3, layers, ways), _fixed(layers * ways, _B, _H)
    kept = gru(x, params, hx, True, layers, both, False)[2:]
    names = ("r", "z", "n", "hn", "h")
    return take(input=_args([x])[0], params=_args(params), hx=_args([hx])[0],
                dy=t(_T, _B, ways * _H), dh=t(layers * ways, _B, _H),
                **{k: _args(v) for k, v in zip(names, kept, strict=True)}, batchSizes=None,
                hasBias=True, numLayers=layers, bidirection=both, batchFirst=False)  # fmt: skip


_SHAPES: Final = ((1, False), (1, True), (2, True))


@spec("aclnnGRUBackward", "dxOut:input dhPrevOut:hx dparamsOut:input", **_ROW,
      source="torch 2.13, document of GRU: its derivative, back through time",
      samples=lambda: [_gru(*s) for s in _SHAPES])  # fmt: skip
def gru_back(
    input: Array, params: list[Array], hx: Array, dy: Array, dh: Array, r: list[Array],
    z: list[Array], n: list[Array], hn: list[Array], h: list[Array], numLayers: int,
    bidirection: bool,
) -> tuple[Array, Array, list[Array]]:  # fmt: skip
    """h = n + z (h' - n), n = tanh(own + r hn)."""
    ways = 1 + bidirection

    def step(cell: int, at: int, flow: Array, more: Array) -> tuple[Array, Array, Array, Array]:
        after = at - 1 if cell % ways == 0 else at + 1
        old = h[cell][after] if 0 <= after < len(input) else hx[cell]
        reset, update, new, part = (kept[cell][at] for kept in (r, z, n, hn))
        by_new = flow * (1 - update) * (1 - new**2)
        by_update = flow * (old - new) * update * (1 - update)
        by_reset = by_new * part * reset * (1 - reset)
        own = np.concatenate([by_reset, by_update, by_new], -1)
        kept_part = np.concatenate([by_reset, by_update, by_new * reset], -1)
        return own, kept_part, flow * update, more

    dx, first, _, grads = through_time(input, params, hx, h, dy, dh, np.zeros_like(hx), numLayers,
                                       ways, step)  # fmt: skip
    return dx, first, grads


def _lstm_kept(
    x: Array, params: list[Array], h0: Array, c0: Array, layers: int, ways: int
) -> list[list[Array]]:
    """i, g, f, o, h, c and tanh(c) of every cell; rows of a weight are i, f, g and o."""
    kept: list[list[Array]] = [[] for _ in range(7)]
    for layer in range(layers):
        read = []
        for way in range(ways):
            n = layer * ways + way
            w, u, b, c = params[4 * n : 4 * n + 4]
            state, cell = h0[n], c0[n]
            trace: list[Any] = [None] * len(x)
            for at in list(range(len(x)))[:: -1 if way else 1]:
                i, f, g, o = np.split(x[at] @ w.T + b + state @ u.T + c, 4, -1)
                i, f, o = (1 / (1 + np.exp(-v)) for v in (i, f, o))
                g = np.tanh(g)
                cell = f * cell + i * g
                state = o * np.tanh(cell)
                trace[at] = (i, g, f, o, state, cell, np.tanh(cell))
            for into, values in zip(kept, zip(*trace, strict=True), strict=True):
                into.append(np.stack(values))
            read.append(kept[4][-1])
        x = np.concatenate(read, -1)
    return kept


def _lstm(layers: int, both: bool) -> Any:
    ways = 1 + both
    cells = layers * ways
    x, params = _fixed(_T, _B, _I), _params(4, layers, ways)
    h0, c0 = _fixed(cells, _B, _H), _fixed(cells, _B, _H, high=1.5)
    kept = _lstm_kept(x, params, h0, c0, layers, ways)
    names = ("i", "g", "f", "o", "h", "c", "tanhc")
    return take(input=_args([x])[0], hx=_args([h0, c0]), params=_args(params),
                dy=t(_T, _B, ways * _H), dh=t(cells, _B, _H), dc=t(cells, _B, _H, high=1.5),
                **{k: _args(v) for k, v in zip(names, kept, strict=True)}, batchSizesOptional=None,
                hasBias=True, numLayers=layers, dropout=0.0, train=True, bidirectional=both,
                batchFirst=False, outputMask=(True,) * 4)  # fmt: skip


@spec("aclnnLstmBackward", "dxOut:input dhPrevOut:dh dcPrevOut:dc dparamsOut:input", **_ROW,
      source="torch 2.13, document of LSTM: its derivative, back through time",
      samples=lambda: [_lstm(*s) for s in _SHAPES])  # fmt: skip
def lstm_back(
    input: Array, hx: list[Array], params: list[Array], dy: Array, dh: Array, dc: Array,
    i: list[Array], g: list[Array], f: list[Array], o: list[Array], h: list[Array],
    c: list[Array], tanhc: list[Array], numLayers: int, bidirectional: bool,
) -> tuple[Array, Array, Array, list[Array]]:  # fmt: skip
    """c' = f c + i g, h = o tanh(c')."""
    ways = 1 + bidirectional

    def step(cell: int, at: int, flow: Array, more: Array) -> tuple[Array, Array, Array, Array]:
        after = at - 1 if cell % ways == 0 else at + 1
        old = c[cell][after] if 0 <= after < len(input) else hx[1][cell]
        write, new, keep, out, bent = (kept[cell][at] for kept in (i, g, f, o, tanhc))
        by_cell = more + flow * out * (1 - bent**2)
        rows = np.concatenate([
            by_cell * new * write * (1 - write), by_cell * old * keep * (1 - keep),
            by_cell * write * (1 - new**2), flow * bent * out * (1 - out)], -1)  # fmt: skip
        return rows, rows, np.zeros_like(flow), by_cell * keep

    return through_time(input, params, hx[0], h, dy, dh, dc, numLayers, ways, step)
