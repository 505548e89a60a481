"""Owns the reductions that torch tells apart by their arguments: max(), max(dim), max(other)…"""

from __future__ import annotations

from typing import Any

from . import return_types
from ._dispatch.entry import entry
from ._functional import surface
from ._tensor import Tensor
from .ops.spec import OPS, aten


def _row(name: str) -> Any:
    return entry(OPS[name], "aten")


def _into(out: Any, made: Any) -> Any:
    """`made`, written to `out` where that is given."""
    if out is None:
        return made
    if isinstance(made, tuple):
        for held, value in zip(out, made, strict=True):
            _fill(held, value)
        return type(made)(*out)
    return _fill(out, made)


def _fill(out: Tensor, value: Tensor) -> Tensor:
    if out.shape != value.shape:
        out.resize_(value.shape)
    return out.copy_(value)  # type: ignore[no-any-return]


def _extreme(name: str, both: str) -> None:
    pair = getattr(return_types, name)

    def reduce(
        input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None, out: Any = None
    ) -> Any:
        other = dim if isinstance(dim, Tensor) else other
        if other is not None:
            return _into(out, _row(both)(input, other))
        if dim is None:
            return _into(out, _row(name)(input))
        return _into(out, pair(*_row(f"{name}.dim")(input, dim, keepdim)))

    _publish(reduce, name, f"torch.{name}: of all, along a dimension with indices, or of two.")


def _publish(fn: Any, name: str, doc: str) -> None:
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    surface()(fn)


_extreme("max", "maximum")
_extreme("min", "minimum")


