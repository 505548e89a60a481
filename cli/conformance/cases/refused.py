"""Owns which dtypes torch refuses for a row although the row's cpu code computes something.

What no torch program can ask for is nothing that a device must answer (torch 2.13, CPU kernels:
"\"frac_cpu\" not implemented for 'Long'").
"""

from __future__ import annotations

from typing import Final

_INTS: Final = ("uint8", "int8", "int16", "int32", "int64")
_COMPLEX: Final = ("complex64", "complex128")
_BOOL: Final = ("bool",)

_REFUSED: Final = (
    (
        _BOOL,
        "arange linspace mm bmm addmm baddbmm matmul linear relu threshold_backward pow "
        "remainder fmod logaddexp bitwise_left_shift bitwise_right_shift addcmul lerp "
        "ceil floor trunc round abs gelu mish leaky_relu elu hardtanh hardswish softplus "
        "softshrink hardshrink threshold _prelu_kernel convolution "
        "_convolution_weight_grad avg_pool2d avg_pool2d_backward avg_pool3d "
        "avg_pool3d_backward _adaptive_avg_pool2d _adaptive_avg_pool2d_backward "
        "_adaptive_avg_pool3d _adaptive_avg_pool3d_backward adaptive_max_pool2d "
        "adaptive_max_pool3d frac sign silu log_sigmoid",
    ),
    (
        _INTS,
        "logaddexp lerp tanh_backward sigmoid_backward frac gelu silu mish leaky_relu elu "
        "hardswish softplus log_sigmoid softshrink hardshrink _prelu_kernel avg_pool2d "
        "avg_pool2d_backward avg_pool3d avg_pool3d_backward _adaptive_avg_pool2d "
        "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d _adaptive_avg_pool3d_backward "
        "adaptive_max_pool2d adaptive_max_pool3d nll_loss_forward _nll_loss_weighted "
        "nll_loss_backward _nll_loss_backward_weighted hardsigmoid "
        "_convolution_weight_grad",
    ),
    (
        _COMPLEX,
        "arange relu threshold_backward maximum minimum xlogy lt le gt ge clamp "
        "clamp_min.Tensor clamp_max.Tensor erf erfc digamma sign round gelu mish "
        "leaky_relu elu hardtanh hardswish hardsigmoid softplus log_sigmoid hardshrink "
        "threshold _prelu_kernel convolution _convolution_weight_grad avg_pool2d "
        "avg_pool2d_backward avg_pool3d avg_pool3d_backward _adaptive_avg_pool2d "
        "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d _adaptive_avg_pool3d_backward "
        "adaptive_max_pool2d adaptive_max_pool3d nll_loss_forward _nll_loss_weighted "
        "nll_loss_backward _nll_loss_backward_weighted",
    ),
)  # fmt: skip


def refused(name: str, dtype: str) -> bool:
    """Whether torch refuses `dtype` for row `name`."""
    return any(dtype in dtypes and name in names.split() for dtypes, names in _REFUSED)
