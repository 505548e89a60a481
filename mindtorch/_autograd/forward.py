"""Owns forward-mode derivatives: tensors that carry a tangent, and the layer that moves tangents.

A row has no rule of its own for it: its vector-Jacobian product is linear in the vector, and the
derivative of that product by the vector is the Jacobian. Views apply to tangents as they are, so
that the tangent of a view is a view of the tangent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._tensor.dtype import FLOAT
from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor, wrap
from ..ops.rules import DYNAMIC_NAMES
from ..ops.spec import Op, aten
from .grad_mode import LOCAL, enable_grad
from .node import AccumulateGrad
from .surface import grad
from .views import dense_like

# The name in a tensor's dictionary: the number of its level, and the tangent.
_SLOT = "_tangent"


def tangent_of(tensor: Tensor) -> Tensor | None:
    """The tangent that a tensor carries at this thread's level; a view has its part of its base's.

    None outside of levels.
    """
    if not LOCAL.dual:
        return None
    level, tangent = vars(tensor).get(_SLOT, (0, None))
    if level == LOCAL.dual:
        return tangent if isinstance(tangent, Tensor) else None
    base = tensor._base
    whole = None if base is None or base is tensor else tangent_of(base)
    return None if whole is None or base is None else _part(whole, base._geom, tensor._geom)


def _part(whole: Tensor, base: Geometry, view: Geometry) -> Tensor:
    """What of the base's tangent a view covers; the tangent lies as the base does."""
    with plain():
        shift = view.offset - base.offset
        part: Tensor = aten.as_strided(whole, view.shape, view.strides, whole._geom.offset + shift)
    return part


def set_tangent(tensor: Tensor, tangent: Tensor | None) -> None:
    """Let a tensor carry a tangent until the level ends; None says that it has no part of one."""
    vars(tensor)[_SLOT] = (LOCAL.dual, tangent)


def refuse_sizes(tensor: Tensor, tangent: Tensor) -> None:
    """RuntimeError in torch's words for a tangent of another shape than its tensor."""
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original"
            f" Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the"
            f" given forward gradient is of size {list(tangent.shape)}."
        )


class plain:  # noqa: N801 - read as a statement
    """Calls inside see no tangents."""

    def __enter__(self) -> None:
        self.level, LOCAL.dual = LOCAL.dual, 0

    def __exit__(self, *exc: object) -> None:
        LOCAL.dual = self.level


def forward(op: Op, args: Sequence[Any], run: Callable[[], Any]) -> Any:
    """The layer of a call that makes new results; `run` is the call below it."""
    tangents = _tangents(args)
    if not tangents:
        return run()
    if op.is_view:
        with plain():
            result = run()
        moved = op.entry("aten")(tangents[0][1], *args[1:]) if tangents[0][0] == (0,) else None
        _carry(_listed(result), [None] if moved is None else _listed(moved))
        return result
    with plain():
        try:
            result, moved = _jvp(op, args, tangents)
        except (NotImplementedError, RuntimeError) as error:
            raise _unsupported(op, error) from error
        if LOCAL.grad and any(t.requires_grad for t in _tensors(args)):
            result = run()
    _carry(_listed(result), moved)
    _carry_saved(_listed(result), moved)
    return result


def _unsupported(op: Op, error: Exception) -> Exception:
    """torch's error of a row without tangents, where that is what `error` says."""
    if str(error) == f"derivative for aten::{op.base_name} is not implemented":
        return NotImplementedError(
            f"Trying to use forward AD with aten::{op.base_name} that does not support it."
        )
    if not str(error).startswith("the derivative for '"):
        return error
    name = DYNAMIC_NAMES.get(op.base_name, op.base_name)
    return NotImplementedError(
        f"Trying to use forward AD with {name} that does not support it because it has not been"
        " implemented yet.\nPlease file an issue to PyTorch at"
        " https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so that we can"
        " prioritize its implementation or submit a PR adding the implementation to"
        " derivatives.yaml"
    )


def forward_inplace(op: Op, args: Sequence[Any], run: Callable[[], Tensor]) -> Tensor:
    """The layer of a call that writes to its first argument."""
    tangents = _tangents(args)
    if not tangents:
        return run()
    target: Tensor = args[0]
    carried = tangent_of(target)
    with plain():
        _, moved = _jvp(op, (target.detach().clone(), *args[1:]), tangents)
        tangent = moved[0]
        result = run()
        if tangent is None:
            tangent = aten.zeros_like(target)
        if carried is None:
            carried = _zeros(target)
        carried.copy_(tangent)
    _keep(target, carried)
    return result


def moved_in_place(target: Tensor, view: Tensor) -> None:
    """The tangent of a tensor that took the geometry of a view of it."""
    tangent = tangent_of(view)
    if tangent is not None:
        set_tangent(target, tangent)


_fresh_zeros: dict[int, Tensor] = {}


def _zeros(target: Tensor) -> Tensor:
    """A tangent of zeros: for a view the part of one that its base gets."""
    base = target._base if target._base is not None else target
    whole = dense_like(aten.zeros_like(base.detach()), base._geom)
    if base is target:
        return whole
    _fresh_zeros[id(base)] = whole
    return _part(whole, base._geom, target._geom)


