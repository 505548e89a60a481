"""Rows of what a recurrent cell does with its gates: one kernel a step instead of a dozen."""

from __future__ import annotations

from ...spec import Derivative, in_dtypes
from ...words import *
from ..pointwise.unary import sigmoid

Pair = tuple[Any, Any]


def _opened(gates: Array) -> tuple[Array, Array, Array, Array]:
    """The gates of an LSTM after their functions: input, forget, cell, output."""
    n = gates.shape[-1] // 4
    early = sigmoid(gates[..., : 2 * n])
    new, leave = np.tanh(gates[..., 2 * n : 3 * n]), sigmoid(gates[..., 3 * n :])
    return early[..., :n], early[..., n:], new, leave


def _lstm(gates: Array, cx: Array) -> Pair:
    enter, forget, new, leave = _opened(gates)
    cy = forget * cx + enter * new
    return leave * np.tanh(cy), cy


def _lstm_lower(gates: Tensor, cx: Tensor) -> Pair:
    enter, forget, new, leave = aten.chunk(gates, 4, -1)
    cy = aten.sigmoid(forget) * cx + aten.sigmoid(enter) * aten.tanh(new)
    return aten.sigmoid(leave) * aten.tanh(cy), cy


def _lstm_back(grad_hy: Array, grad_cy: Array, gates: Array, cx: Array, cy: Array) -> Pair:
    enter, forget, new, leave = _opened(gates)
    tanh_c = np.tanh(cy)
    inner = grad_cy + grad_hy * leave * (1 - tanh_c * tanh_c)
    slopes = (
        inner * new * enter * (1 - enter),
        inner * cx * forget * (1 - forget),
        inner * enter * (1 - new * new),
        grad_hy * tanh_c * leave * (1 - leave),
    )
    return np.concatenate(slopes, axis=-1), inner * forget


def _lstm_slopes(grad_hy: Tensor, grad_cy: Tensor, gates: Tensor, cx: Tensor, cy: Tensor) -> Pair:
    """`_lstm_back` of tensors: what devices without the kernel run, and what has derivatives."""
    enter, forget, new, leave = aten.chunk(gates, 4, -1)
    opened = aten.sigmoid(enter), aten.sigmoid(forget), aten.tanh(new), aten.sigmoid(leave)
    return _opened_slopes(grad_hy, grad_cy, opened, cx, cy)


def _opened_slopes(
    grad_hy: Tensor, grad_cy: Tensor, opened: Sequence[Tensor], cx: Tensor, cy: Tensor
) -> Pair:
    enter, forget, new, leave = opened
    tanh_c = aten.tanh(cy)
    inner = grad_cy + aten.tanh_backward(grad_hy * leave, tanh_c)
    slopes = (
        aten.sigmoid_backward(inner * new, enter),
        aten.sigmoid_backward(inner * cx, forget),
        aten.tanh_backward(inner * enter, new),
        aten.sigmoid_backward(grad_hy * tanh_c, leave),
    )
    return aten.cat(slopes, -1), inner * forget


def _lstm_grad(grads: tuple[Tensor, Tensor], gates: Tensor, cx: Tensor, cy: Tensor) -> Pair:
    # What needs a derivative of its own is made of rows that have one.
    recorded = aten._recorded(*grads, gates, cx, cy)
    slopes = _lstm_slopes if recorded else aten._lstm_gates_backward
    pair: Pair = slopes(*grads, gates, cx, cy)
    return pair


def _lstm_rule(gates: Geometry, cx: Geometry) -> tuple[Geometry, Geometry]:
    if gates.shape != (*cx.shape[:-1], 4 * cx.shape[-1]):
        raise RuntimeError(f"gates of {list(gates.shape)} do not fit a state of {list(cx.shape)}")
    return cx.fresh(), cx.fresh()


def _lstm_on_torch(torch: Any) -> Any:
    def cell(gates: Any, cx: Any) -> Pair:
        enter, forget, new, leave = gates.chunk(4, -1)
        cy = forget.sigmoid() * cx + enter.sigmoid() * new.tanh()
        return leave.sigmoid() * cy.tanh(), cy

    return cell


