"""Owns what torch makes of rows before a mode or a class sees them, and what it sees as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import prod
from typing import Any

from .._autograd.engine import STEP_NAMES, STEPS, PassingStep, steps
from .._autograd.grad_mode import LOCAL
from .._tensor.subclass import DOOR, LOCAL as SUBCLASS
from .._tensor.tensor import Tensor
from ..ops.aten_overloads import Call, call_of_row, operator_name
from ..ops.namespaces import namespace
from ..ops.spec import Op, aten
from .dispatch_modes import COMPOSITES, WHOLE_ROWS, ask, ask_operator, unseen


def _rows(x: Tensor) -> Tensor:
    """`x` as a matrix of its last dimension."""
    return x if x.dim() == 2 else x.reshape(prod(x.shape[:-1]), x.shape[-1])


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """Of the operators that torch makes it of: t, mm or addmm."""
    if bias is None and input.dim() > 2:
        transposed = weight.t()
        product = aten.mm(_rows(input), transposed)
        return _unsafe_view(product, (*input.shape[:-1], weight.shape[0]))
    if bias is not None and input.dim() != 2 and not input.is_contiguous():
        transposed = weight.t()
        if input.dim() == 1:
            return aten.add(aten.mm(input.unsqueeze(0), transposed).squeeze_(0), bias)
        return aten.add(_matmul(input, transposed), bias)
    rows, transposed = _rows(input), weight.t()
    product = aten.mm(rows, transposed) if bias is None else aten.addmm(bias, rows, transposed)
    return product if input.dim() == 2 else product.view(*input.shape[:-1], weight.shape[0])


def _linear_backward(
    grad_output: Tensor, input: Tensor, weight: Tensor, output_mask: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """The products of torch's backward of mm and addmm, and a sum for the bias."""
    transposed, inputs = unseen(aten.t, weight), unseen(_rows, input)
    rows = _rows(grad_output)
    gw = None
    if output_mask[1] and not output_mask[2]:  # mm's order, which is not addmm's
        gw = aten.mm(rows.t(), inputs).t()
    gx = aten.mm(rows, transposed.t()) if output_mask[0] else None
    if output_mask[1] and output_mask[2]:
        gw = aten.mm(rows.t(), inputs).t()
    gb = rows.sum(0, True).view(weight.shape[0]) if output_mask[2] else None
    if not steps():
        gw = None if gw is None else gw.t()
        gx = gx if gx is None or input.dim() == 2 else gx.view(input.shape)
    return gx, gw, gb


def _linear_steps(node: Any, results: Sequence[Any]) -> Sequence[Any]:
    """The weight is transposed, and more than rows are seen as such, before the product is."""
    edges = list(node.edges)
    (to_input, to_weight), (gx, gw) = edges[:2], results[:2]
    if to_weight is not None and gw is not None:
        edges[1] = PassingStep(to_weight, node.seq - 0.4, gw, aten.t), 0
    if to_input is not None and gx is not None and node.args[0].ndim != 2:
        shape = to_input[0].outs[to_input[1]].shape
        before = 0.2 if results[2] is None else 0.6  # as matmul and addmm have it
        view = PassingStep(to_input, node.seq - before, gx, lambda grad: aten.view(grad, shape))
        edges[0] = view, 0
    return edges


def _matmul(input: Tensor, other: Tensor) -> Any:
    """mm or bmm of matrices, folded or broadcast as torch does; NotImplemented for vectors."""
    dims = (input.dim(), other.dim())
    if dims == (2, 2):
        return aten.mm(input, other)
    if dims[0] > 2 and dims[1] == 2:
        product = aten.mm(input.reshape(-1, input.shape[-1]), other)
        return _unsafe_view(product, (*input.shape[:-1], other.shape[1]))
    if min(dims) < 2:
        return NotImplemented
    if LOCAL.task is not None and dims == (3, 3) and input.shape[0] == other.shape[0]:
        return aten.bmm(input, other)  # as the backward of bmm has it
    batch = aten.broadcast_shapes(input.shape[:-2], other.shape[:-2])
    left, right = (
        x.expand(*batch, *x.shape[-2:]).reshape(prod(batch), *x.shape[-2:]) for x in (input, other)
    )
    return _unsafe_view(aten.bmm(left, right), (*batch, input.shape[-2], other.shape[-1]))


def _unsafe_view(x: Tensor, size: Sequence[int]) -> Tensor:
    """A view of memory that nobody else has, which torch makes by an operator of its own."""
    if LOCAL.grad and x._fn is not None:  # the product is recorded, so its view is
        view: Tensor = aten.view(x, tuple(size))
        view._fn.label = "UnsafeViewBackward0"
        return view
    view = ask("_unsafe_view", (x, list(size)), {})
    return view


def _reshape_copy(self: Tensor, size: Sequence[int]) -> Tensor:
    return _unsafe_view(aten.clone(self, memory_format="contiguous"), size)


def _where(condition: Tensor, self: Any, other: Any) -> Any:
    """With numbers as tensors."""
    if isinstance(self, Tensor) and isinstance(other, Tensor):
        return NotImplemented
    like = self if isinstance(self, Tensor) else other
    if not isinstance(like, Tensor):
        return NotImplemented
    dtype = aten.result_type(self, other) if hasattr(aten, "result_type") else like.dtype
    options = {"dtype": dtype, "layout": DOOR["strided"], "device": like.device}
    self, other = (
        v if isinstance(v, Tensor) else ask("scalar_tensor", (v,), options) for v in (self, other)
    )
    return aten.where(condition, self, other)