def _keep(target: Tensor, tangent: Tensor) -> None:
    """Give the tangent to what was written, and to its base where that had none."""
    base = target._base
    if base is not None and id(base) in _fresh_zeros:
        set_tangent(base, _fresh_zeros.pop(id(base)))
    set_tangent(target, tangent)


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]


def _tangents(args: Sequence[Any]) -> list[tuple[tuple[int, ...], Tensor]]:
    """Where among the arguments tensors with tangents stand, and their tangents."""
    pairs: list[tuple[tuple[int, ...], Tensor]] = []
    for i, arg in enumerate(args):
        if isinstance(arg, Tensor):
            tangent = tangent_of(arg)
            if tangent is not None:
                pairs.append(((i,), tangent))
        elif isinstance(arg, tuple | list):
            for j, value in enumerate(arg):
                tangent = tangent_of(value) if isinstance(value, Tensor) else None
                if tangent is not None:
                    pairs.append(((i, j), tangent))
    return pairs


def _carry(results: list[Any], tangents: list[Any]) -> None:
    for result, tangent in zip(results, tangents, strict=False):
        if tangent is not None and isinstance(result, Tensor):
            set_tangent(result, tangent)


def _carry_saved(results: list[Any], tangents: list[Any]) -> None:
    """What nodes keep of their results has the tangents too: backward may be derived."""
    nodes = {id(r._fn): r._fn for r in results if isinstance(r, Tensor) and r._fn is not None}
    for node in nodes.values():
        for saved in getattr(node, "saved", None) or ():
            if saved.__class__ is tuple and len(saved) == 3 and saved[2] is not None:
                tangent = tangents[saved[2]]
                if tangent is not None and isinstance(saved[0], Tensor):
                    set_tangent(saved[0], tangent)


def _tensors(args: Sequence[Any]) -> Iterator[Tensor]:
    for arg in args:
        yield from (v for v in _listed(arg) if isinstance(v, Tensor))


def _jvp(
    op: Op, args: Sequence[Any], tangents: list[tuple[tuple[int, ...], Tensor]]
) -> tuple[Any, list[Any]]:
    """The results of a call and their tangents, None for those that have no derivative."""
    recording = LOCAL.grad and any(t.requires_grad for t in _tensors(args))
    differentiable = recording or (LOCAL.grad and any(t.requires_grad for _, t in tangents))
    values = [list(a) if isinstance(a, tuple | list) else a for a in args]
    fresh = []
    for place, _ in tangents:
        row: Any = values if len(place) == 1 else values[place[0]]
        leaf = row[place[-1]]
        leaf = aten.alias(leaf) if recording and leaf.requires_grad else _leaf(leaf)
        row[place[-1]] = leaf
        fresh.append(leaf)
    with enable_grad():
        result = op.entry("aten")(*(tuple(v) if isinstance(v, list) else v for v in values))
        outs = _listed(result)
        selection = [i for i, o in enumerate(outs) if isinstance(o, Tensor) and o.requires_grad]
        moved: list[Any] = [None] * len(outs)
        if selection:
            products = _products([outs[i] for i in selection], fresh, tangents, differentiable)
            for i, product in zip(selection, products, strict=True):
                moved[i] = product
        for i, out in enumerate(outs):
            if moved[i] is None and isinstance(out, Tensor) and out.dtype.category >= FLOAT:
                moved[i] = aten.zeros_like(out.detach())
    return _detached(result), moved


def _leaf(tensor: Tensor) -> Tensor:
    leaf = tensor.detach()
    leaf._fn, leaf._nr = AccumulateGrad(leaf), 0
    return leaf


def _products(
    outs: list[Tensor], fresh: list[Tensor], tangents: list[Any], differentiable: bool
) -> Sequence[Any]:
    weights = [aten.zeros_like(o).detach().requires_grad_() for o in outs]
    backward = grad(outs, fresh, tuple(weights), create_graph=True, allow_unused=True)
    linear = [(b, t) for b, (_, t) in zip(backward, tangents, strict=True)
              if b is not None and b.requires_grad]  # fmt: skip
    if not linear:
        return [None] * len(outs)
    vectors = tuple(aten.to(t, b.dtype) if t.dtype is not b.dtype else t for b, t in linear)
    products = grad(
        [b for b, _ in linear], weights, vectors, create_graph=differentiable, allow_unused=True
    )
    return products if differentiable else [None if p is None else p.detach() for p in products]


def _detached(result: Any) -> Any:
    if isinstance(result, Tensor):
        return wrap(result._geom, result._storage) if result._base is None else result.detach()
    if isinstance(result, tuple | list):
        values = [_detached(r) for r in result]
        return type(result)(values)
    return result


def refuse_whole(name: str, *values: Any) -> None:
    """ValueError in torch's words for tensors of integers, which have no tangents."""
    for value in values:
        if isinstance(value, Tensor) and not (value.is_floating_point() or value.is_complex()):
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {value.dtype}"
            )
