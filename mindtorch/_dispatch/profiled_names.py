"""Owns the names of torch's operators that profilers see in a row's call, the outer ones first."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, NamedTuple

from .._autograd.grad_mode import LOCAL
from ..ops.aten_overloads import operator_name
from ..ops.spec import Op

_VIEWS = ("expand", "permute", "select", "slice", "squeeze", "transpose", "unsqueeze")
# Rows whose call is several nested operators in torch.
_NESTED = {
    **{name: f"{name} as_strided" for name in _VIEWS},
    "_batch_norm_functional": "batch_norm _batch_norm_impl_index native_batch_norm",
    "_convolution_weight_grad": "convolution_backward",
    "_log_softmax": "log_softmax _log_softmax",
    "_softmax": "softmax _softmax",
    "_to_copy": "to _to_copy copy_",
    "clone": "clone copy_",
    "max_pool2d_with_indices": "max_pool2d max_pool2d_with_indices",
    "native_group_norm": "group_norm native_group_norm",
    "native_layer_norm": "layer_norm native_layer_norm",
    "nll_loss_forward": "nll_loss_nd nll_loss nll_loss_forward",
    "ones": "ones fill_",
    "relu": "relu clamp_min",
    "stack": "stack cat",
    "t": "t transpose as_strided",
    "zeros": "zeros zero_",
}
# What their rows bring already.
_BROUGHT = {"conv1d", "conv2d", "conv3d", *(names.split()[0] for names in _NESTED.values())}


def profiled_whole(op: Op, values: Sequence[Any]) -> Any:
    """A composite's result, of a call that profilers see around those of its rows.

    NotImplemented where they see none: inside that call, and for functions that are no operators
    of torch. A row of the operator's own name is seen itself.
    """
    if LOCAL.entered is op:
        LOCAL.entered = None
        return NotImplemented
    name = operator_name(op)
    if name is None or name in _BROUGHT:
        return NotImplemented
    seen: set[str] = set()
    key, profilers = f"aten::{name}", LOCAL.profilers
    before, LOCAL.entered, start = LOCAL.entered, op, perf_counter()
    LOCAL.profilers = (*profilers, lambda row, *_: seen.add(row))
    try:
        return op.entry("aten")(*values)
    finally:
        stop, LOCAL.entered, LOCAL.profilers = perf_counter(), before, profilers
        for note in profilers if key not in seen else ():
            note(key, start, stop, values)


def _product(left: Any, right: Any) -> str:
    """Which operator torch's matmul calls."""
    if max(left.dim(), right.dim()) == 1:
        return "dot"
    if min(left.dim(), right.dim()) == 1:
        return "mv"
    return "bmm" if right.dim() > 2 else "mm"


class _Shaped(NamedTuple):
    """What a profiler reads of a tensor that the call itself does not make."""

    shape: Sequence[int]


def profiled_args(op: Op, name: str, args: Sequence[Any]) -> Sequence[Any]:
    """The arguments of one of a call's nested operators, of which a profiler notes the shapes."""
    if op.base_name != "linear" or name == "linear":
        return args
    input, weight, bias = args
    transposed = _Shaped(weight.shape[::-1])
    return (bias, input, transposed, 1, 1) if name == "addmm" else (input, transposed)


def profiled_names(op: Op, args: Sequence[Any]) -> Sequence[str]:
    """The nested operators of a call, without `aten::`."""
    name = op.base_name
    if name == "matmul":
        return "matmul", _product(*args[:2])
    if name == "linear":
        fused = args[2] is not None and args[0].is_contiguous()
        return ("linear", "addmm") if fused else ("linear", "matmul", "mm")
    if name == "_linear_backward":
        return ("mm",) * sum(args[3][:2])
    if name == "convolution" and LOCAL.task is None:
        return f"conv{args[1].dim() - 2}d", "convolution", "_convolution"
    return _NESTED.get(name, name).split()
