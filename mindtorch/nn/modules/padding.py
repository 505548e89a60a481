"""Owns the padding layers: one class per mode and number of spatial dimensions."""

from __future__ import annotations

from ..._compat.method_names import written_out
from ..._tensor.tensor import Tensor
from ...ops.sizes import _ntuple
from .. import functional as F
from .module import Module

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


@written_out("forward", "extra_repr")
class _Pad(Module):
    """Pads n spatial dims by (left, right) pairs, last dimension first."""

    _n: int
    _mode: str
    padding: tuple[int, ...]

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._n)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


@written_out("__init__")
class _ConstantPadNd(_Pad):
    _mode = "constant"
    value: float

    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads by a value."""

    _n = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads by a value."""

    _n = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads by a value."""

    _n = 3


@written_out("__init__", "extra_repr")
class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Pads by 0."""

    _n = 1


class ZeroPad2d(_ZeroPad):
    """Pads by 0."""

    _n = 2


class ZeroPad3d(_ZeroPad):
    """Pads by 0."""

    _n = 3


@written_out("__init__")
class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads by mirroring at the edge."""

    _n = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads by mirroring at the edge."""

    _n = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads by mirroring at the edge."""

    _n = 3


@written_out("__init__")
class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pads by repeating the edge."""

    _n = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads by repeating the edge."""

    _n = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads by repeating the edge."""

    _n = 3


@written_out("__init__")
class _CircularPadNd(_Pad):
    _mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        n = self._n
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pads by wrapping around."""

    _n = 1


class CircularPad2d(_CircularPadNd):
    """Pads by wrapping around."""

    _n = 2


class CircularPad3d(_CircularPadNd):
    """Pads by wrapping around."""

    _n = 3
