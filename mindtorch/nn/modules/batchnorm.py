"""Owns the batch normalizations and the running statistics that instance norm shares."""

from __future__ import annotations

from typing import Any

import mindtorch

from ..._autograd.grad_mode import LOCAL
from ..._autograd.layer import refuse_captured
from ..._compat.method_names import written_out
from ..._tensor.device import DeviceLike, device as Device
from ..._tensor.dtype import dtype as Dtype
from ..._tensor.tensor import Tensor
from .. import functional as F, init
from ..parameter import Parameter
from .module import Module

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]


@written_out("__init__")
class _NormBase(Module):
    """Scale, shift and running statistics of C channels."""

    _version = 2
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, on in (("weight", affine), ("bias", affine and bias)):
            if on:
                empty = mindtorch.empty(num_features, device=device, dtype=dtype)
                setattr(self, name, Parameter(empty))
            else:
                self.register_parameter(name, None)
        self._make_statistics(device, dtype)
        self.reset_parameters()

    def _make_statistics(self, device: Device | str | int | None, dtype: Dtype | None) -> None:
        if not self.track_running_stats:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
            return
        n = self.num_features
        self.register_buffer("running_mean", mindtorch.zeros(n, device=device, dtype=dtype))
        self.register_buffer("running_var", mindtorch.ones(n, device=device, dtype=dtype))
        count = mindtorch.tensor(0, dtype=mindtorch.int64, device=device)
        self.register_buffer("num_batches_tracked", count)

    def reset_running_stats(self) -> None:
        """Sets the running mean to 0, the variance to 1, the count to 0."""
        if self.track_running_stats:
            if self.running_mean is not None:
                self.running_mean.zero_()
            if self.running_var is not None:
                self.running_var.fill_(1)
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Sets weight to 1, bias to 0, and the statistics to their start."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # Checkpoints of version 1 have no count.
            counter = self.num_batches_tracked
            known = counter is not None and counter.device.type != "meta"
            state_dict[key] = counter if known else mindtorch.tensor(0, dtype=mindtorch.int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    """Normalizes each channel over batch and space."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            if LOCAL.derivatives:
                refuse_captured(self.num_batches_tracked, lambda: "add_.Tensor")
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # cumulative average
                factor = 1.0 / float(self.num_batches_tracked)
        own_statistics = self.running_mean is not None or self.running_var is not None
        use_batch = self.training or not own_statistics
        track = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if track else None,
            self.running_var if track else None,
            self.weight,
            self.bias,
            use_batch,
            factor,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """`[N, C]` or `[N, C, L]`."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """`[N, C, H, W]`."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """`[N, C, D, H, W]`."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class SyncBatchNorm(_BatchNorm):
    """Batch norm over a process group; with one process it is batch norm."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replaces every batch norm of a tree by this class, parameters and statistics kept."""
        result = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            for name in ("_parameters", "_buffers"):
                converted.__dict__[name] = dict(module.__dict__[name])
            converted.training = module.training
            result = converted
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
