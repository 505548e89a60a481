"""A library with torch's behaviour that runs on NPUs through ACLNN, on cpu and on meta.

`import mindtorch as torch`. This module owns torch's namespace; it touches no device.
"""

import importlib as _importlib
import math as _math
import os as _os
import typing as _typing
from typing import Any as _Any

from ._autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from ._compat import absent_modules as _absent_modules
from ._tensor import loading as _loading
from ._tensor.device import device, get_default_device, set_default_device
from ._tensor.dtype import (
    NAMED as _NAMED_DTYPES,
    bfloat16,
    bool,
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    dtype,
    finfo,
    float,
    float4_e2m1fn_x2,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    iinfo,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    promote_types,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from ._tensor.geometry import Size
from ._tensor.tensor import Tensor
from ._tensor.typed_storage import TypedStorage
from ._tensor.untyped_storage import UntypedStorage
from .torch_version import TorchVersion as _TorchVersion

# What type checkers see; `__getattr__` gives the whole list, which asks for every row.
if _typing.TYPE_CHECKING:
    import mindtorch.ops._functions as _functions  # pyright follows `__all__` of this form alone

    # Without these a checker reads `torch.nn.Linear` by `__getattr__`: as Any.
    from . import amp, autograd, fft, func, linalg, nn, npu, optim, special, utils
    from .ops._functions import *  # noqa: F403 - rendered from the rows

    __all__ = [
        "Size", "Tensor", "bfloat16", "bool", "cdouble", "cfloat", "complex64", "complex128",
        "device",
        "double", "dtype", "enable_grad", "finfo", "float", "float16", "float32", "float64",
        "get_default_device", "get_default_dtype", "half", "iinfo", "inference_mode", "int",
        "int8", "int16", "int32", "int64", "is_grad_enabled", "is_inference_mode_enabled",
        "long", "no_grad",
        "promote_types", "set_default_device", "set_default_dtype", "set_grad_enabled", "short",
        "uint8",
    ]  # fmt: skip
    __all__ += _functions.__all__

# The torch whose behaviour this is, which model code asks for, and the release of this library.
__version__ = _TorchVersion("2.13.0+mindtorch.0.1.0")

pi = 3.141592653589793
e = 2.718281828459045
inf, nan = _math.inf, _math.nan
newaxis = None

_SUBMODULES = frozenset((
    "_C", "__config__", "__future__", "_autograd", "_backends", "_dispatch", "_dynamo",
    "_functional", "_random", "_utils", "accelerator", "amp", "ao", "autograd", "backends",
    "compiler", "cpu", "cuda", "distributed", "distributions", "export", "fft", "func",
    "functional", "futures", "fx", "hub", "jit", "library", "linalg", "masked", "monitor",
    "mps", "multiprocessing", "nested", "nn", "npu", "onnx", "ops", "optim", "overrides", "package",
    "profiler", "quantization", "quasirandom", "random", "return_types", "serialization",
    "signal", "sparse", "special", "storage", "testing", "torch_version", "types", "utils",
    "version", "xpu",
))  # fmt: skip

# Names that live in a module of their own kind, not in a row.
_PLACES = {
    "ScriptFunction": "jit",
    "ScriptModule": "jit",
    "PyTorchFileReader": "_C",
    "PyTorchFileWriter": "_C",
    "DispatchKey": "_C",
    "DispatchKeySet": "_C",
    "OutOfMemoryError": "npu",
    "vmap": "func",
    "Generator": "_random.generator",
    "functionalize": "_dispatch.functionalize",
    "get_rng_state": "_random.generator",
    "initial_seed": "_random.generator",
    "is_anomaly_check_nan_enabled": "autograd.anomaly_mode",
    "is_anomaly_enabled": "autograd.anomaly_mode",
    "load": "serialization",
    "lobpcg": "_functional.lobpcg",
    "manual_seed": "_random.generator",
    "save": "serialization",
    "seed": "_random.generator",
    "set_printoptions": "_functional.printing",
    "set_rng_state": "_random.generator",
    "_check_with": "_compat.checks",
    "_check": "_compat.checks",
    "_check_index": "_compat.checks",
    "_check_value": "_compat.checks",
    "_check_type": "_compat.checks",
    "_check_not_implemented": "_compat.checks",
    "_check_is_size": "_compat.checks",
    "_check_tensor_all_with": "_compat.checks",
    "_check_tensor_all": "_compat.checks",
    "SymInt": "_compat.checks",
    "SymFloat": "_compat.checks",
    "SymBool": "_compat.checks",
    "sym_int": "_compat.checks",
    "sym_float": "_compat.checks",
    "sym_not": "_compat.checks",
    "sym_max": "_compat.checks",
    "sym_min": "_compat.checks",
    "sym_sum": "_compat.checks",
    "sym_ite": "_compat.checks",
    "get_device_module": "_compat.checks",
    "is_warn_always_enabled": "_compat.warn_once",
    "set_warn_always": "_compat.warn_once",
    "Event": "_backends.streams",
    "Stream": "_backends.streams",
    "legacy_contiguous_format": "_functional.queries",
    "autocast": "amp",
    "get_autocast_dtype": "amp",
    "is_autocast_available": "amp",
    "is_autocast_enabled": "amp",
    "channels_last": "_functional.queries",
    "channels_last_3d": "_functional.queries",
    "compile": "compiler",
    "contiguous_format": "_functional.queries",
    "layout": "_functional.queries",
    "memory_format": "_functional.queries",
    "preserve_format": "_functional.queries",
    "strided": "_functional.queries",
    "sparse_coo": "_functional.queries",
    "sparse_csr": "_functional.queries",
    "sparse_csc": "_functional.queries",
    "sparse_bsr": "_functional.queries",
    "sparse_bsc": "_functional.queries",
    "jagged": "_functional.queries",
    "GradScaler": "amp",
    "default_generator": "random",
    "set_autocast_enabled": "amp",
    "set_autocast_dtype": "amp",
    "get_autocast_gpu_dtype": "amp",
    "get_autocast_cpu_dtype": "amp",
    "set_autocast_gpu_dtype": "amp",
    "set_autocast_cpu_dtype": "amp",
    "is_autocast_cpu_enabled": "amp",
    "set_autocast_cpu_enabled": "amp",
    "is_autocast_cache_enabled": "amp",
    "set_autocast_cache_enabled": "amp",
    "clear_autocast_cache": "amp",
    "autocast_increment_nesting": "amp",
    "autocast_decrement_nesting": "amp",
    "cond": "_higher_order_ops.control",
    "while_loop": "_higher_order_ops.control",
    **dict.fromkeys((d._name for d in _NAMED_DTYPES), "_tensor.dtype"),
    **dict.fromkeys(("chalf", "complex32"), "_tensor.dtype"),
    "DisableTorchFunction": "_C",
    "DisableTorchFunctionSubclass": "_C",
    "StorageBase": "_tensor.untyped_storage",
    "thread_safe_generator": "random",
    "Tag": "ops.namespaces",
    "hspmm": "sparse",
    "smm": "sparse",
    "sparse_bsc_tensor": "sparse",
    "sparse_bsr_tensor": "sparse",
    "sparse_compressed_tensor": "sparse",
    "sparse_coo_tensor": "sparse",
    "sparse_csc_tensor": "sparse",
    "sparse_csr_tensor": "sparse",
    "sspaddmm": "sparse",
    "_empty_affine_quantized": "_quantized",
    "_empty_per_channel_affine_quantized": "_quantized",
    "_make_per_channel_quantized_tensor": "_quantized",
    "_make_per_tensor_quantized_tensor": "_quantized",
    "dequantize": "_quantized",
    "int_repr": "_quantized",
    "per_channel_affine": "_quantized",
    "per_channel_affine_float_qparams": "_quantized",
    "per_channel_symmetric": "_quantized",
    "per_tensor_affine": "_quantized",
    "per_tensor_symmetric": "_quantized",
    "q_per_channel_axis": "_quantized",
    "q_per_channel_scales": "_quantized",
    "q_per_channel_zero_points": "_quantized",
    "q_scale": "_quantized",
    "q_zero_point": "_quantized",
    "qscheme": "_quantized",
    "quantize_per_channel": "_quantized",
    "quantize_per_tensor": "_quantized",
    "quantize_per_tensor_dynamic": "_quantized",
    "_weight_norm": "nn.utils.weight_norm",
}


# `mindtorch.jit` and its like are in a folder of their own (see there).
__path__.append(_os.path.join(_os.path.dirname(__file__), "_compat", "modules"))
_absent_modules.install()


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of tensors made from Python floats; TypeError for a non-floating one."""
    from ._dispatch import plans
    from ._tensor import dtype as _dtype

    _dtype.set_default_dtype(d)
    plans.clear()


def __getattr__(name: str) -> _Any:
    if name == "__all__":
        return _public_names()
    if name.startswith("__") and name not in _SUBMODULES:
        raise AttributeError(f"module 'mindtorch' has no attribute '{name}'")
    _loading.load()
    if name in _SUBMODULES:
        return _importlib.import_module("." + name, __name__)
    if name in _PLACES:
        attribute = getattr(_importlib.import_module("." + _PLACES[name], __name__), name)
    else:
        from ._functional import publish as _functional

        attribute = (
            _functional.function(name)
            if name in _functional.FUNCTIONS
            else _absent_modules.refused_name(name)
        )
    globals()[name] = attribute
    return attribute


def _public_names() -> list[str]:
    """What `from mindtorch import *` gives: as torch's, without what it leaves out of its list."""
    tables = _absent_modules.refused_names()
    modules = {n for n, value in globals().items() if hasattr(value, "__spec__")} | _SUBMODULES
    named = {name for name in (*__dir__(), *tables[""]) if not name.startswith("_")}
    return sorted(named - modules - frozenset(tables["*"]))


def __dir__() -> list[str]:
    from ._functional import publish as _functional

    _loading.load()
    return sorted({*globals(), *_functional.FUNCTIONS, *_SUBMODULES, *_PLACES})
