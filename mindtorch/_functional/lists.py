"""Owns the forms of `_foreach_*` that write: each tensor of the list receives its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor.tensor import Tensor
from ..ops.rows.foreach.lists import BINARY, POINTWISE, UNARY
from ..ops.spec import aten
from .publish import surface

WRITERS = (*(n for n in UNARY if n != "clone"), *BINARY, *POINTWISE, "lerp")


def _writer(name: str) -> Callable[..., Sequence[Tensor]]:
    def write(self: Sequence[Tensor], *args: Any, **options: Any) -> Sequence[Tensor]:
        results = getattr(aten, f"_foreach_{name}")(self, *args, **options)
        for target, result in zip(self, results, strict=True):
            if tuple(result.shape) != tuple(target.shape):
                raise RuntimeError(
                    f"output with shape {list(target.shape)} doesn't match the broadcast shape"
                    f" {list(result.shape)}"
                )
            target.copy_(result)
        return self

    write.__name__ = write.__qualname__ = f"_foreach_{name}_"
    write.__doc__ = f"_foreach_{name}, written to the tensors of the list."
    return write


@surface(method=False)
def _foreach_zero_(self: Sequence[Tensor]) -> Sequence[Tensor]:
    """Zeros in each tensor of the list, which is returned."""
    for target in self:
        target.zero_()
    return self


def install() -> None:
    """Publish a form that writes for each row that has one."""
    for name in WRITERS:
        surface(method=False)(_writer(name))


install()
