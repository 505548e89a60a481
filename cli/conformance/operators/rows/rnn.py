"""Recurrent cells, layers and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import const, spec, t, take
from ._ignored import follows, one_value, requested, reserved

_ROW: Final[dict[str, Any]] = {"tolerance": "gradient",
                               "dtypes": ("float32",), "specials": False}  # fmt: skip
_I, _H, _T, _B = 6, 8, 5, 2
# (d of the step's rows for W, for U, d of the state before, what else goes back) from d of a state.
Step = Callable[[int, int, Array, Array], tuple[Array, Array, Array, Array]]


def _fixed(*shape: int, high: float = 2.0) -> Array:
    draws = t(*shape, low=-high, high=high).array()
    return draws.astype(np.float32).astype(np.float64)


def _params(gates: int, layers: int, ways: int) -> list[Array]:
    return [_fixed(*shape, high=0.4) for layer in range(layers) for _ in range(ways)
            for shape in ((gates * _H, _I if layer == 0 else _H * ways), (gates * _H, _H),
                          (gates * _H,), (gates * _H,))]  # fmt: skip


def _args(values: list[Array]) -> list[Any]:
    return [const(v.tolist(), "float32") for v in values]


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
        layer_input = (
            x if layer == 0 else np.concatenate(states[(layer - 1) * ways : layer * ways], -1)
        )
        dx = np.zeros_like(layer_input)
        for way in range(ways):
            n = layer * ways + way
            w, u = params[4 * n], params[4 * n + 1]
            order = list(range(len(layer_input)))[:: -1 if way else 1]
            dw, du, db, dc = (np.zeros_like(p) for p in params[4 * n : 4 * n + 4])
            back, more = dh[n], rest[n]
            for place in reversed(range(len(order))):
                at = order[place]
                old = states[n][order[place - 1]] if place else before[n]
                back = back + flow[at, :, way * _H : (way + 1) * _H]
                into_w, into_u, direct, more = step(n, at, back, more)
                dw, du = dw + into_w.T @ layer_input[at], du + into_u.T @ old
                db, dc = db + into_w.sum(0), dc + into_u.sum(0)
                dx[at] += into_w @ w
                back = direct + into_u @ u
            first[n], other[n] = back, more
            grads[4 * n : 4 * n + 4] = [dw, du, db, dc]
        flow = dx
    return flow, first, other, grads


_GRU_OUTPUTS: Final = ("rOut", "zOut", "nOut", "hnOut", "hOut")


def _weights(layers: int, ways: int, biased: bool) -> list[Arg]:
    """[3H, I], [3H, H] and two biases, if any, of every cell, for 6 inputs and 8 states."""
    biases = ((24,), (24,)) if biased else ()
    return [t(*shape, low=-0.4, high=0.4) for layer in range(layers) for _ in range(ways)
            for shape in ((24, 6 if layer == 0 else 8 * ways), (24, 8), *biases)]  # fmt: skip


@spec("aclnnGRU", "output:input hy:input " + " ".join(f"{n}:input" for n in _GRU_OUTPUTS),
      ignored=reserved("dropout")
      | requested("train"),
      uncovered="batchSizes",
      tolerance="gradient", dtypes=("float32",),
      source="torch 2.13, document of GRU; Cho et al., 2014", samples=[
          take(input=t(*((2, 5) if first else (5, 2)), 6),
               params=_weights(layers, 1 + both, biased), hx=t(layers * (1 + both), 2, 8),
               batchSizes=None, hasBias=biased, numLayers=layers, dropout=0.0, train=True,
               bidirection=both, batchFirst=first)
          for layers, both, biased, first in ((1, False, True, False), (1, True, True, False),
                                              (2, True, True, False), (2, True, False, False),
                                              (1, True, True, True))])  # fmt: skip
def gru(
    input: Array, params: list[Array], hx: Array, hasBias: bool, numLayers: int, bidirection: bool,
    batchFirst: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Rows of a weight are reset, update and new gate; h' = n + z (h - n). Training keeps what the
    gradient needs of every cell: the gates, the state's part of the new gate, and the states."""
    ways = 1 + bidirection
    cells = iter(zip(*[iter(params)] * (4 if hasBias else 2), strict=True))
    input = input.swapaxes(0, 1) if batchFirst else input
    last: list[Array] = []
    stored: list[list[Array]] = [[] for _ in _GRU_OUTPUTS]
    for _ in range(numLayers):
        read = []
        for way in range(ways):
            (w, u, *biases), h = next(cells), hx[len(last)]
            b, c = biases or (0, 0)
            trace: list[Any] = [None] * len(input)
            for step in reversed(range(len(input))) if way else range(len(input)):
                x_gates, old = (
                    (input[step] @ w.T + b).reshape(-1, 3, 8),
                    (h @ u.T + c).reshape(-1, 3, 8),
                )
                r, z = (0.5 + 0.5 * np.tanh((x_gates[:, g] + old[:, g]) / 2) for g in (0, 1))
                n = np.tanh(x_gates[:, 2] + r * old[:, 2])
                h = n + z * (h - n)
                trace[step] = (r, z, n, old[:, 2], h)
            last.append(h)
            for into, values in zip(stored, zip(*trace, strict=True), strict=True):
                into.append(np.stack(values))
            read.append(stored[-1][-1])
        input = np.concatenate(read, -1)
    return input.swapaxes(0, 1) if batchFirst else input, np.stack(last), *stored