op(
    "_lstm_gates(Tensor gates, Tensor cx) -> (Tensor hy, Tensor cy)",
    infer=_lstm_rule,
    cpu=_lstm,
    lower=_lstm_lower,
    grad={("gates", "cx"): _lstm_grad},
    samples=calls(
        (Arg((2, 12)), Arg((2, 3))),
        (Arg((2, 12), "float64"), Arg((2, 3), "float64")),
        (Arg((8,)), Arg((2,))),
    ),
    oracle=_lstm_on_torch,
    tolerance="composite",
    fixed_shape=True,
)
op(
    "_lstm_gates_backward(Tensor grad_hy, Tensor grad_cy, Tensor gates, Tensor cx, Tensor cy)"
    " -> (Tensor grad_gates, Tensor grad_cx)",
    infer=lambda grad_hy, grad_cy, gates, cx, cy: (gates.fresh(), cx.fresh()),
    cpu=_lstm_back,
    lower=_lstm_slopes,
    samples=calls(
        (Arg((2, 3)), Arg((2, 3)), Arg((2, 12)), Arg((2, 3)), Arg((2, 3))),
    ),
    tolerance="gradient",
    fixed_shape=True,
)


def _cell_lower(x_gates: Tensor, h_gates: Tensor, cx: Tensor) -> tuple[Any, ...]:
    enter, forget, new, leave = aten.chunk(x_gates + h_gates, 4, -1)
    enter, forget, leave = aten.sigmoid(enter), aten.sigmoid(forget), aten.sigmoid(leave)
    new = aten.tanh(new)
    cy = forget * cx + enter * new
    return leave * aten.tanh(cy), cy, aten.cat((enter, forget, new, leave), -1)


def _cell_back(grad_hy: Tensor, grad_cy: Tensor, cx: Tensor, cy: Tensor, opened: Tensor) -> Any:
    gates, cell = _opened_slopes(grad_hy, grad_cy, aten.chunk(opened, 4, -1), cx, cy)
    return gates, cell, aten.sum(gates, (0,))


