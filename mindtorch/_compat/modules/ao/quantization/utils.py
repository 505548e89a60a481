"""torch.ao.quantization.utils: ranges of integers, and what a QConfig says."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeVar, cast

import mindtorch as torch
from mindtorch import Tensor
from mindtorch._tensor.dtype import float8_e4m3fn, float8_e5m2, uint16
from mindtorch.nn import Module
from mindtorch.nn.utils.parametrize import is_parametrized

DEPRECATION_WARNING = (
    "torch.ao.quantization is deprecated and will be removed in 2.10. \n"
    "For migrations of users: \n"
    "1. Eager mode quantization (torch.ao.quantization.quantize, "
    "torch.ao.quantization.quantize_dynamic), please migrate to use torchao eager mode "
    "quantize_ API instead \n"
    "2. FX graph mode quantization (torch.ao.quantization.quantize_fx.prepare_fx,"
    "torch.ao.quantization.quantize_fx.convert_fx, please migrate to use torchao pt2e "
    "quantization API instead (prepare_pt2e, convert_pt2e) \n"
    "3. pt2e quantization has been migrated to torchao "
    "(https://github.com/pytorch/ao/tree/main/torchao/quantization/pt2e) \n"
    "see https://github.com/pytorch/ao/issues/2259 for more details"
)

_F = TypeVar("_F", bound=Callable[..., Any])


def deprecated(function: _F) -> _F:
    """The function, which says at each call that torch gives quantisation up."""

    @functools.wraps(function)
    def warned(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(DEPRECATION_WARNING, DeprecationWarning, stacklevel=2)
        return function(*args, **kwargs)

    return cast(_F, warned)


_RANGES = {
    torch.qint8: (-128, 127), torch.int8: (-128, 127), torch.quint8: (0, 255),
    torch.uint8: (0, 255), torch.qint32: (-(2**31), 2**31 - 1), torch.int32: (-(2**31), 2**31 - 1),
    uint16: (0, 2**16 - 1), torch.int16: (-(2**15), 2**15 - 1),
}  # fmt: skip


class QuantType(IntEnum):
    """When activations are quantised."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


def is_per_tensor(qscheme: object) -> bool:
    """Whether one scale serves all elements."""
    return qscheme in (torch.per_tensor_affine, torch.per_tensor_symmetric)


def is_per_channel(qscheme: object) -> bool:
    """Whether each channel has a scale."""
    return qscheme in (torch.per_channel_affine, torch.per_channel_affine_float_qparams,
                       torch.per_channel_symmetric)  # fmt: skip


def is_symmetric(qscheme: object) -> bool:
    """Whether zero is in the middle."""
    return qscheme in (torch.per_tensor_symmetric, torch.per_channel_symmetric)


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """AssertionError for a range without 0, or of one number."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if quant_min >= quant_max:
        raise AssertionError(
            "qmin must be strictly less than qmax for user-specified quantization range."
        )


def calculate_qmin_qmax(
    quant_min: int, quant_max: int, has_customized_qrange: bool, dtype: torch.dtype,
    reduce_range: bool,
) -> tuple[int, int]:  # fmt: skip
    """The least and the greatest integer; `reduce_range` leaves one bit out."""
    if not has_customized_qrange:
        low, high = _RANGES.get(dtype, (0, 15))
        narrow = reduce_range and (low, high) in ((-128, 127), (0, 255))
        return (low // 2, high // 2) if narrow else (low, high)
    length = quant_max - quant_min + 1
    most = {torch.qint8: 256, torch.int8: 256, torch.qint32: 2**32, torch.int32: 2**32}.get(dtype)
    if most is not None and not 0 < length <= most:
        raise AssertionError(
            f"quantization range should be positive and not exceed the maximum bit range (={most})."
        )
    return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)


def check_min_max_valid(min_val: Tensor, max_val: Tensor) -> bool:
    """Whether something was observed; AssertionError where the least exceeds the greatest."""
    scalar = min_val.dim() == 0 or max_val.dim() == 0
    unseen = min_val.numel() == 0 or max_val.numel() == 0
    if unseen or (scalar and min_val == float("inf") and max_val == float("-inf")):
        warnings.warn(
            "must run observer before calling calculate_qparams. Returning default values.",
            stacklevel=2,
        )
        return False
    if torch.any(min_val > max_val):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


def has_no_children_ignoring_parametrizations(module: Module) -> bool:
    """Whether a module is a leaf."""
    children = set(module._modules)
    return not children or (is_parametrized(module) and children == {"parametrizations"})


def get_combined_dict(default_dict: dict[Any, Any], additional: dict[Any, Any]) -> dict[Any, Any]:
    """Both; the second wins."""
    return {**default_dict, **additional}


def get_qparam_dict(observer_or_fake_quant: Module) -> dict[str, object]:
    """qscheme, dtype, scale and zero_point, axis, and the range where it is given."""
    source = observer_or_fake_quant
    result: dict[str, object] = {"qscheme": getattr(source, "qscheme", None), "dtype": source.dtype}
    if result["qscheme"] is None:
        return result
    if is_per_channel(result["qscheme"]):
        result["axis"] = source.ch_axis
    if is_symmetric(result["qscheme"]):
        one = is_per_tensor(result["qscheme"])
        result["qscheme"] = torch.per_tensor_affine if one else torch.per_channel_affine
    result["scale"], result["zero_point"] = source.calculate_qparams()
    for name in ("quant_min", "quant_max"):
        if hasattr(source, name):
            result[name] = getattr(source, name)
    return result


def activation_dtype(qconfig: Any) -> torch.dtype:
    """The dtype of activations."""
    if qconfig is None:
        raise AssertionError("qconfig must be provided to determine activation dtype")
    return qconfig.activation().dtype


def weight_dtype(qconfig: Any) -> torch.dtype:
    """The dtype of weights."""
    if qconfig is None:
        raise AssertionError("qconfig must be provided to determine weight dtype")
    return qconfig.weight().dtype


def get_qconfig_dtypes(qconfig: Any) -> tuple[torch.dtype, torch.dtype, bool]:
    """Dtypes of activations and weights; whether activations are quantised at run time."""
    if qconfig is None:
        raise AssertionError("qconfig must be provided to extract dtypes")
    activation = qconfig.activation()
    dynamic = getattr(activation, "is_dynamic", False)
    return activation.dtype, qconfig.weight().dtype, dynamic


_STATIC = (torch.quint8, torch.qint8, torch.quint4x2, torch.qint32, torch.uint8, torch.int8,
           torch.int16, torch.int32, float8_e5m2, float8_e4m3fn)  # fmt: skip


def get_quant_type(qconfig: Any) -> QuantType:
    """When what is quantised."""
    activation, weight, dynamic = get_qconfig_dtypes(qconfig)
    if weight in _STATIC or weight is torch.float16:
        if dynamic:
            return QuantType.DYNAMIC
        if activation in (_STATIC if weight in _STATIC else (torch.float16,)):
            return QuantType.STATIC
        if weight in _STATIC:
            return QuantType.WEIGHT_ONLY
    raise Exception(
        f"Unrecognized dtype combination in get_quant_type: activation({activation}),"
        f"weight({weight})"
    )
