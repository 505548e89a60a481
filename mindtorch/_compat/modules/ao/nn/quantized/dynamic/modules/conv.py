"""torch.ao.nn.quantized.dynamic: convolutions of float32 with weights of integers."""

from __future__ import annotations

import warnings
from typing import Any

from mindtorch import Tensor

from ..._kernels import conv_dynamic
from ...modules import conv


class _Dynamic(conv._ConvNd):
    """float32 → float32; the input is quantised on the way."""

    def __init__(self, *args: Any, **options: Any) -> None:
        warnings.warn(
            f"The current implementation of the {self._get_name()} module has poor numerical"
            " accuracy and its use is not recommended",
            stacklevel=2,
        )
        options.pop("reduce_range", None)
        super().__init__(*args, **options)

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:
        self._check(input)
        name = f"conv{'_transpose' * self._transposed}{self._dims}d_dynamic"
        return conv_dynamic(input, *self._weight_bias(), name, self._product, reduce_range)

    def _get_name(self) -> str:
        return "Dynamic" + super()._get_name()


class Conv1d(_Dynamic, conv.Conv1d):
    """`[N, C, L]`."""


class Conv2d(_Dynamic, conv.Conv2d):
    """`[N, C, H, W]`."""


class Conv3d(_Dynamic, conv.Conv3d):
    """`[N, C, D, H, W]`."""


class ConvTranspose1d(_Dynamic, conv.ConvTranspose1d):
    """`[N, C, L]`."""


class ConvTranspose2d(_Dynamic, conv.ConvTranspose2d):
    """`[N, C, H, W]`."""


class ConvTranspose3d(_Dynamic, conv.ConvTranspose3d):
    """`[N, C, D, H, W]`."""
