"""Owns how a local tensor becomes that of other placements: by the mesh's collectives."""

from __future__ import annotations

from collections.abc import Sequence

import mindtorch

from ..._tensor.tensor import Tensor
from .. import _calls
from .._counted import counted
from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement, Replicate, Shard, _NormPartial

Placements = tuple[Placement, ...]
REPLICATE = Replicate()


def share(size: int, count: int, place: int) -> tuple[int, int]:
    """(elements, first element) of a place's part of a dimension, as `torch.chunk` cuts it."""
    step = -(-size // count)
    start = min(step * place, size)
    return min(step, size - start), start


def local_shape_and_offset(
    shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and first indices of this process's part of a tensor of `shape`."""
    sizes, offsets = list(shape), [0] * len(shape)
    place = mesh.get_coordinate() or (0,) * mesh.ndim
    for i, placement in enumerate(placements):
        if isinstance(placement, Shard):
            d = placement.dim
            sizes[d], start = share(sizes[d], mesh.size(i), place[i])
            offsets[d] += start
    return tuple(sizes), tuple(offsets)


def _gathered(local: Tensor, dim: int, size: int, mesh: DeviceMesh, i: int) -> Tensor:
    """The parts of all processes along dimension `i` of the mesh, one after the other."""
    count = mesh.size(i)
    most = share(size, count, 0)[0]
    if local.shape[dim] < most:
        shape = list(local.shape)
        shape[dim] = most - shape[dim]
        local = mindtorch.cat([local, local.new_zeros(shape)], dim)
    local = local.contiguous()
    parts = [mindtorch.empty_like(local) for _ in range(count)]
    counted("all_gather_into_tensor")
    _calls.all_gather(parts, local, mesh.get_group(i))
    parts = [p.narrow(dim, 0, share(size, count, k)[0]) for k, p in enumerate(parts)]
    return mindtorch.cat(parts, dim)


_REDUCTIONS = {"sum": "SUM", "avg": "SUM", "product": "PRODUCT", "max": "MAX", "min": "MIN"}


def _reduced(local: Tensor, placement: Partial, mesh: DeviceMesh, i: int) -> Tensor:
    """What the summands of all processes make."""
    counted("all_reduce")
    is_bool = local.dtype is mindtorch.bool
    norm = placement.norm_type if isinstance(placement, _NormPartial) else None
    total = local.int() if is_bool else local.clone() if norm is None else local**norm
    _calls.all_reduce(total, _REDUCTIONS[placement.reduce_op], mesh.get_group(i))
    if placement.reduce_op == "avg":
        total = total / mesh.size(i)
    if norm is not None:
        total = total ** (1 / norm)
    return total != 0 if is_bool else total


def _scattered(local: Tensor, placement: Partial, dim: int, mesh: DeviceMesh, i: int) -> Tensor:
    """This process's part along `dim` of what the summands of all processes make."""
    count, size = mesh.size(i), local.shape[dim]
    most = share(size, count, 0)[0]
    shape = list(local.shape)
    shape[dim] = most * count - size
    rows = mindtorch.cat([local, local.new_zeros(shape)], dim) if shape[dim] else local
    rows = mindtorch.stack(rows.chunk(count, dim))
    part = mindtorch.empty_like(rows[0])
    counted("reduce_scatter_tensor")
    _calls.reduce_scatter_single(part, rows, _REDUCTIONS[placement.reduce_op], mesh.get_group(i))
    part = part / count if placement.reduce_op == "avg" else part
    return part.narrow(dim, 0, share(size, count, mesh.get_local_rank(i))[0])


def _to_partial(local: Tensor, placement: Partial, mesh: DeviceMesh, i: int) -> Tensor:
    """A copy as summands: the first process has it, others nothing."""
    if placement.reduce_op not in ("sum", "avg", "max", "min"):
        raise ValueError(
            f"Replicate to Partial({placement.reduce_op}) conversion is not supported."
        )
    if placement.reduce_op == "sum" and mesh.get_local_rank(i):
        return mindtorch.zeros_like(local)
    return local


def redistributed(
    local: Tensor, shape: Sequence[int], mesh: DeviceMesh, now: Placements, then: Placements
) -> Tensor:
    """The local tensor of placements `then`, of one that lies as `now`.

    A dimension that is cut several times is put together from the last cut on.
    """
    changed = {i for i in range(mesh.ndim) if now[i] != then[i]}
    if len(changed) == 1:
        (i,) = changed
        summed, cut = now[i], then[i]
        if (
            type(summed) is Partial and isinstance(cut, Shard) and mesh.size(i) > 1
            and cut not in now and local.dtype is not mindtorch.bool and local.shape[cut.dim]
        ):  # fmt: skip
            return _scattered(local, summed, cut.dim, mesh, i)
    for i in list(changed):
        for p in (now[i], then[i]):
            if isinstance(p, Shard):
                changed |= {j for j in range(i + 1, mesh.ndim) if now[j] == p or then[j] == p}
    for i in sorted(changed, reverse=True):
        if mesh.size(i) == 1:
            continue
        placement = now[i]
        if isinstance(placement, Shard):
            before = local_shape_and_offset(shape, mesh, now[:i])[0]
            local = _gathered(local, placement.dim, before[placement.dim], mesh, i)
        elif isinstance(placement, Partial) and placement != then[i]:
            local = _reduced(local, placement, mesh, i)
    for i in sorted(changed):
        placement = then[i]
        if mesh.size(i) == 1:
            continue
        if isinstance(placement, Shard):
            d, place = placement.dim, mesh.get_coordinate() or (0,) * mesh.ndim
            length, start = share(local.shape[d], mesh.size(i), place[i])
            local = local.narrow(d, start, length).contiguous()
        elif isinstance(placement, Partial) and placement != now[i]:
            local = _to_partial(local, placement, mesh, i)
    return local
