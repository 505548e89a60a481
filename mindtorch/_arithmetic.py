"""Owns arithmetic whose first argument may be a number, or whose mode picks the row."""

from __future__ import annotations

from typing import Any

from ._dispatch.entry import entry
from ._functional import surface
from ._tensor import Tensor
from .ops.spec import OPS, aten


def _row(name: str, form: str = "function") -> Any:
    return entry(OPS[name], form)


def _with_out(made: Any, out: Any) -> Any:
    return made if out is None else out.copy_(made)


@surface(method=False)
def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """`input` to the power of `exponent`, either of which may be a number."""
    if isinstance(input, Tensor):
        return _row("pow")(input, exponent, out=out)
    return _with_out(_row("pow.Scalar", "aten")(input, exponent), out)


def _pow(self: Tensor, exponent: Any) -> Any:
    """`self` to the power of `exponent`."""
    return _row("pow", "method")(self, exponent)


Tensor.pow = _pow  # type: ignore[attr-defined]


def _div(self: Any, other: Any, rounding_mode: str | None, form: str) -> Any:
    if rounding_mode is None:
        return _row("div", form)(self, other)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found"
            f" '{rounding_mode}'"
        )
    return _row("div.mode", form)(self, other, rounding_mode=rounding_mode)


@surface(name="div", method=False)
def _div_function(
    input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None
) -> Any:
    """`input / other`, rounded towards zero ("trunc") or down ("floor") if asked."""
    if out is None:
        return _div(input, other, rounding_mode, "aten")
    if rounding_mode is None:
        return _row("div")(input, other, out=out)
    return _row("div.mode")(input, other, rounding_mode=rounding_mode, out=out)


@surface(name="div", function=False, internal=False)
def _div_method(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Any:
    """`self / other`; see torch.div."""
    return _div(self, other, rounding_mode, "aten")


@surface(name="div_", function=False, internal=False)
def _div_inplace(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Any:
    """`self /= other`; see torch.div."""
    return _div(self, other, rounding_mode, "inplace")


def _reflected(make: Any) -> Any:
    def operator(self: Tensor, other: Any) -> Any:
        try:
            return make(self, other)
        except TypeError:
            return NotImplemented

    return operator


_REFLECTED = {
    "__rsub__": lambda self, other: aten.rsub(self, other),
    "__rtruediv__": lambda self, other: aten.mul(aten.reciprocal(self), other),
    "__rfloordiv__": lambda self, other: aten.floor_divide(aten.full_like(self, other), self),
    "__rmod__": lambda self, other: aten.remainder(aten.full_like(self, other), self),
    "__rpow__": lambda self, other: aten.pow(other, self),
    "__rlshift__": lambda self, other: aten.bitwise_left_shift(aten.full_like(self, other), self),
    "__rrshift__": lambda self, other: aten.bitwise_right_shift(aten.full_like(self, other), self),
}
for _name, _make in _REFLECTED.items():
    setattr(Tensor, _name, _reflected(_make))
