"""torch_npu.optim: optimizers that update all parameters at once, with torch's arithmetic.

Source: Ascend Extension for PyTorch, "torch_npu.optim": signatures of torch_npu 2.13.0. The
groups of tensors go through torch's foreach steps.
"""

from __future__ import annotations

from typing import Any

from .._tensor.tensor import Tensor
from ..nn.utils import clip_grad_norm_
from ..optim import SGD, Adadelta, Adam, AdamW, RMSprop

__all__ = ["NpuFusedAdadelta", "NpuFusedAdam", "NpuFusedAdamW", "NpuFusedRMSprop",
           "NpuFusedSGD"]  # fmt: skip


class _Fused:
    """What Ascend's fused optimizers have beside torch's."""

    param_groups: list[dict[str, Any]]

    def clip_optimizer_grad_norm_fused_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale all gradients so that their norm is at most `max_norm`; gives the norm before."""
        parameters = [p for group in self.param_groups for p in group["params"]]
        return clip_grad_norm_(parameters, max_norm, norm_type)


class NpuFusedAdam(_Fused, Adam):
    """torch.optim.Adam."""

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False):  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad)


class NpuFusedAdamW(_Fused, AdamW):
    """torch.optim.AdamW."""

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False):  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad)


class NpuFusedSGD(_Fused, SGD):
    """torch.optim.SGD."""

    def __init__(self, params: Any, lr: float, momentum: float = 0.0, dampening: float = 0.0,
                 weight_decay: float = 0.0, nesterov: bool = False):  # fmt: skip
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov)


class NpuFusedRMSprop(_Fused, RMSprop):
    """torch.optim.RMSprop."""

    def __init__(self, params: Any, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0, momentum: float = 0, centered: bool = False):  # fmt: skip
        super().__init__(params, lr, alpha, eps, weight_decay, momentum, centered)


class NpuFusedAdadelta(_Fused, Adadelta):
    """torch.optim.Adadelta."""

    def __init__(self, params: Any, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0):  # fmt: skip
        super().__init__(params, lr, rho, eps, weight_decay)
