"""Owns the instance normalizations."""

from __future__ import annotations

import warnings
from typing import Any

from ..._tensor.device import DeviceLike
from ..._tensor.dtype import dtype as Dtype
from ..._tensor.tensor import Tensor
from .. import functional as F
from .batchnorm import _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


_OLD_STATISTICS = (
    "Unexpected running stats buffer(s) {names} for {cls} with track_running_stats=False. If"
    " state_dict is a checkpoint saved before 0.4.0, this may be expected because {cls} does not"
    " track running stats by default since 0.4.0. Please remove these keys from state_dict. If the"
    " running stats are actually needed, instead set track_running_stats=True in {cls} to enable"
    " them. See the documentation of {cls} for details."
)


class _InstanceNorm(_NormBase):
    """Normalizes each channel of each sample over space; `_dims` are the ranks with a batch."""

    _dims: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, *lists: list[str]
    ) -> None:
        names = [k for k in ("running_mean", "running_var") if prefix + k in state_dict]
        if local_metadata.get("version") is None and names and not self.track_running_stats:
            text = " and ".join(f'"{prefix}{k}"' for k in names)
            lists[2].append(_OLD_STATISTICS.format(names=text, cls=type(self).__name__))
            state_dict = {
                k: v for k, v in state_dict.items() if k.removeprefix(prefix) not in names
            }
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, *lists)

    def _check_input_dim(self, input: Tensor) -> None:
        n = self._dims
        if input.dim() not in (n - 1, n):
            raise ValueError(f"expected {n - 1}D or {n}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        batched = input.dim() == self._dims
        channels = input.size(1 if batched else 0)
        if channels != self.num_features:
            dim = 1 if batched else 0
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features "
                    f"({self.num_features}), but got: {channels}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features. You can silence this"
                " warning by not passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        out = F.instance_norm(
            input if batched else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return out if batched else out.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """`[N, C, L]` or `[C, L]`."""

    _dims = 3


class InstanceNorm2d(_InstanceNorm):
    """`[N, C, H, W]` or `[C, H, W]`."""

    _dims = 4


class InstanceNorm3d(_InstanceNorm):
    """`[N, C, D, H, W]` or `[C, D, H, W]`."""

    _dims = 5