def _cell_grad(
    grad_hy: Tensor | None, grad_cy: Tensor | None, x_gates: Tensor, h_gates: Tensor, cx: Tensor,
    cy: Tensor, opened: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    by_hy, by_cy = (aten.zeros_like(cx) if g is None else g for g in (grad_hy, grad_cy))
    if aten._recorded(by_hy, by_cy, x_gates, h_gates, cx):
        by_gates, by_cell = _lstm_slopes(by_hy, by_cy, x_gates + h_gates, cx, cy)
    else:
        by_gates, by_cell, _ = aten._lstm_cell_backward(by_hy, by_cy, cx, cy, opened)
    return by_gates, by_gates, by_cell


def _is_one_row_each(name: str) -> Callable[[dict[str, Any]], bool]:
    known = in_dtypes(name, "float32", "float16")
    return lambda a: known(a) and a[name].ndim == 2 and a[name].numel > 0


# One launch a step, where CANN has the cell; `opened` are the gates after their functions.
op(
    "_lstm_cell(Tensor x_gates, Tensor h_gates, Tensor cx) -> (Tensor hy, Tensor cy,"
    " Tensor opened)",
    infer=lambda x_gates, h_gates, cx: (*_lstm_rule(x_gates, cx), x_gates.fresh()),
    lower=_cell_lower,
    aclnn=call(
        "aclnnThnnFusedLstmCell", "x_gates", "h_gates", "cx", None, None, "hy", "cy", "opened",
        when=_is_one_row_each("cx"),
    ),
    grad={
        ("x_gates", "h_gates", "cx"): Derivative(
            _cell_grad, ("grad_hy", "grad_cy", "x_gates", "h_gates", "cx", "cy", "opened")
        )
    },
    unsampled="what it keeps has no gradient: LSTMCell is held against torch",
    fixed_shape=True,
)  # fmt: skip
op(
    "_lstm_cell_backward(Tensor grad_hy, Tensor grad_cy, Tensor cx, Tensor cy, Tensor opened)"
    " -> (Tensor grad_gates, Tensor grad_cx, Tensor grad_bias)",
    infer=lambda grad_hy, grad_cy, cx, cy, opened: (
        opened.fresh(), cx.fresh(), opened.fresh(opened.shape[-1:])
    ),
    lower=_cell_back,
    aclnn=call(
        "aclnnThnnFusedLstmCellBackward", "grad_hy", "grad_cy", "cx", "cy", "opened", True,
        "grad_gates", "grad_cx", "grad_bias", when=_is_one_row_each("cx"),
    ),
    unsampled="reads what _lstm_cell gave: gradients of it run it",
    fixed_shape=True,
)  # fmt: skip


def _gru_gates(x_gates: Array, h_gates: Array) -> tuple[Array, Array, Array, Array]:
    """reset, update, the new gate's part from h, and the new gate, of a GRU."""
    n = x_gates.shape[-1] // 3
    early = sigmoid(x_gates[..., : 2 * n] + h_gates[..., : 2 * n])
    reset, update, hn = early[..., :n], early[..., n:], h_gates[..., 2 * n :]
    return reset, update, hn, np.tanh(x_gates[..., 2 * n :] + reset * hn)


def _gru(x_gates: Array, h_gates: Array, hx: Array) -> Array:
    _, update, _, new = _gru_gates(x_gates, h_gates)
    return new + update * (hx - new)


def _gru_lower(x_gates: Tensor, h_gates: Tensor, hx: Tensor) -> Tensor:
    n = hx.shape[-1]
    (x_early, xn), (h_early, hn) = (aten.split(g, (2 * n, n), -1) for g in (x_gates, h_gates))
    reset, update = aten.chunk(aten.sigmoid(x_early + h_early), 2, -1)
    new = aten.tanh(xn + reset * hn)
    result: Tensor = new + update * (hx - new)
    return result


def _gru_back(grad: Array, x_gates: Array, h_gates: Array, hx: Array) -> tuple[Any, Any, Any]:
    reset, update, hn, new = _gru_gates(x_gates, h_gates)
    to_new = grad * (1 - update) * (1 - new * new)
    to_reset = to_new * hn * reset * (1 - reset)
    to_update = grad * (hx - new) * update * (1 - update)
    by_x = np.concatenate((to_reset, to_update, to_new), axis=-1)
    return by_x, np.concatenate((to_reset, to_update, to_new * reset), axis=-1), grad * update


def _gru_slopes(grad: Tensor, x_gates: Tensor, h_gates: Tensor, hx: Tensor) -> tuple[Any, Any, Any]:
    """`_gru_back` of tensors: what devices without the kernel run, and what has derivatives."""
    (xr, xz, xn), (hr, hz, hn) = aten.chunk(x_gates, 3, -1), aten.chunk(h_gates, 3, -1)
    reset, update = aten.sigmoid(xr + hr), aten.sigmoid(xz + hz)
    new = aten.tanh(xn + reset * hn)
    carry = grad * update
    to_new = aten.tanh_backward(grad - carry, new)
    to_reset = aten.sigmoid_backward(to_new * hn, reset)
    to_update = aten.sigmoid_backward(grad * (hx - new), update)
    by_x = aten.cat((to_reset, to_update, to_new), -1)
    return by_x, aten.cat((to_reset, to_update, to_new * reset), -1), carry


def _gru_grad(
    grad: Tensor, x_gates: Tensor, h_gates: Tensor, hx: Tensor, result: Tensor
) -> tuple[Any, Any, Any]:
    recorded = aten._recorded(grad, x_gates, h_gates, hx)
    slopes = _gru_slopes if recorded else aten._gru_gates_backward
    three: tuple[Any, Any, Any] = slopes(grad, x_gates, h_gates, hx)
    return three


def _gru_rule(x_gates: Geometry, h_gates: Geometry, hx: Geometry) -> Geometry:
    shape = (*hx.shape[:-1], 3 * hx.shape[-1])
    if x_gates.shape != shape or h_gates.shape != shape:
        raise RuntimeError(
            f"gates of {list(x_gates.shape)} and {list(h_gates.shape)} do not fit a state of"
            f" {list(hx.shape)}"
        )
    return hx.fresh()


def _gru_on_torch(torch: Any) -> Any:
    def cell(x_gates: Any, h_gates: Any, hx: Any) -> Any:
        (xr, xz, xn), (hr, hz, hn) = x_gates.chunk(3, -1), h_gates.chunk(3, -1)
        new = (xn + (xr + hr).sigmoid() * hn).tanh()
        return new + (xz + hz).sigmoid() * (hx - new)

    return cell


op(
    "_gru_gates(Tensor x_gates, Tensor h_gates, Tensor hx) -> Tensor",
    infer=_gru_rule,
    cpu=_gru,
    lower=_gru_lower,
    grad={("x_gates", "h_gates", "hx"): _gru_grad},
    samples=calls(
        (Arg((2, 9)), Arg((2, 9)), Arg((2, 3))),
        (Arg((2, 9), "float64"), Arg((2, 9), "float64"), Arg((2, 3), "float64")),
    ),
    oracle=_gru_on_torch,
    tolerance="composite",
    fixed_shape=True,
)
op(
    "_gru_gates_backward(Tensor grad, Tensor x_gates, Tensor h_gates, Tensor hx)"
    " -> (Tensor grad_x, Tensor grad_h, Tensor grad_hx)",
    infer=lambda grad, x_gates, h_gates, hx: (x_gates.fresh(), h_gates.fresh(), hx.fresh()),
    cpu=_gru_back,
    lower=_gru_slopes,
    samples=calls((Arg((2, 3)), Arg((2, 9)), Arg((2, 9)), Arg((2, 3)))),
    tolerance="composite",
    fixed_shape=True,
)
