"""Layers of torch_npu.contrib, made of torch's functions.

Source: Ascend Extension for PyTorch, "torch_npu.contrib.module".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import mindtorch

from ..._tensor.tensor import Tensor
from ...nn import Module, SiLU, functional

Swish = SiLU


class LabelSmoothingCrossEntropy(Module):
    """Cross entropy of `num_classes` whose targets give `smooth_factor` to the other classes."""

    def __init__(self, num_classes: int = 1000, smooth_factor: float = 0.0):
        super().__init__()
        self.num_classes = num_classes
        self.on_value = 1.0 - smooth_factor
        self.off_value = smooth_factor / (num_classes - 1)

    def forward(self, pred: Tensor, target: Tensor) -> Tensor:
        """The mean over the batch; `pred` is `[N, C]`, `target` `[N]`."""
        is_target = functional.one_hot(target, self.num_classes).bool()
        weights = mindtorch.where(is_target, self.on_value, self.off_value).to(pred.dtype)
        return -(functional.log_softmax(pred, -1) * weights).sum(-1).mean()


class NpuDropPath(Module):
    """Drops whole samples with probability `drop_prob` in training, and scales the others."""

    def __init__(self, drop_prob: float | None = None):
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x: Tensor) -> Tensor:
        """`x` `[N, *]`."""
        if not self.drop_prob or not self.training:
            return x
        rate = 1 - self.drop_prob
        mask = mindtorch.rand((x.size(0), *(1,) * (x.dim() - 1)), device=x.device) < rate
        return x / rate * mask.to(x.dtype)


class ChannelShuffle(Module):
    """The halves of the channels of two tensors, mixed channel by channel."""

    def __init__(self, in_channels: int, groups: int = 2, split_shuffle: bool = True):
        super().__init__()
        if groups != 2:
            raise NotImplementedError(f"ChannelShuffle: groups is 2 here, not {groups}")
        self.in_channels, self.split_shuffle = in_channels, split_shuffle

    def forward(self, x1: Tensor, x2: Tensor) -> Any:
        """`x1` and `x2` `[N, C, H, W]`: their channels by turns, in two halves or whole."""
        mixed = mindtorch.stack((x1, x2), 2).flatten(1, 2)
        return mixed.chunk(2, 1) if self.split_shuffle else mixed


class Prefetcher:
    """Gives the batches of a loader on npu; `next()` gives (None, None) after the last."""

    def __init__(self, loader: Iterable[Any], stream: object = None):
        self.loader: Iterator[Any] = iter(loader)

    def next(self) -> tuple[Any, Any]:
        """The next (input, target)."""
        pair = next(self.loader, None)
        if pair is None:
            return None, None
        batch, target = pair
        return batch.npu(non_blocking=True), target.npu(non_blocking=True)
