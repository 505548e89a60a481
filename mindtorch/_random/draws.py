"""Owns torch's random functions: factories, in-place fills and draws from given probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import inf, log1p, pi, prod, sqrt
from typing import Any

import numpy as np

from .._autograd.function import BackwardCFunction, Function, FunctionNode
from .._autograd.grad_mode import LOCAL, MODES
from .._autograd.layer import refuse_written
from .._backends.registry import registry
from .._compat.argument_errors import parsed
from .._dispatch.dispatch_modes import fills_by_mode
from .._dispatch.out import warn_of_resize
from .._dispatch.overrides import hand_over, overriding
from .._dispatch.profiled_names import profiled_function
from .._functional.creation import (
    finish,
    from_array,
    kind_of,
    refuse_options,
    refuse_sparse,
    sizes_of,
    write_out,
)
from .._functional.publish import FUNCTIONS, surface
from .._tensor import dtype as dt
from .._tensor.device import CPU, DeviceLike, device as Device, resolve
from .._tensor.dtype import dtype as Dtype
from .._tensor.geometry import Geometry, contiguous
from .._tensor.host_values import host_values
from .._tensor.tensor import MOST_DIMS, TOO_MANY_DIMS, Tensor, adopt
from .._tensor.types import Array, Shape
from ..ops.rules import broadcast, c_name, preserved, scalar_name
from ..ops.spec import aten
from . import mt19937 as _draw, sequential
from .generator import Generator, default_generator, refuse_batches


def _source(generator: Generator | None, device: Device) -> Generator:
    if generator is None:
        return default_generator(device)
    if generator.device.type != device.type:
        raise RuntimeError(
            f"Expected a '{device.type}' device type for generator but found"
            f" '{generator.device.type}'"
        )
    return generator


def _draw_into(
    kind: str,
    size: tuple[int, ...],
    params: tuple[Any, ...],
    dtype: Dtype,
    device: DeviceLike | None,
    generator: Generator | None,
) -> Tensor:
    """A new tensor of draws: by the device's own operator, by numpy on cpu, nothing on meta."""
    device = resolve(device)
    geom = contiguous(size, dtype, device)  # refuses sizes that no tensor has
    if dtype.is_complex:
        # Real and imaginary parts are drawn apart; a normal one's variance is halved between them.
        if kind == "normal":
            params = (params[0], params[1] / sqrt(2))
        parts = _draw_into(kind, (*size, 2), params, dtype.to_real(), device, generator)
        return aten.clone(aten.view_as_complex(parts))
    if device.type == "meta":
        return aten.empty(size, dtype=dtype, device=device)
    if len(size) > MOST_DIMS:
        raise RuntimeError(TOO_MANY_DIMS)
    source = _source(generator, device)
    n = prod(size)
    if device.type != "cpu":
        if kind == "integers":  # an int64, which the end of all int64 is not
            params = (params[0], min(params[1], (1 << 63) - 1))  # and no count of words
        seed, offset = source.advance(n)
        row = getattr(aten, {"uniform": "_uniform", "normal": "_normal", "integers": "_integers",
                             "permutation": "_permutation"}[kind])  # fmt: skip
        return row(size, *params, seed, offset, dtype, device)
    try:
        return adopt(geom, _permuted(kind, source, n, dtype, params).reshape(size))
    except MemoryError as error:  # torch's class
        raise RuntimeError(
            f"cpu allocator: can't allocate memory: {error}; ask for less"
        ) from error


def _permuted(kind: str, source: Generator, n: int, dtype: Dtype, params: Sequence[Any]) -> Array:
    if kind == "normal one by one":
        return _draw.normal_one_by_one(source, n, dtype.np, *params)
    if kind in ("uniform", "normal"):
        values: Array = getattr(_draw, kind)(source, n, dtype.np, *params)
        return values
    if kind == "integers":
        return _draw.integers(source, n, *params).astype(dtype.np)
    order = sequential.permutation if sequential.BUILT else _draw.permutation
    return order(source, n).astype(dtype.np)


_NAMES = {"check_uniform_bounds": "rand", "normal_kernel_cpu": "randn"}


