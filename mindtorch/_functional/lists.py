"""Owns the forms of `_foreach_*` that write: each tensor of the list receives its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._autograd.grad_mode import LOCAL, MODES
from .._dispatch.bind import can_cast
from .._tensor.tensor import Tensor
from ..ops.rows.foreach.lists import BINARY, POINTWISE, UNARY
from ..ops.rules import c_name
from ..ops.spec import aten
from .printing import PLAIN
from .publish import surface

WRITERS = (*(n for n in UNARY if n != "clone"), *BINARY, *POINTWISE, "lerp")

_CLAMPS = ("clamp_max", "clamp_min", "maximum", "minimum")  # torch names their dtypes as C++ does


def _writer(name: str) -> Callable[..., Sequence[Tensor]]:
    def write(self: Sequence[Tensor], *args: Any, **options: Any) -> Sequence[Tensor]:
        operands = args[:1] if name == "copy" else (self, *args)
        if write_by_lists(name, self, *operands, **({} if name == "copy" else options)):
            return self
        if len(self) > 1 and _overlap(self, args):  # each sees what was written before
            for i in range(len(self)):
                write(self[i : i + 1], *[_member(v, i) for v in args], **options)
            return self
        results = getattr(aten, f"_foreach_{name}")(self, *args, **options)
        for target, result in zip(self, results, strict=True):
            if tuple(result.shape) != tuple(target.shape):
                raise RuntimeError(
                    f"output with shape {list(target.shape)} doesn't match the broadcast shape"
                    f" {list(result.shape)}"
                )
            if name != "copy" and not can_cast(result.dtype, target.dtype):
                dtype_name = c_name(target.dtype) if name in _CLAMPS else target.dtype.legacy
                raise RuntimeError(
                    f"result type {result.dtype.legacy} can't be cast to the desired output type"
                    f" {dtype_name}"
                )
            target.copy_(result)
        return self

    write.__name__ = write.__qualname__ = f"_foreach_{name}_"
    write.__doc__ = f"_foreach_{name}, written to the tensors of the list."
    return write


def _overlap(targets: Sequence[Tensor], operands: Sequence[Any]) -> bool:
    """Whether plain targets share memory with each other, or with what goes with another."""
    lists = [targets, *(v for v in operands if isinstance(v, list | tuple))]
    if any(len(members) != len(targets) for members in lists):
        return False
    if not all(PLAIN.issuperset(map(type, m)) for m in lists if isinstance(m[0], Tensor)):
        return False
    owners = {id(t._storage): i for i, t in enumerate(targets)}
    return len(owners) < len(targets) or any(
        isinstance(t, Tensor) and owners.get(id(t._storage), i) != i
        for members in lists
        for i, t in enumerate(members)
    )


def _member(operand: Any, i: int) -> Any:
    """What of an operand goes with member i."""
    listed = isinstance(operand, list | tuple) or (isinstance(operand, Tensor) and operand.ndim)
    return operand[i : i + 1] if listed else operand


def write_by_lists(name: str, targets: Sequence[Tensor], *operands: Any, **options: Any) -> bool:
    """Whether a device's operator over lists wrote `_foreach_{name}` of the operands to `targets`.

    False, with nothing written, where there is none, a gradient is recorded, or a mode sees calls.
    """
    lists = (targets, *(v for v in operands if isinstance(v, list | tuple)))
    launches = _launches([t for members in lists for t in members if isinstance(t, Tensor)])
    return launches is not None and launches.write(name, targets, operands, options)


def norms_of(tensors: Sequence[Tensor], order: float) -> list[Tensor]:
    """The vector norm of each tensor, by a device's operator over lists where it has one."""
    launches = _launches(tensors)
    if launches is not None:
        norms = [aten.empty((), dtype=t.dtype, device=t.device) for t in tensors]
        if launches.write_norms(norms, tensors, order):
            return norms
    return [aten.linalg_vector_norm(t, order) for t in tensors]


def unscale_by_lists(grads: Sequence[Tensor], overflow: Tensor, factor: Tensor) -> bool:
    """Whether a device's operator multiplied gradients by `factor` and told `overflow`."""
    launches = _launches([*grads, overflow, factor])
    return launches is not None and launches.unscale(grads, overflow, factor)


def _launches(tensors: Sequence[Tensor]) -> Any:
    """The launches over lists of the device that tensors are on; None where there are none, a
    gradient is recorded, or a mode sees calls."""
    if MODES.active or not tensors or not PLAIN.issuperset(map(type, tensors)):
        return None
    recorded = LOCAL.grad and any(t.requires_grad for t in tensors)
    if recorded or tensors[0].device.type != "npu":
        return None
    from .._backends.npu import lists

    return lists


def results_of(name: str, self: Sequence[Tensor], *args: Any, **options: Any) -> list[Tensor]:
    """`_foreach_{name}` of tensors of one dtype, by a device's operator where it has one."""
    fresh = [aten.empty_like(t) for t in self]
    if write_by_lists(name, fresh, self, *args, **options):
        return fresh
    return list(getattr(aten, f"_foreach_{name}")(self, *args, **options))


@surface(method=False)
def _foreach_zero_(self: Sequence[Tensor]) -> Sequence[Tensor]:
    """Zeros in each tensor of the list, which is returned; RuntimeError for an empty list."""
    if not self:
        raise RuntimeError("Tensor list must have at least one tensor.")
    if write_by_lists("zero", self):
        return self
    for target in self:
        target.zero_()
    return self


def install() -> None:
    """Publish a form that writes for each row that has one."""
    for name in WRITERS:
        surface(method=False)(_writer(name))


install()
