"""Owns factories and shape helpers made of other functions: eye, linspace, meshgrid, unique…"""

from __future__ import annotations

from typing import Any

from ._creation import finish
from ._dispatch.entry import entry
from ._functional import surface
from ._tensor import Tensor, forget_array
from .ops.rules import broadcast_all
from .ops.spec import OPS, aten


def _out(made: Tensor, out: Tensor | None, requires_grad: bool = False) -> Tensor:
    return finish(made, requires_grad) if out is None else out.copy_(made)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


@surface(method=False)
def linspace(
    start: Any, end: Any, steps: int, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` evenly spaced numbers from `start` to `end`, both included."""
    row = entry(OPS["linspace"], "aten")
    made = row(_number(start), _number(end), steps, dtype=dtype, device=device)
    return _out(made, out, requires_grad)


@surface(method=False)
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, out: Any = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`base` to the power of `steps` evenly spaced numbers."""
    made = aten.pow(base, linspace(start, end, steps, dtype=dtype, device=device))
    return _out(made, out, requires_grad)


@surface(method=False)
def eye(
    n: int, m: int | None = None, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Ones on the diagonal of an `[n, m]` matrix of zeros."""
    made = entry(OPS["eye.m"], "aten")(n, n if m is None else m, dtype=dtype, device=device)
    return _out(made, out, requires_grad)


@surface(method=False)
def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that all broadcast to."""
    from ._geometry import Size

    return Size(broadcast_all([(s,) if isinstance(s, int) else tuple(s) for s in shapes]))


@surface(method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Views of all tensors in the shape that they broadcast to."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(aten.expand(t, tuple(shape)) for t in tensors)


@surface()
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """A view of `input` in a shape that it broadcasts to."""
    return aten.expand(input, tuple(size))  # type: ignore[no-any-return]


@surface(method=False)
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids of 1-d tensors; "xy" swaps the first two dimensions."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    swap = indexing == "xy" and len(tensors) > 1
    order = (tensors[1], tensors[0], *tensors[2:]) if swap else tensors
    shape = tuple(t.numel() for t in order)
    grids = []
    for i, t in enumerate(order):
        view = [1] * len(order)
        view[i] = t.numel()
        grids.append(aten.expand(aten.reshape(t, tuple(view)), shape))
    if swap:
        grids = [aten.transpose(g, 0, 1) for g in (grids[1], grids[0], *grids[2:])]
        return tuple(aten.transpose(g, 0, 1) for g in grids)
    return tuple(grids)


@surface(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the elements of 1-d tensors, one a row."""
    if len(tensors) == 1:
        return tensors[0]
    return aten.stack([aten.reshape(g, (-1,)) for g in meshgrid(*tensors)], 1)  # type: ignore[no-any-return]


def _triangle(name: str, keep: str) -> None:
    def indices(
        row: int,
        col: int,
        offset: int = 0,
        *,
        dtype: Any = None,
        device: Any = None,
        layout: Any = None,
    ) -> Tensor:
        mask = getattr(aten, keep)(aten.ones((row, col), dtype=None, device=device), offset)
        found = aten.transpose(aten.nonzero(mask), 0, 1)
        return found if dtype is None else aten.to(found, dtype)  # type: ignore[no-any-return]

    indices.__name__ = indices.__qualname__ = name
    indices.__doc__ = f"Row and column indices of the elements that torch.{keep} keeps: `[2, N]`."
    surface(method=False)(indices)


_triangle("tril_indices", "tril")
_triangle("triu_indices", "triu")


def _runs(ordered: Tensor) -> Tensor:
    """Which elements of a sorted 1-d tensor differ from the one before; the first does."""
    first = aten.ones((min(ordered.numel(), 1),), device=ordered.device)
    n = ordered.numel()
    if n < 2:
        return aten.gt(first, 0)  # type: ignore[no-any-return]
    changed = aten.ne(aten.narrow(ordered, 0, 1, n - 1), aten.narrow(ordered, 0, 0, n - 1))
    return aten.cat([aten.gt(first, 0), changed], 0)  # type: ignore[no-any-return]


def _unique_flat(flat: Tensor, ordered: Tensor, where: Tensor | None) -> tuple[Tensor, ...]:
    starts = _runs(ordered)
    values = aten.masked_select(ordered, starts)
    group = aten.sub(aten.cumsum(starts, 0), 1)
    inverse = group if where is None else aten.empty_like(group).scatter_(0, where, group)
    counts = aten.zeros((values.numel(),), dtype=group.dtype, device=flat.device)
    return values, inverse, counts.scatter_add_(0, group, aten.ones_like(group))


@surface()
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """The distinct elements in order, and if asked where each went and how many there were."""
    if dim is not None:
        return _unique_rows(input, return_inverse, return_counts, dim)
    flat = aten.reshape(input.detach(), (-1,))
    ordered, where = aten.sort(flat, 0)
    values, inverse, counts = _unique_flat(flat, ordered, where)
    return _asked(values, aten.reshape(inverse, input.shape), counts, return_inverse, return_counts)


def _asked(values: Any, inverse: Any, counts: Any, with_inverse: bool, with_counts: bool) -> Any:
    found = [values] + ([inverse] if with_inverse else []) + ([counts] if with_counts else [])
    return found[0] if len(found) == 1 else tuple(found)


def _unique_rows(input: Tensor, with_inverse: bool, with_counts: bool, dim: int) -> Any:
    """Rows compared on the host, as their order is lexicographic."""
    import numpy as np

    from ._creation import from_array

    values, inverse, counts = np.unique(
        input.detach().cpu().numpy(),
        return_inverse=True,
        return_counts=True,
        axis=dim,
    )
    made = [
        from_array(np.ascontiguousarray(v), input.device)
        for v in (values, inverse.reshape(-1), counts)
    ]
    return _asked(made[0], made[1], made[2], with_inverse, with_counts)


@surface()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The elements without those equal to the one before."""
    if dim is not None:
        raise NotImplementedError("unique_consecutive(): dim is not implemented")
    flat = aten.reshape(input.detach(), (-1,))
    values, inverse, counts = _unique_flat(flat, flat, None)
    return _asked(values, aten.reshape(inverse, input.shape), counts, return_inverse, return_counts)


@surface()
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
    interpolation: str = "linear", out: Any = None,
) -> Tensor:  # fmt: skip
    """The q-th quantiles (q in [0, 1], a number or a 1-d tensor) of all, or along a dimension."""
    if not isinstance(q, Tensor):
        q = aten.full((), float(q), dtype=input.dtype, device=input.device)
    at = 0 if dim is None else dim
    flat = aten.reshape(input, (-1,)) if dim is None else input
    rows = aten.sort(aten.movedim(flat, at, -1), -1)[0]
    place = aten.mul(q, rows.shape[-1] - 1)
    low, high = aten.floor(place), aten.ceil(place)
    picks = [
        aten.index_select(rows, -1, aten.to(aten.reshape(p, (-1,)), _int64())) for p in (low, high)
    ]
    made = _between(interpolation, picks[0], picks[1], aten.reshape(aten.sub(place, low), (-1,)))
    made = aten.movedim(made, -1, 0)
    if keepdim:
        ones = (1,) * input.ndim if dim is None else None
        made = (
            aten.reshape(made, (made.shape[0], *ones))
            if ones
            else aten.unsqueeze(made, at + 1 if at >= 0 else at)
        )
    return _out(made if q.ndim else aten.squeeze(made, 0), out)


def _int64() -> Any:
    from ._dtype import int64

    return int64


def _between(how: str, low: Tensor, high: Tensor, weight: Tensor) -> Tensor:
    ways: dict[str, Any] = {
        "linear": lambda: aten.add(low, aten.mul(aten.sub(high, low), weight)),
        "lower": lambda: low,
        "higher": lambda: high,
        "midpoint": lambda: aten.mul(aten.add(low, high), 0.5),
        "nearest": lambda: aten.where(aten.gt(weight, 0.5), high, low),
    }
    if how not in ways:
        raise RuntimeError(f"quantile() interpolation must be one of {', '.join(ways)}; got {how}")
    return ways[how]()  # type: ignore[no-any-return]


@surface()
def histc(input: Tensor, bins: int = 100, min: Any = 0, max: Any = 0, *, out: Any = None) -> Tensor:
    """Counts of elements in `bins` equal bins between `min` and `max` (the data's where equal)."""
    low, high = float(min), float(max)
    if low == high and input.numel():
        low, high = float(aten.min(input).item()), float(aten.max(input).item())
    if low == high:
        low, high = low - 1, high + 1
    flat = aten.reshape(input, (-1,))
    inside = aten.logical_and(aten.ge(flat, low), aten.le(flat, high))
    place = aten.floor(aten.mul(aten.sub(flat, low), bins / (high - low)))
    index = aten.to(aten.clamp(place, 0, bins - 1), _int64())
    made = aten.zeros((bins,), dtype=input.dtype, device=input.device)
    return _out(made.scatter_add_(0, index, aten.to(inside, input.dtype)), out)


@surface()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each value of a non-negative integer tensor occurs, or the sum of its weights."""
    from builtins import max as largest

    size = largest(minlength, int(aten.max(input).item()) + 1 if input.numel() else 0)
    ones = aten.ones_like(input, dtype=_int64()) if weights is None else weights
    made = aten.zeros((size,), dtype=ones.dtype, device=input.device)
    return made.scatter_add_(0, aten.to(input, _int64()), ones)  # type: ignore[no-any-return]


@surface(method=False)
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False,
    side: Any = None, out: Any = None, sorter: Any = None,
) -> Tensor:  # fmt: skip
    """Where `input` would go into a sorted last dimension: before equal elements, or after."""
    if sorter is not None:
        sorted_sequence = aten.gather(sorted_sequence, -1, sorter)
    if not isinstance(input, Tensor):
        input = aten.full((), input, dtype=sorted_sequence.dtype, device=sorted_sequence.device)
    after = right or side == "right"
    compare = aten.le if after else aten.lt
    row = sorted_sequence if sorted_sequence.ndim == 1 else aten.unsqueeze(sorted_sequence, -2)
    made = aten.sum(compare(row, aten.unsqueeze(input, -1)), -1)
    if out_int32:
        from ._dtype import int32

        made = aten.to(made, int32)
    return _out(made, out)


@surface(method=False)
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Tensor:
    """The index of the bucket that each element of `input` falls into."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


@surface(function=False)
def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """torch.unsqueeze, in place."""
    self._geom = aten.unsqueeze(self, dim)._geom
    forget_array(self)
    return self


@surface(function=False)
def squeeze_(self: Tensor, dim: Any = None) -> Tensor:
    """torch.squeeze, in place."""
    made = aten.squeeze(self) if dim is None else aten.squeeze(self, dim)
    self._geom = made._geom
    forget_array(self)
    return self


@surface(method=False)
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask devices for deterministic kernels (ACL_OPT_DETERMINISTIC); cpu's always are."""
    from ._backends.npu import runtime

    runtime.set_deterministic(mode)