def _float_dtype(dtype: Dtype | None, kernel: str) -> Dtype:
    """The dtype, or the default one; torch's refusal of integers, which names its kernel."""
    float_dtype = dt.resolve(dtype, _NAMES.get(kernel, kernel))
    _ = float_dtype.np  # raises where there are no tensors of this type
    if not (float_dtype.is_floating_point or float_dtype.is_complex) or float_dtype in dt.STORED:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{float_dtype.legacy}'")
    return float_dtype


def _finished(tensor: Tensor, out: Tensor | None, requires_grad: bool) -> Tensor:
    if out is not None:
        return write_out(out, tensor)
    return finish(tensor, requires_grad)


@surface(method=False)
@parsed(first=refuse_options)
def rand(
    *size: Any, generator: Generator | None = None, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    **named: Any,
) -> Tensor:  # fmt: skip
    """Uniform draws from [0, 1)."""
    refuse_sparse(layout, "uniform_")
    kind = _float_dtype(kind_of("rand", dtype, out), "check_uniform_bounds")
    shape = sizes_of(size, "rand", named)
    if out is not None and tuple(out.shape) == shape:  # the order of draws is that of its memory
        return uniform_(out, generator=generator)
    draws = _draw_into("uniform", shape, (0.0, 1.0), kind, device, generator)
    return _finished(draws, out, requires_grad)


@surface(method=False)
@parsed(first=refuse_options)
def randn(
    *size: Any, generator: Generator | None = None, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    **named: Any,
) -> Tensor:  # fmt: skip
    """Draws from the standard normal distribution."""
    refuse_sparse(layout, "normal_")
    kind = _float_dtype(kind_of("randn", dtype, out), "normal_kernel_cpu")
    shape = sizes_of(size, "randn", named)
    if out is not None and tuple(out.shape) == shape:  # the order of draws is that of its memory
        return normal_(out, generator=generator)
    draws = _draw_into("normal", shape, (0.0, 1.0), kind, device, generator)
    return _finished(draws, out, requires_grad)


