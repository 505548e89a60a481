"""Rows of one direction of a recurrent layer over all steps: one launch where CANN has the layer.

Inputs are [T, N, I], first states [1, N, H]. Beside the outputs the rows give what the operators
keep of every step for the gradient, [T, N, H] each. Gradients that are recorded, and installs
without the operators, walk the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ...spec import Derivative, in_dtypes
from ...words import *
from .recurrent import _gru_slopes, _lstm_slopes

Tensors = tuple[Any, ...]
_WEIGHTS = ("w_ih", "w_hh", "b_ih", "b_hh")
_SCHEMA = "Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh"
_FLOATS = in_dtypes("input", "float32", "float16")


def _biased(a: dict[str, Any]) -> bool:
    return a["b_ih"] is not None


def _declared(kind: str, names: Iterable[str]) -> str:
    return ", ".join(f"{kind} {name}" for name in names)


def _steps(x: Tensor, states: Tensors, weights: Tensors, gates: int) -> tuple[list[Any], list[Any]]:
    """What every step begins with: (gates of x, gates of h, states), and its states after."""
    w_ih, w_hh, b_ih, b_hh = weights
    begun, ended = [], []
    for x_gates in aten.unbind(aten.linear(x, w_ih, b_ih), 0):
        h_gates = aten.linear(states[0], w_hh, b_hh)
        begun.append((x_gates, h_gates, *states))
        if gates == 4:
            states = aten._lstm_gates(x_gates + h_gates, states[1])
        else:
            states = (aten._gru_gates(x_gates, h_gates, states[0]),)
        ended.append(states)
    return begun, ended


def _weights_back(by_x: list[Any], by_h: list[Any], x: Tensor, before: list[Any],
                  weights: Tensors) -> Tensors:  # fmt: skip
    """Gradients of x, and of each weight, from those of the gates, last step first."""
    x_gates, h_gates = (aten.flatten(aten.stack(g[::-1]), 0, 1) for g in (by_x, by_h))
    dx = aten.reshape(aten.matmul(x_gates, weights[0]), x.shape)
    states = aten.flatten(aten.stack(before), 0, 1)
    to_w = aten.matmul(aten.t(x_gates), aten.flatten(x, 0, 1))
    to_u = aten.matmul(aten.t(h_gates), states)
    biases = (
        (aten.zeros_like(states[:0, 0]),) * 2
        if weights[2] is None
        else (aten.sum(x_gates, (0,)), aten.sum(h_gates, (0,)))
    )
    return dx, to_w, to_u, *biases


def _lstm_walk(input: Tensor, hx: Tensor, cx: Tensor, *weights: Any) -> Tensors:
    begun, ended = _steps(input, (hx[0], cx[0]), weights, 4)
    opened = [aten.chunk(x_gates + h_gates, 4, -1) for x_gates, h_gates, *_ in begun]
    i, f, g, o = (aten.stack([gates[k] for gates in opened]) for k in range(4))
    h, c = (aten.stack([states[k] for states in ended]) for k in range(2))
    trace = (aten.sigmoid(i), aten.tanh(g), aten.sigmoid(f), aten.sigmoid(o), h, c, aten.tanh(c))
    return aten.clone(h), h[-1:], c[-1:], *trace


def _lstm_walk_back(dy: Tensor, dh: Tensor, dc: Tensor, input: Tensor, hx: Tensor, cx: Tensor,
                    *weights: Any) -> Tensors:  # fmt: skip
    weights = weights[:4]  # what the operator keeps is made again
    begun, ended = _steps(input, (hx[0], cx[0]), weights, 4)
    to_h, to_c, rows = dh[0], dc[0], []
    for at in range(len(begun) - 1, -1, -1):
        x_gates, h_gates, _, c = begun[at]
        slopes, to_c = _lstm_slopes(to_h + dy[at], to_c, x_gates + h_gates, c, ended[at][1])
        to_h = aten.matmul(slopes, weights[1])
        rows.append(slopes)
    dx, *to_weights = _weights_back(rows, rows, input, [b[2] for b in begun], weights)
    return dx, aten.unsqueeze(to_h, 0), aten.unsqueeze(to_c, 0), *to_weights


def _gru_walk(input: Tensor, hx: Tensor, *weights: Any) -> Tensors:
    begun, ended = _steps(input, (hx[0],), weights, 3)
    h = aten.stack([states[0] for states in ended])
    x_gates, h_gates = (aten.stack([b[k] for b in begun]) for k in range(2))
    (xr, xz, xn), (hr, hz, hn) = aten.chunk(x_gates, 3, -1), aten.chunk(h_gates, 3, -1)
    reset = aten.sigmoid(xr + hr)
    trace = (reset, aten.sigmoid(xz + hz), aten.tanh(xn + reset * hn), aten.clone(hn), h)
    return aten.clone(h), h[-1:], *trace


def _gru_walk_back(dy: Tensor, dh: Tensor, input: Tensor, hx: Tensor, *weights: Any) -> Tensors:
    weights = weights[:4]
    begun, _ = _steps(input, (hx[0],), weights, 3)
    to_h, by_x, by_h = dh[0], [], []
    for at in range(len(begun) - 1, -1, -1):
        x_gates, h_gates, carry = _gru_slopes(to_h + dy[at], *begun[at])
        to_h = carry + aten.matmul(h_gates, weights[1])
        by_x.append(x_gates)
        by_h.append(h_gates)
    dx, *to_weights = _weights_back(by_x, by_h, input, [b[2] for b in begun], weights)
    return dx, aten.unsqueeze(to_h, 0), *to_weights


def _layer(
    name: str, gates: int, states: tuple[str, ...], trace: tuple[str, ...],
    walk: Callable[..., Tensors], back: Callable[..., Tensors], forward: Any, backward: Any,
) -> None:  # fmt: skip
    """A layer with first states (hx and, for an LSTM, cx), and its gradient."""
    lasts = tuple(f"{s[0]}y" for s in states)
    results, names = ("output", *lasts), ("input", *states, *_WEIGHTS)
    arguments = f"{_declared('Tensor', ('input', *states))}, {_SCHEMA}"

    def infer(input: Geometry, hx: Geometry, *_: Any) -> tuple[Geometry, ...]:
        each = input.fresh((*input.shape[:2], hx.shape[-1]))
        return (each, *(hx.fresh() for _ in lasts), *(each for _ in trace))

    def infer_back(*args: Any) -> tuple[Geometry, ...]:
        input = args[len(results)]
        inputs = args[len(results) : len(results) + len(names)]
        return tuple([input.fresh((0,)) if g is None else g.fresh(g.shape) for g in inputs])

    def samples() -> Iterator[Sample]:
        steps, n, width, hidden = 5, 2, 3, 4
        rows, first = gates * hidden, (Arg((1, n, hidden)),) * len(states)
        for bias in (Arg((rows,)), None):
            weights = (Arg((rows, width)), Arg((rows, hidden)), bias, bias)
            yield Sample((Arg((steps, n, width)), *first, *weights))

    def derivative(*values: Any) -> Tensors:
        grads, rest = values[: len(results)], values[len(results) :]
        inputs, left = rest[: len(names)], rest[len(names) :]
        like = (left[trace.index("h")], *(inputs[1] for _ in lasts))
        grads = tuple(
            [aten.zeros_like(x) if g is None else g for g, x in zip(grads, like, strict=True)]
        )
        recorded = aten._recorded(*grads, *(v for v in inputs if v is not None))
        if recorded:
            derivatives = back(*grads, *inputs)
        else:
            derivatives = getattr(aten, f"_{name}_layer_backward")(*grads, *inputs, *left)
        return tuple([None if i is None else d for d, i in zip(derivatives, inputs, strict=True)])

    def oracle(torch: Any, input: Any, rest: Tensors) -> Tensors:
        first, weights = rest[: len(states)], [w for w in rest[len(states) :] if w is not None]
        begin = first if len(first) > 1 else first[0]
        setting = (len(weights) > 2, 1, 0.0, False, False, False)
        return getattr(torch, name)(input, begin, weights, *setting)

    op(
        f"_{name}_layer({arguments}) -> ({_declared('Tensor', (*results, *trace))})",
        infer=infer,
        lower=walk,
        aclnn=call(*forward, when=_FLOATS),
        grad={names: Derivative(derivative, (*(f"grad_{r}" for r in results), *names, *trace))},
        unsampled=f"what it keeps has no gradient: the samples are of _{name}_layer.states",
        fixed_shape=True,
    )
    composite(
        f"_{name}_layer.states({arguments}) -> ({_declared('Tensor', results)})",
        lambda *inputs: getattr(aten, f"_{name}_layer")(*inputs)[: len(results)],
        samples=samples,
        oracle=lambda torch: lambda input, *rest: oracle(torch, input, rest),
        tolerance="composite",
        fixed_shape=True,
    )
    op(
        f"_{name}_layer_backward({_declared('Tensor', [f'd_{r}' for r in results])}, {arguments},"
        f" {_declared('Tensor', trace)}) -> ({_declared('Tensor', [f'to_{a}' for a in names])})",
        infer=infer_back,
        lower=back,
        aclnn=call(*backward, when=_FLOATS),
        unsampled=f"reads what _{name}_layer gave: gradients of _{name}_layer.states run it",
        fixed_shape=True,
    )


_GRADS = tuple(f"to_{w}" for w in _WEIGHTS)
_LSTM_TRACE = ("i", "g", "f", "o", "h", "c", "tanh_c")
_layer(
    "lstm", 4, ("hx", "cx"), _LSTM_TRACE, _lstm_walk, _lstm_walk_back,
    ("aclnnLSTM", "input", _WEIGHTS, ("hx", "cx"), None, _biased, 1, 0.0, True, False, False,
     "output", "hy", "cy", *((k,) for k in _LSTM_TRACE)),
    ("aclnnLstmBackward", "input", ("hx", "cx"), _WEIGHTS, "d_output", "d_hy", "d_cy",
     *((k,) for k in _LSTM_TRACE), None, _biased, 1, 0.0, True, False, False,
     (True, True, True, True), "to_input", "to_hx", "to_cx", _GRADS),
)  # fmt: skip
_GRU_TRACE = ("r", "z", "n", "hn", "h")
_layer(
    "gru", 3, ("hx",), _GRU_TRACE, _gru_walk, _gru_walk_back,
    ("aclnnGRU", "input", _WEIGHTS, "hx", None, _biased, 1, 0.0, True, False, False,
     "output", "hy", *((k,) for k in _GRU_TRACE)),
    ("aclnnGRUBackward", "input", _WEIGHTS, "hx", "d_output", "d_hy",
     *((k,) for k in _GRU_TRACE), None, _biased, 1, False, False,
     "to_input", "to_hx", _GRADS),
)  # fmt: skip