def _index_of(name: str) -> None:
    def reduce(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
        if dim is not None:
            return _into(out, _row(name)(input, dim, keepdim))
        if not input.numel():
            return _row(name)(input)
        found = _row(name)(aten.reshape(input, (-1,)), 0, False)
        return _into(out, aten.reshape(found, (1,) * input.ndim) if keepdim else found)

    _publish(
        reduce, name, f"torch.{name}: the index of the extreme, in the flat tensor or along dim."
    )


_index_of("argmax")
_index_of("argmin")


def _pairs(name: str) -> None:
    """Functions with `values` and `indices` whose arguments are the row's own."""
    pair = getattr(return_types, name)

    def run(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        return _into(out, pair(*_row(name)(input, *args, **kwargs)))

    _publish(run, name, OPS[name].text)


for _name in ("topk", "kthvalue", "cummax", "cummin"):
    _pairs(_name)


@surface()
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False, *, out: Any = None
) -> Any:
    """Values in order along a dimension, and where they came from; equal ones keep their order."""
    return _into(out, return_types.sort(*_row("sort")(input, dim, descending, stable)))


@surface()
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort a tensor along a dimension."""
    return _row("sort")(input, dim, descending, stable)[1]  # type: ignore[no-any-return]


@surface()
def median(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The lower median of all, or along a dimension with its index."""
    if dim is None:
        return _into(out, _row("median")(input))
    return _into(out, return_types.median(*_row("median.dim")(input, dim, keepdim)))


@surface()
def prod(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Tensor:
    """The product of all elements, or along a dimension."""
    if dim is None:
        return _into(out, _row("prod")(input, dtype=dtype))  # type: ignore[no-any-return]
    return _into(out, _row("prod.dim")(input, dim, keepdim, dtype=dtype))  # type: ignore[no-any-return]


def _spread(name: str) -> None:
    def reduce(
        input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None, out: Any = None,
    ) -> Any:  # fmt: skip
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        return _into(out, _row(name)(input, dim, correction=correction, keepdim=keepdim))

    _publish(reduce, name, f"torch.{name}: with n - correction degrees of freedom.")


_spread("var")
_spread("std")


def _with_mean(name: str) -> None:
    def reduce(input: Tensor, dim: Any = None, *args: Any, keepdim: bool = False, **kw: Any) -> Any:
        spread = getattr(aten, name)(input, dim, *args, keepdim=keepdim, **kw)
        return spread, aten.mean(input, None if isinstance(dim, bool) else dim, keepdim)

    fn = reduce
    fn.__name__ = fn.__qualname__ = name + "_mean"
    fn.__doc__ = f"torch.{name}_mean: the pair of torch.{name} and torch.mean."
    surface(method=False)(fn)


_with_mean("var")
_with_mean("std")


@surface()
def aminmax(input: Tensor, *, dim: Any = None, keepdim: bool = False, out: Any = None) -> Any:
    """The smallest and the largest element, of all or along a dimension."""
    dims = () if dim is None else (dim,)
    return _into(
        out,
        return_types.aminmax(aten.amin(input, dims, keepdim), aten.amax(input, dims, keepdim)),
    )


@surface()
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None,
    dtype: Any = None,
) -> Tensor:  # fmt: skip
    """The vector norm of order `p` over all or some dimensions ("fro" is order 2)."""
    if p == "nuc":
        raise NotImplementedError("norm(): p='nuc' is not implemented")
    order = 2 if p in ("fro", None) else p
    return _into(  # type: ignore[no-any-return]
        out, aten.linalg_vector_norm(input, order, dim, keepdim, dtype=dtype)
    )


@surface()
def cov(input: Tensor, *, correction: int = 1) -> Tensor:
    """The covariance matrix of rows as variables: `[N, M]` gives `[N, N]`."""
    centred = aten.sub(input, aten.mean(input, -1, True))
    made = aten.matmul(centred, aten.conj_of(aten.transpose(centred, -1, -2)))
    return aten.div(made, input.shape[-1] - correction)  # type: ignore[no-any-return]


@surface()
def diff(input: Tensor, n: int = 1, dim: int = -1) -> Tensor:
    """The n-th forward difference along a dimension."""
    for _ in range(n):
        size = input.shape[dim]
        input = aten.sub(aten.narrow(input, dim, 1, size - 1), aten.narrow(input, dim, 0, size - 1))
    return input


def _repeat_interleave_counts(input: Tensor, repeats: Tensor, dim: int) -> Tensor:
    ends = aten.cumsum(repeats, 0)
    total = int(ends[-1].item()) if repeats.numel() else 0
    places = aten.arange(0, total, device=input.device)
    index = aten.sum(aten.to(aten.ge(aten.unsqueeze(places, 1), ends), ends.dtype), 1)
    return aten.index_select(input, dim, index)  # type: ignore[no-any-return]


@surface()
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: Any = None, *, output_size: Any = None
) -> Tensor:
    """Each element `repeats` times in a row, flat or along a dimension."""
    del output_size
    if repeats is None:
        input, repeats = aten.arange(0, input.numel(), device=input.device), input
    if dim is None:
        input, dim = aten.reshape(input, (-1,)), 0
    if isinstance(repeats, Tensor) and repeats.numel() != 1:
        return _repeat_interleave_counts(input, repeats, dim)
    count = repeats.item() if isinstance(repeats, Tensor) else repeats
    return aten._repeat_each(input, int(count), dim)  # type: ignore[no-any-return]


@surface()
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
) -> Tensor:
    """`input` with `src` (a tensor or a number) written where `index` points along `dim`."""
    return _scatter(input, dim, index, src, value, reduce, "aten")


@surface(function=False, internal=False)
def scatter_(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Tensor:
    """torch.scatter, in place."""
    return _scatter(self, dim, index, src, value, reduce, "inplace")


def _scatter(
    self: Tensor, dim: int, index: Tensor, src: Any, value: Any, reduce: Any, form: str
) -> Tensor:
    src = value if src is None else src
    if reduce not in (None, "add"):
        raise NotImplementedError(f"scatter(): reduce={reduce!r} is not implemented")
    if reduce == "add":
        if not isinstance(src, Tensor):
            src = aten.full(index.shape, src, dtype=self.dtype, device=self.device)
        return entry(OPS["scatter_add"], form)(self, dim, index, src)  # type: ignore[no-any-return]
    row = OPS["scatter.src" if isinstance(src, Tensor) else "scatter.value"]
    return entry(row, form)(self, dim, index, src)  # type: ignore[no-any-return]


def _nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Indices of what is not zero: `[N, ndim]`, or a tuple of `[N]` with `as_tuple`."""
    found = _row("nonzero")(input if input.ndim or not as_tuple else aten.reshape(input, (1,)))
    return tuple(aten.unbind(found, 1)) if as_tuple else found


_nonzero.__name__ = _nonzero.__qualname__ = "nonzero"
surface()(_nonzero)
