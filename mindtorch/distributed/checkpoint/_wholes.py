"""Owns what states of shards are as wholes, and back: gathered, on the cpu, sent from rank 0."""

from __future__ import annotations

from typing import Any

import mindtorch

from ..._tensor.tensor import Tensor
from ...utils._pytree import tree_map, tree_map_only
from .. import broadcast, broadcast_object_list, get_rank, get_world_size, is_initialized
from ..tensor._api import DTensor
from ..tensor._redistribute import REPLICATE, redistributed


def rank() -> int:
    """This process's rank; 0 where there are no others."""
    return get_rank() if is_initialized() else 0


def gathered(state: Any, whole: bool, on_cpu: bool) -> Any:
    """A state with whole tensors, on the cpu (of rank 0 alone), or as it is."""
    if whole:
        state = tree_map_only(DTensor, lambda t: t.full_tensor().detach(), state)
    if whole and on_cpu and rank():
        return {}
    return tree_map_only(Tensor, _on_cpu, state) if on_cpu else state


def _on_cpu(tensor: Tensor) -> Tensor:
    if isinstance(tensor, DTensor):
        return DTensor(tensor.to_local().detach().cpu(), tensor._spec)
    return tensor.detach().cpu()


def _part(whole: Tensor, like: Tensor) -> Tensor:
    """A whole tensor as another lies."""
    where = like.device if not like.is_meta else whole.device
    whole = whole.detach().to(where)
    if not isinstance(like, DTensor) or isinstance(whole, DTensor):
        return whole
    mesh = like.device_mesh
    everywhere = (REPLICATE,) * mesh.ndim
    local = redistributed(whole, like.shape, mesh, everywhere, like.placements)
    return DTensor(local, like._spec)


def spread(state: dict[str, Any], likes: dict[str, Any]) -> dict[str, Any]:
    """Whole tensors by names, each as its like lies."""
    return {
        name: _part(value, likes[name])
        if isinstance(value, Tensor) and isinstance(likes.get(name), Tensor)
        else value
        for name, value in state.items()
    }


class _Sent:
    """A tensor that is to come: its shape and dtype."""

    def __init__(self, tensor: Tensor) -> None:
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype


def from_first(state: Any) -> Any:
    """The state of rank 0, its tensors on the cpu."""
    if not is_initialized() or get_world_size() == 1:
        return state
    first = get_rank() == 0
    shapes = [tree_map(lambda v: _Sent(v) if isinstance(v, Tensor) else v, state) if first else 0]
    broadcast_object_list(shapes, 0)
    mine = iter([v for v in mindtorch.utils._pytree.tree_leaves(state) if isinstance(v, Tensor)])

    def take(value: Any) -> Any:
        if not isinstance(value, _Sent):
            return value
        tensor = (
            next(mine).detach().cpu().contiguous() if first
            else mindtorch.empty(value.shape, dtype=value.dtype)
        )  # fmt: skip
        broadcast(tensor, 0)
        return tensor

    return tree_map(take, shapes[0])
