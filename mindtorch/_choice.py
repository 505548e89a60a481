"""Owns where, clamp and their like, whose forms torch tells apart by what is given."""

from __future__ import annotations

from typing import Any

from ._dispatch.entry import entry
from ._functional import surface
from ._tensor import Tensor
from .ops.spec import OPS, aten


def _row(name: str, form: str = "aten") -> Any:
    return entry(OPS[name], form)


@surface(method=False)
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """`input` where `condition`, else `other`; with one argument, the indices of what is true."""
    if input is None and other is None:
        return aten.nonzero(condition, as_tuple=True)
    return _row("where", "function")(condition, input, other, out=out)


@surface(name="where", function=False, internal=False)
def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """`self` where `condition`, else `other`."""
    return _row("where")(condition, self, other)  # type: ignore[no-any-return]


def _clamped(self: Tensor, low: Any, high: Any, form: str) -> Tensor:
    if not isinstance(low, Tensor) and not isinstance(high, Tensor):
        return _row("clamp", form)(self, low, high)  # type: ignore[no-any-return]
    for name, bound in (("clamp_min.Tensor", low), ("clamp_max.Tensor", high)):
        if bound is not None:
            tensor = bound if isinstance(bound, Tensor) else aten.full_like(self, bound)
            self = _row(name, form)(self, tensor)
    return self


@surface(method=False)
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """Values below `min` become `min`, above `max` `max`; the bounds are numbers or tensors."""
    made = _clamped(input, min, max, "aten")
    return made if out is None else out.copy_(made)


@surface(name="clamp", function=False, internal=False)
def _clamp_method(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """torch.clamp."""
    return _clamped(self, min, max, "aten")


@surface(function=False, internal=False)
def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """torch.clamp, in place."""
    return _clamped(self, min, max, "inplace")


def _publish_bounds() -> None:
    """clamp_min, clamp_max and clip, in their three forms each."""
    forms = {"clip": None, "clamp_min": "min", "clamp_max": "max"}
    for name, only in forms.items():
        _publish_bound(name, only)


def _publish_bound(name: str, only: str | None) -> None:
    def function(input: Tensor, *bounds: Any, out: Any = None, **named: Any) -> Tensor:
        return clamp(input, *_pair(only, bounds, named), out=out)

    def method(self: Tensor, *bounds: Any, **named: Any) -> Tensor:
        return _clamped(self, *_pair(only, bounds, named), "aten")

    def inplace(self: Tensor, *bounds: Any, **named: Any) -> Tensor:
        return _clamped(self, *_pair(only, bounds, named), "inplace")

    for fn, suffix in ((function, ""), (method, ""), (inplace, "_")):
        fn.__name__ = fn.__qualname__ = name + suffix
        fn.__doc__ = "torch.clamp" + (f" with `{only}` alone." if only else ".")
        surface(function=fn is function, method=fn is not function)(fn)


def _pair(only: str | None, bounds: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
    if only is None:
        given = dict(zip(("min", "max"), bounds, strict=False)) | named
        return given.get("min"), given.get("max")
    bound = bounds[0] if bounds else named[only]
    return (bound, None) if only == "min" else (None, bound)


_publish_bounds()
