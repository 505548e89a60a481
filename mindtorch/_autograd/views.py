"""Owns what views mean to autograd: stale histories, rebasing, and what may not be written to."""

from __future__ import annotations

from typing import Any

from .._tensor.device import device as Device
from .._tensor.dtype import FLOAT
from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from .node import FREED, STALE, AccumulateGrad, Node, display_name


class AsStridedBackward0(Node):
    """History of a view made again from its base, after the base was written to."""

    __slots__ = ("base_geom", "view_geom")

    def __init__(self, view: Tensor, base: Tensor, base_edge: tuple[Node, int] | None):
        super().__init__()
        self.base_geom = base._geom
        self.view_geom = view._geom
        self.edges = (base_edge,)
        self.outs = (view._geom,)

    def apply(self, grads: list[Any]) -> tuple[Tensor, ...]:
        return (scatter_view(grads[0], self.base_geom, self.view_geom),)


class CopySlices(Node):
    """A write through a view, seen from its base: `fn` is what was done to the view."""

    __slots__ = ("base_geom", "fn", "view_geom")
    label = "torch::autograd::CopySlices"

    def __init__(self, base: Tensor, base_edge: tuple[Node, int] | None, view: Tensor, fn: Node):
        super().__init__()
        self.base_geom = base._geom
        self.view_geom = view._geom
        self.fn = fn
        self.edges = (base_edge, *fn.edges)
        self.outs = (base._geom,)

    def free(self) -> None:
        self.fn.free()

    def next_edges(self) -> tuple[Any, ...]:
        edges = self.edges[0], *self.edges[2:]  # the base stands for the view
        return tuple(vars(self).get("inputs", edges))

    def apply(self, grads: list[Any]) -> Any:
        if self.fn.saved is None:
            raise RuntimeError(FREED)
        whole = dense_like(grads[0], self.base_geom)
        part = self.view_of(whole)
        inner = list(self.fn.apply([aten.clone(part)]))
        to_view = inner[0] if inner else None
        if to_view is None:
            part.zero_()
        else:
            part.copy_(to_view)
        if inner:
            inner[0] = None
        return (whole, *inner)

    def view_of(self, whole: Tensor) -> Tensor:
        """The part of the base's gradient that the view covers."""
        shift = self.view_geom.offset - self.base_geom.offset
        g = self.view_geom
        return aten.as_strided(whole, g.shape, g.strides, whole._geom.offset + shift)


def dense_like(grad: Tensor, geom: Geometry) -> Tensor:
    """A fresh tensor with the base's strides that holds `grad`."""
    whole = grad.new_empty_strided(geom.shape, geom.strides)
    whole.copy_(grad)
    return whole


def scatter_view(grad: Tensor, base: Geometry, view: Geometry) -> Tensor:
    """`grad` of a strided view, added up where the base's elements lie."""
    size = max(base.extent, view.extent) - min(base.offset, view.offset)
    flat = grad.new_zeros((size,))
    start = min(base.offset, view.offset)
    if view.dense or not _overlaps(view):
        place = aten.as_strided(flat, view.shape, view.strides, view.offset - start)
        place.copy_(grad)
    else:
        index = linear_index(view, start, grad.device)
        flat = aten.index_add(flat, 0, index, aten.reshape(grad, (-1,)))
    return aten.as_strided(flat, base.shape, base.strides, base.offset - start)


def linear_index(geom: Geometry, start: int, device: Device) -> Tensor:
    """Where each element of a view lies in its storage, as a flat int64 tensor on `device`."""
    total = aten.full((1,) * geom.ndim, geom.offset - start, device=device)
    for dim, (size, stride) in enumerate(zip(geom.shape, geom.strides, strict=True)):
        steps = aten.arange(0, size, 1, device=device) * stride
        total = total + aten.reshape(steps, (size,) + (1,) * (geom.ndim - dim - 1))
    return aten.reshape(total, (-1,))


def _overlaps(geom: Geometry) -> bool:
    reach = 0
    for size, stride in sorted(zip(geom.shape, geom.strides, strict=True), key=lambda p: p[1]):
        if size == 1:
            continue
        if stride <= reach:
            return True
        reach += (size - 1) * stride
    return False


