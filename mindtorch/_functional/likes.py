"""Owns the factories that take after a tensor: `zeros_like`, `new_full` … and their kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from .._autograd.grad_mode import LOCAL, MODES
from .._compat.argument_errors import SIGNS, class_name, parsed
from .._compat.missing_args import UNGIVEN
from .._dispatch.dispatch_modes import factory_call
from .._dispatch.overrides import hand_over, overriding
from .._tensor.device import resolve
from .._tensor.dtype import dtype as Dtype, refuse_no_dtype
from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor
from .._tensor.types import Number
from ..ops.rules import NUMBERS, laid_out
from .creation import (
    copied,
    empty,
    empty_strided,
    finish,
    full,
    is_sparse,
    ones,
    refuse_options,
    row_entry,
    tensor,
    uninitialised,
    zeros,
)
from .publish import FUNCTIONS, surface


def _like(name: str, make: Callable[..., Any] | None) -> Callable[..., Any]:
    def like(
        input: Tensor = UNGIVEN,
        *args: Any,
        dtype: Dtype | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
        pin_memory: bool = False,
    ) -> Any:
        if len(args) != (name == "full_like"):
            raise TypeError(f"{name}: {len(args)} values")
        if input.__class__ is not Tensor and (kinds := overriding((input,))):
            named = {"dtype": dtype, "layout": layout, "device": device,
                     "requires_grad": requires_grad, "memory_format": memory_format}  # fmt: skip
            options = {k: v for k, v in named.items() if v is not None and v is not False}
            return hand_over(FUNCTIONS[name], kinds, (input, *args), options)
        if dtype is not None and dtype.__class__ is not Dtype:
            dtype = refuse_no_dtype(dtype, name, "dtype", 0)
        try:
            geom = input._geom
            if memory_format is not None or dtype is not None or not geom.contiguous or geom.offset:
                geom = laid_out(geom, memory_format, dtype)
        except AttributeError:
            raise _no_tensor(name, input) from None
        if device is not None:
            geom = geom.on(resolve(device))
        if is_sparse(layout) and name == "zeros_like":
            return zeros(geom.shape, dtype=geom.dtype, layout=layout, device=geom.device,
                         requires_grad=requires_grad)  # fmt: skip
        if geom.contiguous and make is not None:
            result = make(geom, *args)
            if result._geom.strides != geom.strides:  # of dims of one element
                result._geom = geom
        else:
            result = uninitialised(geom)
            if make is not None:
                result.copy_(make(geom, *args))
        return finish(result, requires_grad)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = f"torch.{name[:-5]} with the shape, dtype and device of `input`."
    return parsed(first=refuse_options)(like)


def _no_tensor(name: str, value: Any) -> TypeError:
    if value is UNGIVEN:
        return TypeError(f'{name}() missing 1 required positional arguments: "input"')
    return TypeError(
        f"{name}(): argument 'input' (position 1) must be Tensor, not {class_name(value)}"
    )


def _new_full(geom: Geometry, value: Number) -> Tensor:
    make = row_entry("full") if value.__class__ in NUMBERS else full
    return make(geom.shape, value, dtype=geom.dtype, device=geom.device)


zeros_like = surface(name="zeros_like", method=False)(
    _like("zeros_like", lambda g: row_entry("zeros")(g.shape, dtype=g.dtype, device=g.device))
)
ones_like = surface(name="ones_like", method=False)(
    _like("ones_like", lambda g: row_entry("ones")(g.shape, dtype=g.dtype, device=g.device))
)
_filled_like = _like("full_like", _new_full)


@surface(name="full_like", method=False)
def full_like(
    input: Tensor,
    fill_value: Number,
    *,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    pin_memory: bool = False,
) -> Any:
    """A tensor of the input's size, dtype and device where no other is named, filled."""
    return _filled_like(
        input, fill_value, dtype=dtype, layout=layout, device=device,
        requires_grad=requires_grad, memory_format=memory_format, pin_memory=pin_memory,
    )  # fmt: skip


empty_like = surface(name="empty_like", method=False)(_like("empty_like", None))


def _new(make: Callable[..., Any], name: str) -> None:
    plain = make.__dict__.get("parsed", (make,))[0]

    def new(
        self: Tensor, *size: Any, dtype: Any = None, device: str | None = None, **kwargs: Any
    ) -> Tensor:
        if MODES.active and LOCAL.dispatches:
            options = {"dtype": dtype, "device": device, **kwargs}
            result = factory_call(name, (self, *size), options)
            if result is not NotImplemented:
                return cast("Tensor", result)
        if kwargs:
            refuse_options(kwargs)
        geom = self._geom
        kind, where = dtype or geom.dtype, device or geom.device
        of_tensor = make is tensor and len(size) == 1 and isinstance(size[0], Tensor)
        if of_tensor and isinstance(kind, Dtype) and kwargs.keys() <= {"requires_grad"}:
            wants = bool(kwargs.get("requires_grad", False))
            return copied(size[0], kind, where, wants, "tensor.new_tensor")
        try:
            return plain(*size, dtype=kind, device=where, **kwargs)
        except SIGNS:
            pass  # the function's own words
        try:
            return make(*size, dtype=kind, device=where, **kwargs)
        except RuntimeError:
            if make is zeros:  # in the words of the others
                return empty(*size, dtype=kind, device=where)
            raise
        except TypeError as error:
            text = str(error)
            if not text.startswith(make.__name__ + "()"):
                raise
            raise TypeError("new_" + text) from None

    new.__name__ = new.__qualname__ = name
    new.__doc__ = f"torch.{name[4:]} with the dtype and device of `self`."
    surface(name=name, function=False, internal=False)(parsed(method=True)(new))


for _make, _name in (
    (zeros, "new_zeros"),
    (ones, "new_ones"),
    (empty, "new_empty"),
    (empty_strided, "new_empty_strided"),
    (full, "new_full"),
    (tensor, "new_tensor"),
):
    _new(_make, _name)
