"""Owns the layers that learn the sizes of their inputs from the first one they see."""

from __future__ import annotations

import sys
from typing import Any

import mindtorch

from ..._compat.method_names import written_out
from ..._tensor.device import DeviceLike
from ..._tensor.dtype import dtype as Dtype
from ..._tensor.tensor import Tensor
from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from . import batchnorm, conv, instancenorm, linear
from .batchnorm import _NormBase
from .conv import _ConvNd
from .module import Module

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
    "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
    "LazyModuleMixin",
]  # fmt: skip


class LazyModuleMixin(Module):
    """Parameters without a shape until the first call; the class becomes `cls_to_become` then."""

    cls_to_become: Any = None
    _load_hook: Any
    _initialize_hook: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, tensor in self._saved_tensors().items():
            as_it_is = keep_vars or is_lazy(tensor)
            destination[prefix + name] = tensor if as_it_is else tensor.detach()

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *_: object) -> None:
        saved: dict[str, Any] = dict(self._saved_tensors())
        for name, tensor in saved.items():
            loaded = state_dict.get(prefix + name)
            if is_lazy(tensor) and loaded is not None and not is_lazy(loaded):
                with mindtorch.no_grad():
                    tensor.materialize(loaded.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives the parameters their shapes from the arguments of the first call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {type(self).__name__} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


def _materialize(module: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    with mindtorch.no_grad():
        for name, shape in shapes.items():
            tensor = getattr(module, name)
            if tensor is not None:
                tensor.materialize(shape)
    module.reset_parameters()


class LazyLinear(LazyModuleMixin, linear.Linear):
    """Linear that takes `in_features` from its first input."""

    cls_to_become = linear.Linear

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__(0, 0, False)
        self.weight: Any = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if self.in_features and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            shape = (self.out_features, self.in_features)
            _materialize(self, {"weight": shape, "bias": (self.out_features,)})


class _LazyConvXdMixin(LazyModuleMixin, _ConvNd):
    """What the lazy convolutions share; `cls_to_become` says how many spatial dims there are."""

    def _start(
        self, out_channels: int, kernel_size: Any, bias: bool, device: Any, dtype: Any,
        **options: Any,
    ) -> None:  # fmt: skip
        # Channels of 0 pass the checks of the sizes that are known.
        base: Any = super()
        base.__init__(0, 0, kernel_size, bias=False, **options)
        self.out_channels = out_channels
        self.weight: Any = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if self.in_channels and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *_: object, **__: object) -> None:
        if not self.has_uninitialized_params():
            return
        n = len(self.kernel_size)
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to"
                f" {type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels: int = input.shape[1 if input.dim() == n + 2 else 0]
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        pair = (self.out_channels, self.in_channels // self.groups)
        if self.transposed:
            pair = (self.in_channels, self.out_channels // self.groups)
        _materialize(self, {"weight": (*pair, *self.kernel_size), "bias": (self.out_channels,)})


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """What the lazy normalizations share."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        base: Any = super()
        base.__init__(0, eps, momentum, False, False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        if self.affine:
            self.weight: Any = UninitializedParameter(**place)
            self.bias: Any = UninitializedParameter(**place) if bias else None
        if self.track_running_stats:
            self.running_mean: Any = UninitializedBuffer(**place)
            self.running_var: Any = UninitializedBuffer(**place)
            self.num_batches_tracked = mindtorch.tensor(0, dtype=mindtorch.int64, device=device)

    def reset_parameters(self) -> None:
        if self.num_features and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self.num_features: int = input.shape[1]
            shape = (self.num_features,)
            names = ("weight", "bias", "running_mean", "running_var")
            _materialize(self, dict.fromkeys(names, shape))


@written_out("__init__")
class _LazyConv(_LazyConvXdMixin):
    """What the lazy convolutions take."""

    def __init__(
        self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
        device: DeviceLike | None = None, dtype: Dtype | None = None,
    ) -> None:  # fmt: skip
        self._start(
            out_channels, kernel_size, bias, device, dtype, stride=stride, padding=padding,
            dilation=dilation, groups=groups, padding_mode=padding_mode,
        )  # fmt: skip


@written_out("__init__")
class _LazyConvTranspose(_LazyConvXdMixin):
    """What the lazy transposed convolutions take."""

    def __init__(
        self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
        padding_mode: str = "zeros", device: DeviceLike | None = None, dtype: Dtype | None = None,
    ) -> None:  # fmt: skip
        self._start(
            out_channels, kernel_size, bias, device, dtype, stride=stride, padding=padding,
            output_padding=output_padding, groups=groups, dilation=dilation,
            padding_mode=padding_mode,
        )  # fmt: skip


class LazyConv1d(_LazyConv, conv.Conv1d):
    """Conv1d that takes its channels from its first input."""

    cls_to_become = conv.Conv1d


class LazyConv2d(_LazyConv, conv.Conv2d):
    """Conv2d that takes its channels from its first input."""

    cls_to_become = conv.Conv2d


class LazyConv3d(_LazyConv, conv.Conv3d):
    """Conv3d that takes its channels from its first input."""

    cls_to_become = conv.Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, conv.ConvTranspose1d):
    """ConvTranspose1d that takes its channels from its first input."""

    cls_to_become = conv.ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, conv.ConvTranspose2d):
    """ConvTranspose2d that takes its channels from its first input."""

    cls_to_become = conv.ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, conv.ConvTranspose3d):
    """ConvTranspose3d that takes its channels from its first input."""

    cls_to_become = conv.ConvTranspose3d


class LazyBatchNorm1d(_LazyNormBase, batchnorm.BatchNorm1d):
    """BatchNorm1d that takes its channels from its first input."""

    cls_to_become = batchnorm.BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, batchnorm.BatchNorm2d):
    """BatchNorm2d that takes its channels from its first input."""

    cls_to_become = batchnorm.BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, batchnorm.BatchNorm3d):
    """BatchNorm3d that takes its channels from its first input."""

    cls_to_become = batchnorm.BatchNorm3d


class LazyInstanceNorm1d(_LazyNormBase, instancenorm.InstanceNorm1d):
    """InstanceNorm1d that takes its channels from its first input."""

    cls_to_become = instancenorm.InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, instancenorm.InstanceNorm2d):
    """InstanceNorm2d that takes its channels from its first input."""

    cls_to_become = instancenorm.InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, instancenorm.InstanceNorm3d):
    """InstanceNorm3d that takes its channels from its first input."""

    cls_to_become = instancenorm.InstanceNorm3d


for _name in __all__:
    _class = globals()[_name]
    if _class.cls_to_become is not None:  # torch keeps each beside the class that it becomes
        _class.__module__ = _class.cls_to_become.__module__
        setattr(sys.modules[_class.__module__], _name, _class)