def fresh_edge(view: Tensor) -> tuple[Node, int] | None:
    """The edge of a stale view, its history made again; None if its base needs no gradient."""
    base = view._base
    assert base is not None
    fn = base._fn
    if fn is None:
        view._fn = None
        return None
    if view._creation is not None:
        raise RuntimeError(_refusal(view, _ANOTHER))
    node = AsStridedBackward0(view, base, (fn, base._nr))
    _put(view, node)
    return (node, 0)


def track_view(result: Any, mode: str = "no_grad") -> Any:
    """Note on a view that it was made without gradients, which forbids writing to it later."""
    for out in (result,) if isinstance(result, Tensor) else result:
        base = out._base
        if base is not None and base._fn is not None and out._geom.dtype.category >= FLOAT:
            out._creation = mode
            # torch says that such a view requires grad, and is a leaf.
            out._fn = AccumulateGrad(out)
    return result


def is_view_of_leaf(target: Tensor) -> bool:
    """Whether writing to `target`, which requires grad, would write to a leaf."""
    base = target._base
    return base is not None and (base._fn is None or isinstance(base._fn, AccumulateGrad))


_FORBIDDEN = (
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your"
    " code by moving both the view and the inplace either both inside the {0} block (if you don't"
    " want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
_HOW = {
    "no_grad": "A view was created in no_grad mode and {what} modified inplace with grad mode"
    " enabled." + _FORBIDDEN.format("no_grad"),
    "inference": "A view was created in inference mode and {what} modified inplace in normal mode."
    + _FORBIDDEN.format("inference_mode"),
    "multi": "Output {number} of {name} is a view and {what} modified inplace. This view is the"
    " output of a function that returns multiple views. Such functions do not allow the output"
    " views to be modified inplace. You should replace the inplace operation by an out-of-place"
    " one.",
    "custom": "Output {number} of {name} is a view and {what} modified inplace. This view was"
    " created inside a custom Function (or because an input was returned as-is) and the autograd"
    " logic to handle view+inplace would override the custom backward associated with the custom"
    " Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by"
    " cloning the output of the custom Function.",
}
_ITSELF = "is being"
_ANOTHER = "its base or another view of its base has been"


def refuse_view(target: Tensor) -> None:
    """RuntimeError in torch's words for a view that may not be written to."""
    if target._creation is not None and target._base is not None:
        raise RuntimeError(_refusal(target, _ITSELF))


def _refusal(view: Tensor, what: str) -> str:
    origin = getattr(view, "_split_by", None) or view._fn
    name = display_name(origin) if isinstance(origin, Node) else "View"
    return _HOW[str(view._creation)].format(what=what, number=view._nr, name=name)


def rebase(target: Tensor, node: Node) -> None:
    """Make `node` the history of what was just written, for the base and every view of it."""
    base = target._base
    if base is None or base._geom.dtype.category < FLOAT:
        _put(target, node)
    else:
        history = base._fn
        base_edge = None if history is None else (history, base._nr)
        _put(base, CopySlices(base, base_edge, target, node))
        _make_stale(target)
    for view_ref in target._storage.views or ():
        view = view_ref()
        if view is None or view is target:
            continue
        if view._creation in ("multi", "custom") and isinstance(view._fn, Node):
            view._split_by = view._fn
        _make_stale(view)


def _put(tensor: Tensor, node: Node) -> None:
    """Give a tensor another history; the gradient that it keeps is that of what it is now."""
    keeper = _taken_keeper(tensor) if tensor._retains else None
    tensor._fn, tensor._nr = node, 0
    if keeper is not None:
        if node.tensor_hooks is None:
            node.tensor_hooks = {}
        node.tensor_hooks.setdefault(0, {})[-1] = keeper


def _make_stale(view: Tensor) -> None:
    if view._retains and isinstance(view._fn, Node):
        vars(view)["_keeper"] = _taken_keeper(view)
    view._fn = STALE


def _taken_keeper(tensor: Tensor) -> Any:
    """What keeps the gradient of `tensor`, taken from its node."""
    hooks = getattr(tensor._fn, "tensor_hooks", None) or {}
    return hooks.get(tensor._nr, {}).pop(-1, None) or vars(tensor).pop("_keeper", None)