def _gru(layers: int, both: bool) -> Any:
    ways = 1 + both
    x, params, hx = _fixed(_T, _B, _I), _params(3, layers, ways), _fixed(layers * ways, _B, _H)
    stored = gru(x, params, hx, True, layers, both, False)[2:]
    names = ("r", "z", "n", "hn", "h")
    return take(input=_args([x])[0], params=_args(params), hx=_args([hx])[0],
                dy=t(_T, _B, ways * _H), dh=t(layers * ways, _B, _H),
                **{k: _args(v) for k, v in zip(names, stored, strict=True)}, batchSizes=None,
                hasBias=True, numLayers=layers, bidirection=both, batchFirst=False)  # fmt: skip


_SHAPES: Final = ((1, False), (1, True), (2, True))


@spec("aclnnGRUBackward", "dxOut:input dhPrevOut:hx dparamsOut:input",
      ignored=requested("hasBias"),
      uncovered="batchSizes batchFirst",
      **_ROW,
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
        reset, update, new, part = (stored[cell][at] for stored in (r, z, n, hn))
        by_new = flow * (1 - update) * (1 - new**2)
        by_update = flow * (old - new) * update * (1 - update)
        by_reset = by_new * part * reset * (1 - reset)
        gate_grads = np.concatenate([by_reset, by_update, by_new], -1)
        kept_part = np.concatenate([by_reset, by_update, by_new * reset], -1)
        return gate_grads, kept_part, flow * update, more

    dx, first, _, grads = through_time(input, params, hx, h, dy, dh, np.zeros_like(hx), numLayers,
                                       ways, step)  # fmt: skip
    return dx, first, grads


def _lstm_kept(
    x: Array, params: list[Array], h0: Array, c0: Array, layers: int, ways: int
) -> list[list[Array]]:
    """i, g, f, o, h, c and tanh(c) of every cell; rows of a weight are i, f, g and o."""
    stored: list[list[Array]] = [[] for _ in range(7)]
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
            for into, values in zip(stored, zip(*trace, strict=True), strict=True):
                into.append(np.stack(values))
            read.append(stored[4][-1])
        x = np.concatenate(read, -1)
    return stored


def _lstm(layers: int, both: bool) -> Any:
    ways = 1 + both
    cells = layers * ways
    x, params = _fixed(_T, _B, _I), _params(4, layers, ways)
    h0, c0 = _fixed(cells, _B, _H), _fixed(cells, _B, _H, high=1.5)
    stored = _lstm_kept(x, params, h0, c0, layers, ways)
    names = ("i", "g", "f", "o", "h", "c", "tanhc")
    return take(input=_args([x])[0], hx=_args([h0, c0]), params=_args(params),
                dy=t(_T, _B, ways * _H), dh=t(cells, _B, _H), dc=t(cells, _B, _H, high=1.5),
                **{k: _args(v) for k, v in zip(names, stored, strict=True)},
                batchSizesOptional=None,
                hasBias=True, numLayers=layers, dropout=0.0, train=True, bidirectional=both,
                batchFirst=False, outputMask=(True,) * 4)  # fmt: skip


@spec("aclnnLstmBackward", "dxOut:input dhPrevOut:dh dcPrevOut:dc dparamsOut:input",
      ignored=reserved("outputMask")
      | follows("hasBias"),
      uncovered="batchSizesOptional dropout train batchFirst",
      **_ROW,
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
        write, new, keep, out, bent = (stored[cell][at] for stored in (i, g, f, o, tanhc))
        by_cell = more + flow * out * (1 - bent**2)
        rows = np.concatenate([
            by_cell * new * write * (1 - write), by_cell * old * keep * (1 - keep),
            by_cell * write * (1 - new**2), flow * bent * out * (1 - out)], -1)  # fmt: skip
        return rows, rows, np.zeros_like(flow), by_cell * keep

    return through_time(input, params, hx[0], h, dy, dh, dc, numLayers, ways, step)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_CELL: Final[dict[str, Any]] = {"tolerance": "gradient", "dtypes":
                                ("float32",), "source": "torch 2.13, documents of LSTM, LSTMCell "
                                "and GRU"}  # fmt: skip


@spec("aclnnThnnFusedLstmCell", "hyOut:cx cyOut:cx storageOut:inputGates", **_CELL, samples=[
    take(inputGates=t(3, 4 * 16), hiddenGates=t(3, 4 * 16), cx=t(3, 16), inputBiasOptional=b,
         hiddenBiasOptional=b) for b in (None, t(64))])  # fmt: skip
def lstm_cell(
    inputGates: Array, hiddenGates: Array, cx: Array, inputBiasOptional: Array | None,
    hiddenBiasOptional: Array | None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Gates in torch's order: input, forget, cell, output; the storage keeps them activated."""
    gates = inputGates + hiddenGates
    for bias in (inputBiasOptional, hiddenBiasOptional):
        gates = gates if bias is None else gates + bias
    i, f, g, o = np.split(gates, 4, -1)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    cell = f * cx + i * g
    return o * np.tanh(cell), cell, np.concatenate([i, f, g, o], -1)


def _cell_sample() -> dict[str, Any]:
    draws = {"inputGates": t(3, 64), "hiddenGates": t(3, 64, high=1.5), "cx": t(3, 16)}
    arrays = {k: v.array().astype(np.float64) for k, v in draws.items()}
    _, cell, storage = lstm_cell(**arrays, inputBiasOptional=None, hiddenBiasOptional=None)
    return {"cx": const(arrays["cx"].tolist(), "float32"), "cy": const(cell.tolist(), "float32"),
            "storage": const(storage.tolist(), "float32")}  # fmt: skip


@spec("aclnnThnnFusedLstmCellBackward",
      "gradGatesOut:storage gradCxOut:cx gradBiasOut:storage",
      uncovered="hasBias",
      **_CELL, samples=lambda: [
          take(gradHyOptional=t(3, 16), gradCOptional=c, **_cell_sample(), hasBias=True)
          for c in (t(3, 16), None)])  # fmt: skip
def lstm_cell_backward(
    gradHyOptional: Array, gradCOptional: Array | None, cx: Array, cy: Array, storage: Array
) -> tuple[Array, Array, Array]:
    i, f, g, o = np.split(storage, 4, -1)
    top = np.tanh(cy)
    dc = gradHyOptional * o * (1 - top**2) + (0 if gradCOptional is None else gradCOptional)
    gates = np.concatenate([dc * g * i * (1 - i), dc * cx * f * (1 - f), dc * i * (1 - g**2),
                            gradHyOptional * top * o * (1 - o)], -1)  # fmt: skip
    return gates, dc * f, gates.sum(0)


def run(x: Array, params: list[Array], state: Array, cell: Array) -> tuple[Array, Array, Array]:
    """One direction of one layer over [T, B, I]."""
    outs = []
    for row in x:
        state, cell, _ = lstm_cell(row @ params[0].T, state @ params[1].T, cell, *params[2:])
        outs.append(state)
    return np.stack(outs), state, cell


def _nothing() -> dict[str, Any]:
    """What training would keep."""
    return {n: [t(0)] for n in ("iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut")}


@spec("aclnnLSTM", "output:input hy:input cy:input",
      ignored=reserved("dropout"),
      uncovered="batchSizes train iOut jOut fOut oOut hOut cOut tanhCOut",
      **_CELL, samples=[
    take(input=t(*((2, 5) if first else (5, 2)), 6),
         params=[t(*s, low=-0.4, high=0.4) for layer in range(layers)
                 for _ in range(2 if both else 1)
                 for s in ((32, 6 if layer == 0 else 8 * (1 + both)), (32, 8),
                           *(((32,), (32,)) if biased else ()))],
         hx=[t(layers * (1 + both), 2, 8), t(layers * (1 + both), 2, 8, high=1.5)], hasBias=biased,
         numLayers=layers, dropout=0.0, train=False, bidirectional=both, batchFirst=first,
         **_nothing())
    for layers, both, biased, first in ((1, False, True, False), (1, True, True, False),
                                        (2, True, True, False), (2, True, False, False),
                                        (1, True, True, True))])  # fmt: skip
def lstm(
    input: Array, params: list[Array], hx: list[Array], hasBias: bool, numLayers: int,
    bidirectional: bool, batchFirst: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Layer on layer; the second direction reads backwards and lies behind the first."""
    states, cells, ways, each = [], [], 2 if bidirectional else 1, 4 if hasBias else 2
    x = input.swapaxes(0, 1) if batchFirst else input
    for layer in range(numLayers):
        parts = []
        for way in range(ways):
            n = layer * ways + way
            layer_params = params[each * n : each * n + each]
            layer_params = (
                layer_params
                if hasBias
                else [*layer_params, np.zeros(len(layer_params[0])), np.zeros(len(layer_params[0]))]
            )
            rows, state, cell = run(x[::-1] if way else x, layer_params, hx[0][n], hx[1][n])
            parts.append(rows[::-1] if way else rows)
            states.append(state)
            cells.append(cell)
        x = np.concatenate(parts, -1)
    return x.swapaxes(0, 1) if batchFirst else x, np.stack(states), np.stack(cells)


def _half(*shape: int) -> Arg:
    return t(*shape, dtype="float16", low=-0.4, high=0.4)


_LSTM: Final = [_half(*shape) for shape in ((32, 6), (32, 8), (32,), (32,))]


def _lstm_layer(
    x: Array, h: Array, c: Array, cell: Sequence[Array | None]
) -> tuple[Array, Array, Array]:  # fmt: skip
    """States of all steps, the last state and the last cell; gates are i, f, g, o by rows."""
    w, u, *biases = cell
    assert w is not None
    assert u is not None
    shift = sum(b for b in biases if b is not None)
    states = []
    for row in x:
        i, f, g, o = np.split(row @ w.T + h @ u.T + shift, 4, -1)
        i, f, o = ((1 + np.tanh(gate / 2)) / 2 for gate in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        states.append(h)
    return np.stack(states), h, c


@spec("aclnnBidirectionLSTM aclnnBidirectionLSTMV2", "yOut:x outputHOut:x outputCOut:x",
      ignored=one_value("numLayers"),
      uncovered="batchSizeOptional packed",
      tolerance="gradient", dtypes=("float16",),
      source="torch 2.13, document of LSTM; Hochreiter, Schmidhuber, 1997; Gers et al., 2000",
      samples=[take(x=_half(*((2, 5) if first else (5, 2)), 6), initH=_half(1 + both, 2, 8),
                    initC=_half(1 + both, 2, 8), wIh=_LSTM[0], wHh=_LSTM[1],
                    bIhOptional=_LSTM[2] if biased else None,
                    bHhOptional=_LSTM[3] if biased else None,
                    wIhReverseOptional=_LSTM[0] if both else None,
                    wHhReverseOptional=_LSTM[1] if both else None,
                    bIhReverseOptional=_LSTM[2] if both and biased else None,
                    bHhReverseOptional=_LSTM[3] if both and biased else None, numLayers=1,
                    isbias=biased, batchFirst=first, bidirection=both, packed=False)
               for biased, first, both in ((True, False, True), (False, False, True),
                                           (True, True, True), (True, False, False))])  # fmt: skip
def bidirectional_lstm(
    x: Array, initH: Array, initC: Array, wIh: Array, wHh: Array, bIhOptional: Array | None,
    bHhOptional: Array | None, wIhReverseOptional: Array | None, wHhReverseOptional: Array | None,
    bIhReverseOptional: Array | None, bHhReverseOptional: Array | None, isbias: bool,
    batchFirst: bool, bidirection: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    x = x.swapaxes(0, 1) if batchFirst else x
    back = (wIhReverseOptional, wHhReverseOptional, bIhReverseOptional, bHhReverseOptional)
    cells = [(wIh, wHh, bIhOptional, bHhOptional), back]
    ways = []
    for n, cell in enumerate(cells[: 1 + bidirection]):
        states, h, c = _lstm_layer(
            x[::-1] if n else x, initH[n], initC[n], cell[: 4 if isbias else 2]
        )
        ways.append((states[::-1] if n else states, h, c))
    y = np.concatenate([way[0] for way in ways], -1)
    last = [np.stack([way[n] for way in ways]) for n in (1, 2)]
    return y.swapaxes(0, 1) if batchFirst else y, last[0], last[1]
