"""Recurrent cells, layers and their gradients."""

from __future__ import annotations

from dataclasses import dataclass

from ....spec import *
from ....spec.values import Elements, TensorValue
from ....spec.words import Sizes
from ._saved import known, saved
from ._words import *

_RULE: Final = Rule("gradient", "torch 2.13, documents of LSTM, LSTMCell and GRU; Hochreiter, "
                    "Schmidhuber, 1997; Cho et al., 2014", specials=False, numbers={
                        "norm": 32, "reason": "what one step rounds goes on through as many as "
                        "27 others: 9 of a sequence in 3 layers"})  # fmt: skip
_CELL_SIZES: Final = sizes(T=seq(5, 1, 2, 9), B=batch(2, 1, 3, 5), I=row(6, 1, 17, 40),
                           H=row(8, 1, 5, 33))  # fmt: skip
_HALVES: Final = "f32 f16"


def _layers(ways: str) -> Sizes:
    """Dims of [T, B, ...] in the order that batchFirst asks for; ways; cells."""
    return sizes(X="B if batchFirst else T", Y="T if batchFirst else B", W=f"1 + {ways}",
                 C="numLayers * W")  # fmt: skip


# (d of the step's rows for W, for U, d of the state before, what else goes back) from d of a state.
Step = Callable[[int, int, Array, Array], tuple[Array, Array, Array, Array]]


@dataclass(frozen=True)
class _Weights(Domain):
    """[gates H, I or what a layer gives], [gates H, H] and two biases, if any, of every cell."""

    gates: int
    dtype: str = "input"

    def value(self, draw: Draw, name: str, level: str) -> list[TensorValue]:
        rows, ways = self.gates * draw["H"], draw["W"]
        shapes = [shape for layer in range(draw["numLayers"]) for _ in range(ways)
                  for shape in ((rows, ways * draw["H"] if layer else draw["I"]), (rows, draw["H"]),
                                *(((rows,),) * 2 if draw["hasBias"] else ()))]  # fmt: skip
        dtype, rng = draw.dtype(name, self.dtype), draw.generator(name)
        return [TensorValue(shape, dtype, -0.6, 0.6, Elements(lambda: None, values))
                for shape in shapes for values in [rng.uniform(-0.6, 0.6, shape)]]  # fmt: skip

    def within(self) -> tuple[Domain, ...]:
        return (tensor("W*H I", self.dtype, -0.6, 0.6, strided=False),)