# Composites that torch writes in Python.
_IN_PYTHON = frozenset((
    "gaussian_nll_loss", "gumbel_softmax", "kl_div", "local_response_norm", "lp_pool1d",
    "lp_pool2d", "lp_pool3d", "multi_head_attention_forward", "multilabel_soft_margin_loss",
    "normalize", "softmin", "softsign", "tanhshrink", "triplet_margin_with_distance_loss",
))  # fmt: skip


def in_c(op: Op, form: str, values: Sequence[Any]) -> Any:
    """A row in Python as a mode sees torch's C++; NotImplemented for what torch has in Python."""
    other = form not in ("function", "method") or len(op.schema.returns) != 1 or LOCAL.autocast
    if other or op.body is None or op.base_name in _IN_PYTHON:
        return NotImplemented
    before, LOCAL.composite = LOCAL.composite, True
    try:
        named = op.body.__kwdefaults__ or {}
        places = values[: len(values) - len(named)]
        return op.body(*places, **dict(zip(named, values[len(places) :], strict=True)))
    finally:
        LOCAL.composite = before


def whole_row(op: Op, values: Sequence[Any]) -> Any:
    """What a mode makes of a row in Python; NotImplemented for one that it sees in parts.

    Inference makes parts of none: it is autograd's layer that torch splits operators in.
    """
    if op.base_name not in WHOLE_ROWS and not LOCAL.inference:
        return NotImplemented
    if op.base_name == "contiguous" and values[0].is_contiguous():
        return NotImplemented
    call = None if operator_name(op) is None else call_of_row(op, "", values)
    if call is None:
        return NotImplemented
    return NotImplemented if op.body is None else ask_recorded(call, op.body, values)


def ask_recorded(call: Call, body: Callable[..., Any], values: Sequence[Any]) -> Any:
    """What a mode makes of an operator; tensors with a history have that of `body`, unseen."""
    parts = chain.from_iterable(v if isinstance(v, tuple | list) else (v,) for v in values)
    wants_history = LOCAL.grad and any(isinstance(v, Tensor) and v._fn is not None for v in parts)
    if wants_history and SUBCLASS.below:  # wrappers have no values to make one of
        return body(*values)
    result = ask_operator(*call)
    if not wants_history:
        return result
    history = unseen(body, *values)
    several = isinstance(history, Sequence)
    pairs = list(zip(history, result, strict=True)) if several else [(history, result)]
    pairs = [(old, new) for old, new in pairs if old is not None]
    if any(type(new) is not Tensor or new._geom is not old._geom for old, new in pairs):
        return result  # what a mode makes of another kind has no history
    for old, new in pairs:
        unseen_memory, old._storage = old._storage, new._storage
        for entry in getattr(old._fn, "saved", None) or ():  # what the node keeps of its results
            part = entry[0] if isinstance(entry, tuple) and entry else None
            if isinstance(part, Tensor) and part._storage is unseen_memory:
                part._storage = new._storage
    return history


def _asked_recorded(
    name: str, body: Callable[..., Any], values: Sequence[Any], named: dict[str, Any] | None = None
) -> Any:
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(namespace("aten"), packet), overload)
    return ask_recorded((operator, tuple(values), named or {}), body, values)


aten.publish("_asked_recorded", _asked_recorded)


def _unbind(self: Tensor, dim: int = 0) -> Any:
    """What goes back through a stack is selected, tensor by tensor."""
    if getattr(getattr(LOCAL.node, "op", None), "name", "") != "stack":
        return NotImplemented
    return [aten.select(self, dim, i) for i in range(self.shape[dim])]


def _checked(operator: str, name: str) -> Callable[..., Any]:
    """A factorization, and a look at whether it failed."""

    def call(self: Tensor, *args: Any) -> Any:
        result, *_, info = ask(operator, (self, *args), {})
        ask("_linalg_check_errors", (info, name), {"is_matrix": self.dim() == 2})
        return result

    return call


def _first(operator: str, count: int = 1) -> Callable[..., Any]:
    """What an operator with more results than its row gives first."""

    def call(*args: Any) -> Any:
        result = ask(operator, args, {})
        return result[0] if count == 1 else tuple(result[:count])

    return call


def _svd(self: Tensor, full_matrices: bool = True, driver: str | None = None) -> Any:
    named = {} if driver is None else {"driver": driver}
    return tuple(ask("_linalg_svd", (self, True)[: 1 + full_matrices], named))


def _eigh(self: Tensor, half: str = "L") -> Any:
    return tuple(ask("_linalg_eigh", (self, half)[: 1 + (half != "L")], {}))


def _cross(self: Tensor, other: Tensor, dim: int) -> Any:
    last = dim in (-1, max(self.dim(), other.dim()) - 1)
    return ask("linalg_cross", (self, other), {} if last else {"dim": dim})


def _isfinite(self: Tensor) -> Any:
    infinite = aten.ne(aten.abs(self), float("inf"))
    return aten.mul(aten.eq(self, self), infinite)


STEPS["linear"] = _linear_steps
STEP_NAMES["linear"] = {1: "TBackward0"}  # of the weight
COMPOSITES.update(
    linear=_linear, _linear_backward=_linear_backward, matmul=_matmul,
    _reshape_copy=_reshape_copy, unbind=_unbind, where=_where, _cross=_cross, isfinite=_isfinite,
    linalg_inv=_checked("linalg_inv_ex", "linalg.inv"), linalg_svd=_svd, linalg_eigh=_eigh,
    _linalg_solve=_checked("_linalg_solve_ex", "torch.linalg.solve"),
    _linalg_cholesky=_checked("linalg_cholesky_ex", "linalg.cholesky"),
    linalg_det=_first("_linalg_det"), linalg_slogdet=_first("_linalg_slogdet", 2),
    log_sigmoid=_first("log_sigmoid_forward"),
)  # fmt: skip
