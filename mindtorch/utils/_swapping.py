"""Owns the exchange of two tensors: each becomes the other, for all who refer to it."""

from __future__ import annotations

import copyreg
from typing import Any

from .._autograd.node import AccumulateGrad
from .._tensor.tensor import Tensor, forget_array

# All but the gradient's edge, whose node refers to its tensor, and the numpy view.
_SLOTS = ("_base", "_creation", "_geom", "_grad", "_names", "_retains", "_storage")
_UNSET = object()


def swap(t1: Tensor, t2: Tensor) -> None:
    """Exchange data, gradients, attributes and classes; RuntimeError for results of functions."""
    slots: Any = vars(copyreg)["_slotnames"]
    if {*slots(type(t1))} != {*slots(type(t2))}:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for tensor in (t1, t2):
        if not isinstance(tensor, Tensor):
            raise AttributeError(f"{type(tensor).__name__!r} object has no attribute '_use_count'")
        if not tensor.is_leaf:
            raise RuntimeError(
                "Cannot swap non-leaf tensors: their history refers to them (grad_fn is"
                f" {tensor.grad_fn})"
            )
    wishes = t1.requires_grad, t2.requires_grad
    for name in _SLOTS:
        one, other = _slot(t1, name), _slot(t2, name)
        _put(t1, name, other)
        _put(t2, name, one)
    forget_array(t1)
    forget_array(t2)
    one, other = dict(t1.__dict__), dict(t2.__dict__)
    for tensor, attributes in ((t1, other), (t2, one)):
        tensor.__dict__.clear()
        tensor.__dict__.update(attributes)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    for tensor, wish in ((t1, wishes[1]), (t2, wishes[0])):
        tensor.requires_grad_(wish)
        if tensor._fn.__class__ is AccumulateGrad:
            tensor._fn.outs = (tensor._geom,)


def _slot(tensor: Tensor, name: str) -> Any:
    try:
        return object.__getattribute__(tensor, name)
    except AttributeError:
        return _UNSET


def _put(tensor: Tensor, name: str, value: Any) -> None:
    if value is not _UNSET:
        object.__setattr__(tensor, name, value)
    elif _slot(tensor, name) is not _UNSET:
        object.__delattr__(tensor, name)
