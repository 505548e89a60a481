"""Owns the layers of fractional max pooling."""

from __future__ import annotations

from typing import Any

from ..._compat.method_names import written_out
from ..._tensor.tensor import Tensor
from ...ops.sizes import _ntuple
from .. import functional as F
from .module import Module

__all__ = ["FractionalMaxPool2d", "FractionalMaxPool3d"]


@written_out("__init__", "forward")
class _FractionalMaxPool(Module):
    """Windows at pseudo-random places; `_n` is the number of spatial dims."""

    _n: int
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        expand, name = _ntuple(self._n), type(self).__name__
        if self._n == 3 and not all(size > 0 for size in expand(kernel_size)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.kernel_size = expand(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else expand(output_size)
        self.output_ratio = None if output_ratio is None else expand(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        pool = F.fractional_max_pool2d if self._n == 2 else F.fractional_max_pool3d
        return pool(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPool):
    """Largest of each window of `[N, C, H, W]`."""

    __module__ = "mindtorch.nn.modules.pooling"

    _n = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Largest of each window of `[N, C, D, H, W]`."""

    __module__ = "mindtorch.nn.modules.pooling"

    _n = 3
