"""torch.ao.quantization.fuser_method_mappings: which modules are fused, and to what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindtorch import nn
from mindtorch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from ..nn import intrinsic as nni

__all__ = [
    "fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn", "fuse_linear_bn",
    "get_fuser_method",
]  # fmt: skip

_SIZES = (1, 2, 3)
_CONVS = {getattr(nn, f"Conv{n}d"): n for n in _SIZES}


def _of_size(prefix: str, conv: nn.Module, what: object, kind: str) -> Any:
    if type(conv) not in _CONVS:
        raise NotImplementedError(f"Cannot fuse {kind} modules: {what}")
    return getattr(nni, f"{prefix}{_CONVS[type(conv)]}d")


def _refuse_qat(bn: nn.Module, size: int, names: tuple[str, str, str], end: str) -> None:
    first, norm, outputs = names
    if bn.num_features != size:
        raise AssertionError(f"{outputs} of {first} must match num_features of {norm}{end}")
    if not bn.affine:
        raise AssertionError(f"Only support fusing {norm} with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError(f"Only support fusing {norm} with tracking_running_stats set to True")


def _refuse_modes(what: str, *modules: nn.Module) -> None:
    if len({m.training for m in modules}) > 1:
        raise AssertionError(f"{what} and BN both must be in the same mode (train or eval).")


_CONV_NAMES = ("Conv2d", "BatchNorm2d", "Output channel")


def fuse_conv_bn(is_qat: bool, conv: nn.Module, bn: nn.Module) -> nn.Module:
    """A convolution with the norm in its weights; for training, both as one module."""
    _refuse_modes("Conv", conv, bn)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    _refuse_qat(bn, conv.out_channels, _CONV_NAMES, ".")
    fused: nn.Module = _of_size("ConvBn", conv, (conv, bn), "train")(conv, bn)
    return fused


def fuse_conv_bn_relu(is_qat: bool, conv: nn.Module, bn: nn.Module, relu: nn.Module) -> nn.Module:
    """The same, followed by ReLU."""
    _refuse_modes("Conv", conv, bn, relu)
    if is_qat:
        _refuse_qat(bn, conv.out_channels, _CONV_NAMES, "")
        cls = _of_size("ConvBnReLU", conv, (conv, bn, relu), "train")
        fused: nn.Module = cls(conv, bn, relu)
        return fused
    cls = _of_size("ConvReLU", conv, (conv, bn, relu), "eval")
    fused = cls(fuse_conv_bn_eval(conv, bn), relu)
    return fused


def fuse_linear_bn(is_qat: bool, linear: nn.Module, bn: nn.Module) -> nn.Module:
    """A linear layer with the norm in its weights; for training, both as one module."""
    _refuse_modes("Linear", linear, bn)
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    _refuse_qat(bn, linear.out_features, ("Linear", "BatchNorm1d", "Output features"), "")
    return nni.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: nn.Module, bn: nn.Module) -> nn.Module:
    """A transposed convolution with the norm in its weights."""
    _refuse_modes("ConvTranspose", convt, bn)
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _together(cls: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    return lambda is_qat, first, second: cls(first, second)


_METHODS: dict[tuple[type, ...], Callable[..., nn.Module]] = {
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.Linear, nn.ReLU): _together(nni.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): _together(nni.BNReLU2d),
    (nn.BatchNorm3d, nn.ReLU): _together(nni.BNReLU3d),
}
for _n in _SIZES:
    _conv, _norm, _transposed = (getattr(nn, f"{name}{_n}d")
                                 for name in ("Conv", "BatchNorm", "ConvTranspose"))  # fmt: skip
    _METHODS[_conv, _norm] = fuse_conv_bn
    _METHODS[_conv, _norm, nn.ReLU] = fuse_conv_bn_relu
    _METHODS[_conv, nn.ReLU] = _together(getattr(nni, f"ConvReLU{_n}d"))
    _METHODS[_transposed, _norm] = fuse_convtranspose_bn


def get_fuser_method(
    op_list: tuple[type, ...], additional_fuser_method_mapping: dict[Any, Any] | None = None
) -> Callable[..., nn.Module]:
    """The function that fuses modules of these types; AssertionError where there is none."""
    method = {**_METHODS, **(additional_fuser_method_mapping or {})}.get(op_list)
    if method is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return method