def _ends(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """How many samples each step has, longer ones first: the first has all steps."""
    steps, many = draw["T"], draw["B"]
    lengths = np.sort(rng.integers(1, steps + 1, many))[::-1]
    if pattern != "ragged":
        lengths = np.full(many, steps if pattern == "whole" else 1)
    lengths[0] = steps
    return (lengths[None] > np.arange(steps)[:, None]).sum(1)


def alive(batchSizes: Array | None, steps: int, samples: int) -> Array:
    """[T, B, 1]: whether a sample has not ended at a step."""
    most = np.full(steps, samples) if batchSizes is None else np.asarray(batchSizes)
    return (np.arange(samples) < most[:, None])[..., None]


def _steps_first(x: Array, batchFirst: bool) -> Array:
    return x.swapaxes(0, 1) if batchFirst else x


def sigmoid(x: Array) -> Array:
    return (1 + np.tanh(x / 2)) / 2


def _cells(params: list[Array], hasBias: bool) -> list[list[Array]]:
    """[W, U, b, c] of every cell."""
    each = 4 if hasBias else 2
    cells = [params[n : n + each] for n in range(0, len(params), each)]
    return cells if hasBias else [[w, u, *np.zeros((2, len(w)))] for w, u in cells]


# (what a step leaves, its new states) from its input, states and weights.
Cell = Callable[[Array, tuple[Array, ...], Sequence[Array]],
                tuple[tuple[Array, ...], tuple[Array, ...]]]  # fmt: skip


def _way(
    x: Array, states: tuple[Array, ...], cell: Sequence[Array], lives: Array, back: bool, step: Cell
) -> tuple[list[Array], tuple[Array, ...]]:
    """What a direction leaves of every step, and its last states; ended samples keep theirs."""
    trace: list[Any] = [None] * len(x)
    for at in list(range(len(x)))[:: -1 if back else 1]:
        values, new = step(x[at], states, cell)
        states = tuple(np.where(lives[at], n, old) for n, old in zip(new, states, strict=True))
        trace[at] = values
    return [np.stack(v) * lives for v in zip(*trace, strict=True)], states


def _network(
    x: Array, cells: list[list[Array]], starts: list[Array], lives: Array, ways: int, step: Cell
) -> tuple[Array, list[Array], list[list[Array]]]:  # fmt: skip
    """Layer on layer; a second direction reads backwards and lies behind the first. Results, last
    states of each kind, and what every cell leaves of each kind, states fifth."""
    ends, stored = [], []
    for layer in range(len(cells) // ways):
        parts = []
        for way in range(ways):
            n = layer * ways + way
            begin = tuple(s[n] for s in starts)
            trace, last = _way(x, begin, cells[n], lives, bool(way), step)
            ends.append(last)
            stored.append(trace)
            parts.append(trace[4])
        x = np.concatenate(parts, -1)
    states = [np.stack(s) for s in zip(*ends, strict=True)]
    return x, states, [list(s) for s in zip(*stored, strict=True)]


_TRACES: Final = ("rOut", "zOut", "nOut", "hnOut", "hOut")
_LAYERS: Final = ignored("follows from the weights", integer(1, 2, 3))
_DROPOUT: Final = ignored("acts between layers in training, by a random mask", number(0.0, 0.5))
_NO_MASK: Final = require("not dropout or not train or numLayers == 1", refuses=None)
_DEEP: Final = both("numLayers > 1 and W > 1", "hasBias", "H > I", "batchFirst and B > 2")


def _gru_step(
    x: Array, states: tuple[Array, ...], cell: Sequence[Array]
) -> tuple[tuple[Array, ...], tuple[Array]]:
    """Rows of a weight are reset, update and new gate; h' = n + z (h - n)."""
    w, u, b, c = cell
    own, old = np.split(x @ w.T + b, 3, -1), np.split(states[0] @ u.T + c, 3, -1)
    r, z = (sigmoid(own[g] + old[g]) for g in (0, 1))
    n = np.tanh(own[2] + r * old[2])
    h = n + z * (states[0] - n)
    return (r, z, n, old[2], h), (h,)


@spec("aclnnGRU", _RULE, _CELL_SIZES, _layers("bidirection"), _DEEP, _NO_MASK,
      input=tensor("X Y I", _HALVES), params=_Weights(3), hx=optional(tensor("C B H", "input")),
      batchSizes=null("of packed sequences, which the simulator does not take"),
      hasBias=flag(True), numLayers=_LAYERS, dropout=_DROPOUT, train=flag(True),
      bidirection=flag(), batchFirst=flag(), output=out("input"), hy=out("input"),
      **{n: out("input") for n in _TRACES})  # fmt: skip
def gru(
    input: Array, params: list[Array], hx: Array | None, hasBias: bool, train: bool,
    bidirection: bool, batchFirst: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Training keeps what the gradient needs of every cell: the gates, the state's part of the new
    gate, and the states."""
    x, cells = _steps_first(input, batchFirst), _cells(params, hasBias)
    start = np.zeros((len(cells), x.shape[1], cells[0][1].shape[1])) if hx is None else hx
    lives = alive(None, *x.shape[:2])
    y, (last,), stored = _network(x, cells, [start], lives, 1 + bidirection, _gru_step)
    return _steps_first(y, batchFirst), last, *(stored if train else [None] * 5)


def through_time(
    x: Array, params: list[Array], before: Array, states: list[Array], dy: Array, dh: Array,
    rest: Array, layers: int, each: int, lives: Array, step: Step,
) -> tuple[Array, Array, Array, list[Array]]:  # fmt: skip
    """(dx, d of first states, d of what else began, d of weights).

    `states` are all states of each cell, `rest` is what flows into its end besides `dh`; `each`
    cell has so many weights; nothing flows through samples that have ended.
    """
    grads: list[Array] = [np.zeros(0)] * len(params)
    ways, size = len(before) // layers, before.shape[-1]
    first, other, flow = np.zeros_like(before), np.zeros_like(rest), dy
    for layer in reversed(range(layers)):
        layer_input = (
            x if layer == 0 else np.concatenate(states[(layer - 1) * ways : layer * ways], -1)
        )
        dx = np.zeros_like(layer_input)
        for way in range(ways):
            n = layer * ways + way
            w, u, *_ = params[each * n : each * (n + 1)]
            dw, du, db, dc = (np.zeros_like(v) for v in (w, u, u[:, 0], u[:, 0]))
            back, more = dh[n], rest[n]
            for at in list(range(len(x)))[:: 1 if way else -1]:
                live, old = lives[at], earlier(states[n], before[n], at, way, lives)
                to = np.where(live, back + flow[at, :, way * size : (way + 1) * size], 0)
                into_w, into_u, direct, past = step(n, at, to, np.where(live, more, 0))
                into_w, into_u = into_w * live, into_u * live
                dw, du = dw + into_w.T @ layer_input[at], du + into_u.T @ old
                db, dc = db + into_w.sum(0), dc + into_u.sum(0)
                dx[at] += into_w @ w
                back, more = np.where(live, direct + into_u @ u, back), np.where(live, past, more)
            first[n], other[n] = back, more
            grads[each * n : each * (n + 1)] = [dw, du, db, dc][:each]
        flow = dx
    return flow, first, other, grads


def earlier(states: Array, first: Array, at: int, way: int, lives: Array) -> Array:
    """The state that a step began with: the one before it, the first where there is none."""
    near = at + 1 if way else at - 1
    return np.where(lives[near], states[near], first) if 0 <= near < len(states) else first


def _gru_forward(get: Callable[[str], Any]) -> list[list[Array]]:
    """r, z, n, the state's part of n, and h of every cell."""
    x = _steps_first(get("input"), get("batchFirst"))
    cells = _cells(get("params"), get("hasBias"))
    lives = alive(None, *x.shape[:2])
    return _network(x, cells, [get("hx")], lives, 1 + get("bidirection"), _gru_step)[2]


def _of_cells(forward: Callable[[Any], Any], which: int, reads: str) -> Domain:
    """What every cell left."""
    return several("C", saved(forward, which, "T B H", "dy", reads))


_GRU_SAVED: Final = ("r", "z", "n", "hn", "h")


@spec("aclnnGRUBackward", _RULE, _CELL_SIZES, _layers("bidirection"), _DEEP,
      input=known("X Y I", "dy"), params=_Weights(3, "dy"), hx=known("C B H", "dy"),
      dy=tensor("X Y W*H", _HALVES), dh=tensor("C B H", "dy"),
      **{k: _of_cells(_gru_forward, i, "input params hx") for i, k in enumerate(_GRU_SAVED)},
      batchSizes=null("of packed sequences, which the simulator does not take"),
      hasBias=flag(True), numLayers=integer(1, 2, 3), bidirection=flag(), batchFirst=flag(),
      dxOut=out("input"), dhPrevOut=out("hx"), dparamsOut=out("input"))  # fmt: skip
def gru_back(
    input: Array, params: list[Array], hx: Array, dy: Array, dh: Array, r: list[Array],
    z: list[Array], n: list[Array], hn: list[Array], h: list[Array], hasBias: bool, numLayers: int,
    bidirection: bool, batchFirst: bool,
) -> tuple[Array, Array, list[Array]]:  # fmt: skip
    """h = n + z (h' - n), n = tanh(own + r hn)."""
    x, lives = _steps_first(input, batchFirst), alive(None, *h[0].shape[:2])

    def step(cell: int, at: int, flow: Array, more: Array) -> tuple[Array, Array, Array, Array]:
        old = earlier(h[cell], hx[cell], at, cell % (1 + bidirection), lives)
        reset, update, new, part = (stored[cell][at] for stored in (r, z, n, hn))
        by_new = flow * (1 - update) * (1 - new**2)
        by_update = flow * (old - new) * update * (1 - update)
        by_reset = by_new * part * reset * (1 - reset)
        gate_grads = np.concatenate([by_reset, by_update, by_new], -1)
        kept_part = np.concatenate([by_reset, by_update, by_new * reset], -1)
        return gate_grads, kept_part, flow * update, more

    dx, first, _, grads = through_time(
        x, params, hx, h, _steps_first(dy, batchFirst), dh, np.zeros_like(hx), numLayers,
        4 if hasBias else 2, lives, step,
    )  # fmt: skip
    return _steps_first(dx, batchFirst), first, grads


def _lstm_step(
    x: Array, states: tuple[Array, ...], cell: Sequence[Array]
) -> tuple[tuple[Array, ...], tuple[Array, Array]]:
    """Gates i, f, g and o by rows of a weight; c' = f c + i g, h = o tanh(c')."""
    w, u, b, c = cell
    i, f, g, o = np.split(x @ w.T + b + states[0] @ u.T + c, 4, -1)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    memory = f * states[1] + i * g
    h = o * np.tanh(memory)
    return (i, g, f, o, h, memory, np.tanh(memory)), (h, memory)


_LSTM_TRACES: Final = ("iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut")
_PACKED: Final = optional(content(_ends, "ragged short whole", shape="T"), only="not batchFirst")


@spec("aclnnLSTM", _RULE, _CELL_SIZES, _layers("bidirectional"), _DEEP, _NO_MASK,
      both("given(batchSizes) and bidirectional", "given(batchSizes) and numLayers > 1"),
      # What ended samples leave for the gradient is not stated.
      require("not train or not given(batchSizes)", refuses=None),
      input=tensor("X Y I", _HALVES), params=_Weights(4),
      hx=optional(several("2", tensor("C B H", "input"))), batchSizes=_PACKED,
      hasBias=flag(True), numLayers=_LAYERS, dropout=_DROPOUT, train=flag(),
      bidirectional=flag(), batchFirst=flag(), output=out("input"), hy=out("input"),
      cy=out("input"), **{n: out("input") for n in _LSTM_TRACES})  # fmt: skip
def lstm(
    input: Array, params: list[Array], hx: list[Array] | None, batchSizes: Array | None,
    hasBias: bool, train: bool, bidirectional: bool, batchFirst: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """The second direction of a sample begins at its own end: before it, its states wait."""
    x, cells = _steps_first(input, batchFirst), _cells(params, hasBias)
    zeros = np.zeros((len(cells), x.shape[1], cells[0][1].shape[1]))
    lives = alive(batchSizes, *x.shape[:2])
    y, last, stored = _network(x, cells, hx or [zeros, zeros], lives, 1 + bidirectional,
                               _lstm_step)  # fmt: skip
    return _steps_first(y, batchFirst), *last, *(stored if train else [None] * 7)


def _lstm_forward(get: Callable[[str], Any]) -> list[list[Array]]:
    """i, g, f, o, h, c and tanh(c) of every cell; states of samples that have ended wait."""
    x, hx = _steps_first(get("input"), get("batchFirst")), get("hx")
    cells, lives = _cells(get("params"), get("hasBias")), alive(get("batchSizesOptional"),
                                                                *x.shape[:2])  # fmt: skip
    stored = _network(x, cells, hx, lives, 1 + get("bidirectional"), _lstm_step)[2]
    for kind, first in ((4, hx[0]), (5, hx[1])):
        stored[kind] = [np.where(lives, v, first[n]) for n, v in enumerate(stored[kind])]
    return stored


_LSTM_SAVED: Final = ("i", "g", "f", "o", "h", "c", "tanhc")


@spec("aclnnLstmBackward", _RULE, _CELL_SIZES, _layers("bidirectional"), _DEEP,
      both("given(batchSizesOptional) and bidirectional"),
      input=known("X Y I", "dy"), hx=several("2", known("C B H", "dy")),
      params=_Weights(4, "dy"), dy=tensor("X Y W*H", _HALVES), dh=tensor("C B H", "dy"),
      dc=tensor("C B H", "dy"), **{
          k: _of_cells(_lstm_forward, i, "input params hx batchSizesOptional")
          for i, k in enumerate(_LSTM_SAVED)},
      batchSizesOptional=_PACKED, hasBias=flag(True), numLayers=integer(1, 2, 3),
      dropout=only(0.0, "its mask is no parameter"),
      train=ignored("a gradient is of training", flag(True)), bidirectional=flag(),
      batchFirst=flag(), outputMask=only((True,) * 4, "reserved: documents ask for all"),
      dxOut=out("input"), dhPrevOut=out("dh"), dcPrevOut=out("dc"), dparamsOut=out("input"),
      )  # fmt: skip
def lstm_back(
    input: Array, hx: list[Array], params: list[Array], dy: Array, dh: Array, dc: Array,
    i: list[Array], g: list[Array], f: list[Array], o: list[Array], h: list[Array],
    c: list[Array], tanhc: list[Array], batchSizesOptional: Array | None, hasBias: bool,
    numLayers: int, bidirectional: bool, batchFirst: bool,
) -> tuple[Array, Array, Array, list[Array]]:  # fmt: skip
    """c' = f c + i g, h = o tanh(c')."""
    x, lives = _steps_first(input, batchFirst), alive(batchSizesOptional, *h[0].shape[:2])

    def step(cell: int, at: int, flow: Array, more: Array) -> tuple[Array, Array, Array, Array]:
        old = earlier(c[cell], hx[1][cell], at, cell % (1 + bidirectional), lives)
        write, new, keep, out, bent = (stored[cell][at] for stored in (i, g, f, o, tanhc))
        by_cell = more + flow * out * (1 - bent**2)
        rows = np.concatenate([
            by_cell * new * write * (1 - write), by_cell * old * keep * (1 - keep),
            by_cell * write * (1 - new**2), flow * bent * out * (1 - out)], -1)  # fmt: skip
        return rows, rows, np.zeros_like(flow), by_cell * keep

    dx, before, began, grads = through_time(
        x, params, hx[0], h, _steps_first(dy, batchFirst), dh, dc, numLayers,
        4 if hasBias else 2, lives, step,
    )  # fmt: skip
    return _steps_first(dx, batchFirst), before, began, grads


_ONE_CELL: Final = sizes(H=row(16, 1, 5, 33, 257), B=batch(3, 1, 2, 17))


@spec("aclnnThnnFusedLstmCell", _RULE, _ONE_CELL, inputGates=tensor("B 4*H", _HALVES),
      hiddenGates=tensor("B 4*H", "inputGates"), cx=tensor("B H", "inputGates"),
      inputBiasOptional=optional(tensor("4*H", "inputGates")),
      hiddenBiasOptional=optional(tensor("4*H", "inputGates"), iff="given(inputBiasOptional)"),
      hyOut=out("cx"), cyOut=out("cx"), storageOut=out("inputGates"))  # fmt: skip
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


def _activated(rng: np.random.Generator, _pattern: str, draw: Draw) -> Array:
    """Gates as the storage has them: only the third may be negative."""
    gates = rng.uniform(0.02, 0.98, (draw["B"], 4, draw["H"]))
    gates[:, 2] = 2 * gates[:, 2] - 1
    return gates.reshape(draw["B"], -1)


def _memory(get: Callable[[str], Any]) -> list[Array]:
    i, f, g, _ = np.split(get("storage"), 4, -1)
    return [np.stack(f * get("cx") + i * g)]


@spec("aclnnThnnFusedLstmCellBackward", _RULE, _ONE_CELL,
      require("given(gradHyOptional) or given(gradCOptional)", refuses=None),
      gradHyOptional=optional(tensor("B H", _HALVES)),
      gradCOptional=optional(tensor("B H", "gradHyOptional")),
      cx=known("B H", "gradHyOptional"),
      cy=saved(_memory, 0, "B H", "gradHyOptional", "cx storage"),
      storage=content(_activated, "any", "gradHyOptional", shape="B 4*H"),
      hasBias=only(True, "without it gradBiasOut is asked for, and has no stated result"),
      gradGatesOut=out("storage"), gradCxOut=out("cx"), gradBiasOut=out("storage"))  # fmt: skip
def lstm_cell_backward(
    gradHyOptional: Array | None, gradCOptional: Array | None, cx: Array, cy: Array, storage: Array
) -> tuple[Array, Array, Array]:
    i, f, g, o = np.split(storage, 4, -1)
    top, flow = np.tanh(cy), np.zeros_like(cx) if gradHyOptional is None else gradHyOptional
    dc = flow * o * (1 - top**2) + (0 if gradCOptional is None else gradCOptional)
    gates = np.concatenate([dc * g * i * (1 - i), dc * cx * f * (1 - f), dc * i * (1 - g**2),
                            flow * top * o * (1 - o)], -1)  # fmt: skip
    return gates, dc * f, gates.sum(0)


def _of_way(shape: str, iff: str = "") -> Domain:
    domain = tensor(shape, "x", -0.6, 0.6)
    return optional(domain, iff=iff) if iff else domain


_BOTH_WAYS: Final[dict[str, Domain]] = {
    "x": tensor("X Y I", "f16"), "initH": tensor("W B H", "x"), "initC": tensor("W B H", "x"),
    "wIh": _of_way("4*H I"), "wHh": _of_way("4*H H"), "bIhOptional": _of_way("4*H", "isbias"),
    "bHhOptional": _of_way("4*H", "isbias"), "wIhReverseOptional": _of_way("4*H I", "bidirection"),
    "wHhReverseOptional": _of_way("4*H H", "bidirection"),
    "bIhReverseOptional": _of_way("4*H", "bidirection and isbias"),
    "bHhReverseOptional": _of_way("4*H", "bidirection and isbias"),
}  # fmt: skip
_WAYS: Final[dict[str, Domain]] = {
    "numLayers": only(1, "documents allow one value"), "isbias": flag(True), "batchFirst": flag(),
    "bidirection": flag(True)}  # fmt: skip
_RESULTS: Final[dict[str, Domain]] = dict.fromkeys(("yOut", "outputHOut", "outputCOut"), out("x"))
_TWO_WAYS: Final = sizes(X="B if batchFirst else T", Y="T if batchFirst else B",
                         W="1 + bidirection")  # fmt: skip


@spec("aclnnBidirectionLSTM", _RULE, _CELL_SIZES, _TWO_WAYS, **_BOTH_WAYS, **_WAYS, **_RESULTS)
@spec("aclnnBidirectionLSTMV2", _RULE, _CELL_SIZES, _TWO_WAYS,
      both("given(batchSizeOptional) and packed and bidirection"), **_BOTH_WAYS,
      batchSizeOptional=_PACKED, **_WAYS, packed=flag(True), **_RESULTS)  # fmt: skip
def bidirectional_lstm(
    x: Array, initH: Array, initC: Array, wIh: Array, wHh: Array, bIhOptional: Array | None,
    bHhOptional: Array | None, wIhReverseOptional: Array | None, wHhReverseOptional: Array | None,
    bIhReverseOptional: Array | None, bHhReverseOptional: Array | None, isbias: bool,
    batchFirst: bool, bidirection: bool, batchSizeOptional: Array | None = None,
    packed: bool = False,
) -> tuple[Array, Array, Array]:  # fmt: skip
    cells = [
        [wIh, wHh, bIhOptional, bHhOptional],
        [wIhReverseOptional, wHhReverseOptional, bIhReverseOptional, bHhReverseOptional],
    ]
    weights: Any = [w for cell in cells[: 1 + bidirection] for w in cell[: 4 if isbias else 2]]
    steps = _steps_first(x, batchFirst)
    lives = alive(batchSizeOptional if packed else None, *steps.shape[:2])
    y, last, _ = _network(steps, _cells(weights, isbias), [initH, initC], lives, 1 + bidirection,
                          _lstm_step)  # fmt: skip
    return _steps_first(y, batchFirst), last[0], last[1]