@surface(method=False)
@parsed(first=refuse_options)
def randint(
    low: int | None = None, high: Any = None, size: Sequence[int] | None = None, *,
    generator: Generator | None = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Integers from [low, high), or from [0, low) where `high` is left out."""
    refuse_sparse(layout, "random_.from")
    if size is None:  # randint(high, size); without a `low` by name
        low, high, size = None, low, high
    elif high is None:
        low, high = None, low
    absent = [name for name, value in (("high", high), ("size", size)) if value is None]
    if absent:
        names = ", ".join(f'"{name}"' for name in absent)
        raise TypeError(f"randint() missing {len(absent)} required positional argument: {names}")
    if isinstance(size, int):
        place = 2 + (low is not None)
        raise TypeError(
            f"randint(): argument 'size' (position {place}) must be tuple of ints, not int"
        )
    assert high is not None
    low, high = int(low or 0), int(high)
    kind = kind_of("randint", dtype, out) or dt.int64
    _refuse_range(low, high, kind)
    draws = _draw_into(
        "integers", sizes_of((size,), "randint"), (low, high), kind, device, generator
    )
    return _finished(draws, out, requires_grad)


# Whole numbers that a dtype tells apart.
_COUNTED = {dt.float16: (1 << 11) + 1, dt.float32: (1 << 24) + 1, dt.float64: (1 << 53) + 1}


@surface(method=False)
@parsed(first=refuse_options)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """0…n-1 in random order."""
    kind = kind_of("randperm", dtype, out) or dt.int64
    if kind is dt.bool:
        raise NotImplementedError("\"randperm\" not implemented for 'Bool'")
    if n > _COUNTED.get(kind, n):
        raise RuntimeError(
            f"n cannot be greater than {_COUNTED[kind]} for {scalar_name(kind)} type."
        )
    if kind.category == dt.INTEGER and n > dt.iinfo(kind).max:
        raise RuntimeError(f"value cannot be converted to type {kind.np.name}_t without overflow")
    draws = _draw_into("permutation", (n,), (), kind, device, generator)
    return _finished(draws, out, requires_grad)


def _like(name: str, fill: Callable[..., Tensor], kind: str = "") -> None:
    """`torch.name`; `kind` names the draws that a native loop may put there at once."""
    least, most = {"randint_like": (1, 2)}.get(name, (0, 0))

    def like(
        input: Tensor, *args: int, dtype: Dtype | None = None, device: DeviceLike | None = None,
        requires_grad: bool = False, **_: object,
    ) -> Any:  # fmt: skip
        if not least <= len(args) <= most:
            raise TypeError(f"{name}: {len(args)} bounds")
        if input.__class__ is not Tensor and (kinds := overriding((input,))):
            options = {"dtype": dtype or input.dtype, "device": device or input.device,
                       "requires_grad": requires_grad}  # fmt: skip
            return hand_over(FUNCTIONS[name], kinds, (input, *args), options)
        bounds = args if len(args) != 1 else (0, *args)
        geometry = input._geom
        if dtype is not None or geometry.offset or not geometry.contiguous:
            geometry = preserved(geometry, dtype and dt.resolve(dtype, name))
        if device is not None:
            geometry = geometry.on(resolve(device))
        result = registry.backend(geometry.device).allocate(geometry)
        if kind and not MODES.active and sequential.fill(None, kind, result, 0.0, 1.0):
            return finish(result, requires_grad)
        return finish(fill(result, *bounds), requires_grad)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = f"torch.{name.removesuffix('_like')} of the shape, dtype and device of `input`."
    surface(method=False)(parsed()(like))


def _memory_order(geom: Geometry) -> list[int]:
    """The dims as a fill goes through them: on cpu in the order of memory, as torch's kernels."""
    if geom.contiguous or geom.device.type != "cpu":
        return list(range(geom.ndim))
    return sorted(range(geom.ndim), key=lambda dim: -geom.strides[dim])


def _sizes_in_order(geom: Geometry) -> tuple[int, ...]:
    if geom.contiguous:
        return geom.shape
    return tuple(geom.shape[dim] for dim in _memory_order(geom))


def _put(self: Tensor, draws: Tensor) -> Tensor:
    """Writes draws of `_sizes_in_order` into the tensor."""
    order = [] if self._geom.contiguous else _memory_order(self._geom)
    if order != sorted(order):
        draws = aten.permute(draws, [order.index(dim) for dim in range(len(order))])
    return self.copy_(draws)


_FLOATING = ("uniform", "normal")


def _writes_directly(tensor: Tensor, generator: Generator | None) -> bool:
    """Whether a plain cpu tensor takes draws in the order of its memory, and nothing looks on."""
    geom = tensor._geom
    return (
        geom.device is CPU and geom.contiguous and tensor._fn is None and not MODES.active
        and (generator is None or generator.device is CPU)
    )  # fmt: skip


def _refill(
    self: Tensor, kind: str, params: tuple[Any, ...], generator: Generator | None
) -> Tensor:
    if MODES.active and LOCAL.profilers:
        name = {"integers": "random"}.get(kind, kind)
        refilled: Tensor = profiled_function(
            f"{name}_", _refill, (self, kind, params, generator), {}
        )
        return refilled
    if kind in _FLOATING and sequential.fill(generator, kind, self, *params):
        return self
    geom = self._geom
    if kind == "integers" and _writes_directly(self, generator):
        numbers = _draw.integers(generator or default_generator(CPU), geom.numel, *params)
        np.copyto(self._array, numbers.reshape(geom.shape), "unsafe")
        self._storage.value += 1
        return self
    if geom.dtype.is_complex and not geom.contiguous:  # a normal one: its parts are drawn apart
        parts = (params[0], params[1] / sqrt(2))
        _refill(aten.view_as_real(self), kind, parts, generator)
        return self
    if kind == "normal" and not geom.contiguous and geom.device.type == "cpu":
        kind = "normal one by one"
    draws = _draw_into(kind, _sizes_in_order(geom), params, geom.dtype, geom.device, generator)
    return _put(self, draws)


def _bounds(
    args: tuple[Any, ...], named: dict[str, Any], low: float, high: float | None
) -> tuple[Any, Any]:
    if not named:
        return (*args, low, high)[:2] if len(args) != 1 else (args[0], high)
    bounds = dict(zip(("from", "to"), args, strict=False)) | named
    unknown = set(bounds) - {"from", "to"}
    if unknown:
        raise TypeError(f"got an unexpected keyword argument '{unknown.pop()}'")
    return bounds.get("from", low), bounds.get("to", high)


@cache
def _largest(dtype: Dtype) -> float:
    return float(dt.finfo(dtype).max)


@surface(function=False)
@parsed(method=True)
def uniform_(
    self: Tensor, *args: float, generator: Generator | None = None, **named: float
) -> Tensor:
    """Fill with draws from [from, to), by default [0, 1)."""
    refuse_written(self)
    low, high = _bounds(args, named, 0.0, 1.0)
    dtype = self._geom.dtype
    if dtype.category < dt.FLOAT:
        name = scalar_name(dtype)
        raise NotImplementedError(f"\"check_uniform_bounds\" not implemented for '{name}'")
    most = _largest(dtype)
    for name, bound in (("from", low), ("to", high)):
        if not -most <= bound <= most:
            raise RuntimeError(f"{name} is out of bounds for {c_name(dtype)}")
    if high - low > most:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{scalar_name(dtype)}>::max(), but"
            f" found to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if fills_by_mode(self, "uniform_", (low, high), (0.0, 1.0), generator):
        return self
    return _refill(self, "uniform", (float(low), float(high)), generator)


@surface(function=False)
@parsed(method=True)
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with draws from a normal distribution."""
    refuse_written(self)
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    _float_dtype(self.dtype, "normal_kernel_cpu")
    if fills_by_mode(self, "normal_", (mean, std), (0.0, 1.0), generator):
        return self
    return _refill(self, "normal", (float(mean), float(std)), generator)


@surface(function=False)
@parsed(method=True)
def random_(
    self: Tensor, *args: float, generator: Generator | None = None, **named: float
) -> Tensor:
    """Fill with integers: from [from, to), or all that the dtype holds."""
    refuse_written(self)
    if len(args) == 1 and not named:
        args = (0, args[0])
    low, high = _bounds(args, named, 0, None)
    dtype = self._geom.dtype
    if high is not None:
        _refuse_range(low, high, dtype)
        overload, numbers = ("to", (high,)) if low == 0 else ("from", (low, high))
        if fills_by_mode(self, f"random_.{overload}", numbers, (), generator):
            return self
        return _refill(self, "integers", (low, high), generator)
    if dtype.category is dt.COMPLEX:
        raise NotImplementedError(f"\"random_kernel_cpu\" not implemented for '{dtype.legacy}'")
    high = _span(dtype)
    _refuse_range(low, high, dtype)
    if fills_by_mode(self, "random_", (), (), generator):
        return self
    return _refill(self, "integers", (low, high, dtype in (dt.int64, dt.float64)), generator)


_like("rand_like", uniform_, "uniform")
_like("randn_like", normal_, "normal")
_like("randint_like", random_)


@cache
def _range(dtype: Dtype) -> tuple[float, float]:
    if dtype.category is dt.FLOAT:
        return -_largest(dtype), _largest(dtype)
    return (0, 1) if dtype is dt.bool else (dt.iinfo(dtype).min, dt.iinfo(dtype).max)


def _refuse_range(low: int, high: int, dtype: Dtype) -> None:
    """RuntimeError in torch's words for bounds without numbers, or past an integer dtype's."""
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if dtype.category is dt.COMPLEX:
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    least, most = _range(dtype)
    for name, value in (("from", low), ("to - 1", high - 1)):
        if not least <= value <= most:
            raise RuntimeError(f"{name} is out of bounds for {c_name(dtype)}")


def _span(dtype: Dtype) -> int:
    digits = {dt.float32: 24, dt.float64: 53, dt.float16: 11, dt.bfloat16: 8}
    if dtype in digits:
        return (1 << digits[dtype]) + 1
    return (
        2
        if dtype is dt.bool
        else int(np.iinfo(dtype.np).max) + 1
        if dtype is not dt.int64
        else 1 << 63
    )


class _Draws(Function):
    """Draws whose parameters get gradients of zero, under the name of torch's node."""

    @staticmethod
    def forward(
        ctx: FunctionNode, draw: Callable[[], Tensor], label: str, *parameters: Tensor | float
    ) -> Tensor:
        ctx.label = label
        ctx.save_for_backward(*(p if isinstance(p, Tensor) else None for p in parameters))
        return draw()

    @staticmethod
    def backward(ctx: FunctionNode, grad: Tensor) -> tuple[Tensor | None, ...]:
        zeros = (None if p is None else aten.zeros_like(p) for p in ctx.saved_tensors)
        return (None, None, *zeros)


_Draws._node_class = type("Draws", (BackwardCFunction,), {"_function": _Draws, "__module__": ""})


def with_zero_gradients(draw: Callable[[], Tensor], label: str, *parameters: Any) -> Tensor:
    """What `draw` gives; where a parameter requires gradients, with a node that sends zeros."""
    if not LOCAL.grad or not any(isinstance(p, Tensor) and p.requires_grad for p in parameters):
        return draw()
    draws = _Draws.apply(draw, label, *parameters)
    assert isinstance(draws, Tensor)
    return draws


@surface(function=False)
@parsed(method=True)
def bernoulli_(
    self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Fill with ones with probability `p` (a number or a tensor), else zeros."""
    refuse_written(self)
    if isinstance(p, Tensor):
        _refuse_chances(p)
        p = p.expand(self.shape)
    elif not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if self.is_complex():
        name = "tensor_cpu_self_" if isinstance(p, Tensor) else "scalar_cpu_"
        raise NotImplementedError(f"\"bernoulli_{name}\" not implemented for '{self.dtype.legacy}'")
    overload, defaults = ("Tensor", ()) if isinstance(p, Tensor) else ("float", (0.5,))
    if fills_by_mode(self, f"bernoulli_.{overload}", (p,), defaults, generator):
        return self
    if not isinstance(p, Tensor) and sequential.fill(generator, "bernoulli", self, p):
        return self
    return _put(self, _bernoulli(self._geom, p, generator))


def _bernoulli(geom: Geometry, p: Tensor | float, generator: Generator | None) -> Tensor:
    """Draws for a tensor of `geom`, of `_sizes_in_order`."""
    if geom.device.type == "cpu":
        chance: Any = float(p) if not isinstance(p, Tensor) else p._array
        digits = np.float64 if getattr(chance, "itemsize", 8) == 8 else np.float32
        sizes = _sizes_in_order(geom)
        draws = _draw.unit(_source(generator, CPU), geom.numel, np.dtype(digits)).reshape(sizes)
        if isinstance(p, Tensor):
            if chance.dtype != digits:
                chance = chance.astype(digits)
            if p._geom is not geom or not geom.contiguous:
                chance = np.broadcast_to(chance, geom.shape).transpose(_memory_order(geom))
        hits = (draws < chance).astype(geom.dtype.np)
        return adopt(contiguous(sizes, geom.dtype, CPU), hits)
    u = _draw_into("uniform", tuple(geom.shape), (0.0, 1.0), dt.float32, geom.device, generator)
    return aten.lt(u, p)


_least, _most = np.minimum.reduce, np.maximum.reduce  # without numpy's frames in Python


def _refuse_chances(p: Tensor) -> None:
    """RuntimeError for probabilities that the host knows, outside of [0, 1]; no wait for others."""
    known = host_values(p)
    if known is None or not p.numel():
        return
    chances = known._array
    if not (_least(chances, None) >= 0 and _most(chances, None) <= 1):  # NaN is neither
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message"
            " be improved?  If so, please report an enhancement request to PyTorch.)"
        )


@surface()
@parsed()
def bernoulli(
    input: Tensor,
    p: Tensor | float | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Ones with the probabilities in `input` (or `p`), else zeros."""
    refuse_batches(input, p)
    if p is None:
        if not input.is_floating_point():
            raise NotImplementedError(
                f"\"bernoulli_tensor_cpu_p_\" not implemented for '{input.dtype.legacy}'"
            )
        p = chances = input.detach()
        _refuse_chances(p)
        if out is None and input.requires_grad and LOCAL.grad:
            return with_zero_gradients(
                lambda: bernoulli(chances, generator=generator), "BernoulliBackward0", input
            )
    elif not isinstance(p, Tensor) and not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    geom = input._geom if not input._geom.offset and input._geom.contiguous else None
    geom = geom or input._geom.fresh()
    if out is None and geom.device is CPU and not MODES.active:
        return _bernoulli(geom, p, generator)
    like = registry.backend(geom.device).allocate(geom)
    if not isinstance(p, Tensor) and sequential.fill(generator, "bernoulli", like, p):
        return like if out is None else write_out(out, like)
    if isinstance(p, Tensor):
        p = p.detach()
    draws = _put(like, _bernoulli(geom, p, generator))
    return draws if out is None else write_out(out, draws)


@surface(function=False)
@parsed(method=True)
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with draws from an exponential distribution of rate `lambd`."""
    refuse_written(self)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    geom = self._geom
    if geom.dtype.category != dt.FLOAT:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a"
            f" floating point but you specified {geom.dtype.legacy}"
        )
    if fills_by_mode(self, "exponential_", (lambd,), (1.0,), generator):
        return self
    if sequential.fill(generator, "exponential", self, lambd):
        return self
    if geom.device.type == "cpu":
        draws = _draw.exponential(_source(generator, geom.device), geom.numel, lambd)
        return _put(self, from_array(draws.astype(geom.dtype.np).reshape(_sizes_in_order(geom))))
    u = _draw_into("uniform", tuple(geom.shape), (0.0, 1.0), dt.float32, geom.device, generator)
    return self.copy_(aten.div(aten.neg(aten.log1p(aten.neg(u))), lambd))


def _uniform_double(self: Tensor, generator: Generator | None) -> Tensor:
    """Draws from [0, 1) for `self`: in float64 on cpu, as torch's transformations take."""
    geom = self._geom
    wide = dt.float64 if geom.device.type == "cpu" else dt.float32
    return _draw_into("uniform", _sizes_in_order(geom), (0.0, 1.0), wide, geom.device, generator)


@surface(function=False)
@parsed(method=True)
def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with draws from a Cauchy distribution."""
    refuse_written(self)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if self.dtype.category != dt.FLOAT:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a"
            f" floating point but you specified {c_name(self.dtype)}"
        )
    if fills_by_mode(self, "cauchy_", (median, sigma), (0.0, 1.0), generator):
        return self
    if sequential.fill(generator, "cauchy", self, median, sigma):
        return self
    u = _uniform_double(self, generator)
    return _put(self, (u - 0.5).mul_(pi).tan_().mul_(sigma).add_(median))


@surface(function=False)
@parsed(method=True)
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of tries until the first success of probability `p`."""
    refuse_written(self)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if self.dtype.category > dt.FLOAT or self.dtype is dt.bool:
        raise NotImplementedError(f"\"geometric_cpu\" not implemented for '{self.dtype.legacy}'")
    if fills_by_mode(self, "geometric_", (p,), (), generator):
        return self
    if sequential.fill(generator, "geometric", self, log1p(-p)):
        return self
    u = _uniform_double(self, generator)
    return _put(self, u.log_().div_(log1p(-p)).ceil_())


@surface(function=False)
@parsed(method=True)
def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with exponentials of normal draws."""
    refuse_written(self)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if self.dtype.category != dt.FLOAT:
        raise NotImplementedError(f"\"log_normal_cpu\" not implemented for '{self.dtype.legacy}'")
    if fills_by_mode(self, "log_normal_", (mean, std), (1.0, 2.0), generator):
        return self
    if sequential.fill(generator, "log_normal", self, mean, std):
        return self
    if self.device.type == "cpu":
        z = _draw.pairs_of_normals(_source(generator, self.device), self.numel())
        draws = np.exp(z * std + mean).reshape(_sizes_in_order(self._geom))
        return _put(self, from_array(draws))
    log = _draw_into("normal", tuple(self.shape), (float(mean), float(std)), dt.float32,
                     self.device, generator)  # fmt: skip
    return self.copy_(log.exp_())


def _refuse_spread(std: Tensor) -> None:
    """RuntimeError for negative standard deviations, which torch waits for on every device."""
    if std.device.type != "meta" and std.numel() and not aten.amin(std).item() >= 0:
        raise RuntimeError("normal expects all elements of std >= 0.0")


@surface(method=False)
@parsed(first=refuse_options)
def normal(
    mean: Tensor | float,
    std: Tensor | float = 1.0,
    size: int | Shape | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Draws with means and standard deviations that are tensors, or numbers with a `size`."""
    refuse_batches(mean, std)
    if not isinstance(std, Tensor) and not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if isinstance(std, Tensor):
        _refuse_spread(std)
    if size is not None:
        draws = _draw_into(
            "normal", sizes_of((size,), "normal"), (float(mean), float(std)),
            _float_dtype(dtype, "normal_kernel_cpu"), device,
            generator,
        )  # fmt: skip
        return _finished(draws, out, requires_grad)
    first = next((v for v in (mean, std) if isinstance(v, Tensor)), None)
    if first is None:
        raise TypeError("normal: numbers for mean and std need a size; give size=(…)")
    _float_dtype(first.dtype, "normal_kernel_cpu")
    shapes = [v.shape for v in (mean, std) if isinstance(v, Tensor)]
    shape = broadcast(shapes[0], shapes[-1])
    z = _draw_into("normal", tuple(shape), (0.0, 1.0), first.dtype, first.device, generator)
    label = f"NormalBackward{1 + isinstance(std, Tensor) * (1 + isinstance(mean, Tensor))}"
    draws = with_zero_gradients(lambda: aten.add(aten.mul(z, std), mean), label, mean, std)
    if out is not None and isinstance(std, Tensor):
        warn_of_resize(out._geom, draws.shape)
    return _finished(draws, out, False)


@surface()
@parsed()
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *,
    generator: Generator | None = None, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Indices drawn by the weights in rows of `input`: `[N, M]` or `[M]`."""
    refuse_batches(input)
    if out is not None and out.dtype is not dt.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {scalar_name(out.dtype)}")
    if input.dim() not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if input.dtype.category != dt.FLOAT:
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got:"
            f" {input.dtype.legacy.removesuffix('Tensor').rpartition('.')[2] or input.dtype}"
        )
    if input.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    _refuse_weights(input, replacement and num_samples > 1)
    if replacement and num_samples > 1:
        draws = _with_replacement(input, num_samples, generator)
    else:
        # The largest of weight / exponential draws are a sample without replacement.
        noise = aten.empty_like(input).exponential_(generator=generator)
        draws = aten.topk(aten.div(input, noise), num_samples, -1)[1]
    return draws if out is None else write_out(out, draws)


def _refuse_weights(weights: Tensor, in_turn: bool) -> None:
    """RuntimeError in torch's words for rows that are no weights; waits for the device."""
    if not weights.numel() or weights.device.type == "meta":
        return
    if not bool(aten.all(aten.logical_and(weights >= 0, weights < inf)).item()):
        if in_turn:  # torch's kernel of draws one after the other tells which
            below = bool(aten.any(weights < 0).item())
            kind = "< 0" if below else "= infinity or NaN"
            raise RuntimeError(
                f"invalid multinomial distribution (encountering probability entry {kind})"
            )
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not bool(aten.all(aten.sum(weights, -1) > 0).item()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def _with_replacement(input: Tensor, n: int, generator: Generator | None) -> Tensor:
    total = aten.cumsum(input, -1)
    shape = (*input.shape[:-1], n)
    wide = dt.float64 if input.device.type == "cpu" else input.dtype
    u = _draw_into("uniform", shape, (0.0, 1.0), wide, input.device, generator)
    aim = aten.mul(u, aten.narrow(total, -1, total.shape[-1] - 1, 1))
    below = aten.le(aten.unsqueeze(total, -2), aten.unsqueeze(aim, -1))
    index: Tensor = aten.clamp(aten.sum(below, -1), None, input.shape[-1] - 1)
    return index


@surface(method=False)
@parsed()
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`input` with elements zeroed with probability `p` and the rest scaled up, and the mask."""
    if train is False or p == 0:
        return aten.clone(input), aten.ones_like(input, dtype=dt.bool)
    mask = aten.empty_like(input, dtype=dt.bool)
    mask = _put(mask, _bernoulli(mask._geom, 1 - p, None))
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return aten.mul(aten.mul(input, aten.to(mask, input.dtype)), scale), mask


def _draws_bits(like: Tensor) -> bool:
    """Whether a device packs what dropout of such a tensor keeps into bits."""
    kinds = (dt.float32, dt.float16, dt.bfloat16)
    return like.device.type == "npu" and like.dtype in kinds and not (LOCAL.levels or MODES.active)


def _draw_bits(like: Tensor, n: int, p: float) -> Tensor:
    """Packed bits for `n` elements, each 0 with probability `p`; see `_keep_bits`."""
    seed, offset = _source(None, like.device).advance(n)
    return aten._keep_bits(n, p, seed, offset, like.dtype, like.device)


aten.publish("_draws_bits", _draws_bits)
aten.publish("_draw_bits", _draw_bits)
