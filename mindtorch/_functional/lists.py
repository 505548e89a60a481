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


def write_by_lists(name: str, targets: Sequence[Tensor], *operands: Any, **options: Any) -> bool:
    """Whether a device's operator over lists wrote `_foreach_{name}` of the operands to `targets`.

    False, with nothing written, where there is none, a gradient is recorded, or a mode sees calls.
    """
    if MODES.active or not len(targets) or not isinstance(targets[0], Tensor):
        return False
    if targets[0].device.type != "npu":
        return False
    lists = (targets, *(v for v in operands if isinstance(v, list | tuple)))
    tensors = [t for members in lists for t in members if isinstance(t, Tensor)]
    if not PLAIN.issuperset(map(type, tensors)) or (
        LOCAL.grad and any(t.requires_grad for t in tensors)
    ):
        return False
    from .._backends.npu import lists as launches

    return launches.write(name, targets, operands, options)


def results_of(name: str, self: Sequence[Tensor], *args: Any, **options: Any) -> list[Tensor]:
    """`_foreach_{name}` of tensors of one dtype, by a device's operator where it has one."""
    fresh = [aten.empty_like(t) for t in self]
    if write_by_lists(name, fresh, self, *args, **options):
        return fresh
    return list(getattr(aten, f"_foreach_{name}")(self, *args, **options))


@surface(method=False)
def _foreach_zero_(self: Sequence[Tensor]) -> Sequence[Tensor]:
    """Zeros in each tensor of the list, which is returned."""
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
