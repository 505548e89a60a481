"""torch.ao.nn.quantized.modules.utils: weights as integers."""

from __future__ import annotations

import abc
from typing import Any

import mindtorch as torch
from mindtorch import Tensor, nn


class WeightedQuantizedModule(nn.Module, metaclass=abc.ABCMeta):
    """A layer whose weights are integers."""

    @classmethod
    @abc.abstractmethod
    def from_reference(
        cls, ref_module: nn.Module, output_scale: float, output_zero_point: int
    ) -> Any:
        """From a layer that computes in floating point."""


def _quantize_weight(float_wt: Tensor, observer: nn.Module) -> Any:
    """A weight as qint8 by an observer's scale, within its range."""
    scale, zero = observer.calculate_qparams()
    weight = float_wt.detach()
    source = getattr(observer, "activation_post_process", observer)
    if observer.qscheme == torch.per_channel_affine_float_qparams:
        raise NotImplementedError(
            "torch.ao.nn.quantized: mindtorch has no weights with zero points in floating point"
        )
    if observer.qscheme in (torch.per_channel_affine, torch.per_channel_symmetric):
        q = torch.quantize_per_channel(
            weight, scale.double(), zero.long(), observer.ch_axis, torch.qint8
        )
    else:
        q = torch.quantize_per_tensor(weight, float(scale), int(zero), torch.qint8)
    if source.quant_min > -128 or source.quant_max < 127:
        q = q._with(q._ints.clamp(source.quant_min, source.quant_max))
    return q
