"""A library with torch's behaviour that runs on NPUs through ACLNN, on cpu and on meta.

`import mindtorch as torch`. This module owns torch's namespace; it touches no device.
"""

import math as _math
from typing import Any as _Any

from . import (
    _C,
    _arithmetic,
    _choice,
    _creation,
    _dlpack,
    _functional,
    _indexing,
    _methods,
    _pickling,
    _printing,
    _products,
    _reductions,
    autograd,
)
from . import ops as _ops
from ._autograd import surface as _autograd_surface
from ._autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from ._backends.registry import registry as _registry
from ._device import device, get_default_device, set_default_device
from ._dispatch import plans as _plans
from ._dispatch.functionalize import functionalize
from ._dtype import (
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
)  # fmt: skip
from ._geometry import Size
from ._printing import set_printoptions
from ._queries import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)  # fmt: skip
from ._tensor import Tensor

# Names that are here before first use; all others come through `__getattr__`.
__all__ = [
    "Size", "Tensor", "autograd", "bfloat16", "bool", "cdouble", "cfloat", "channels_last",
    "channels_last_3d", "complex128", "complex64", "contiguous_format", "device", "double",
    "dtype", "enable_grad", "finfo", "float", "float16", "float32", "float64", "functionalize",
    "get_default_device", "get_default_dtype", "half", "iinfo", "inference_mode", "int", "int16",
    "int32", "int64", "int8", "is_grad_enabled", "is_inference_mode_enabled", "layout", "long",
    "memory_format", "no_grad", "preserve_format", "promote_types", "set_default_device",
    "set_default_dtype", "set_grad_enabled", "set_printoptions", "short", "strided", "uint8",
]  # fmt: skip

__version__ = "0.1.0"

_functional.publish_all()
pi = 3.141592653589793
e = 2.718281828459045
inf, nan = _math.inf, _math.nan
newaxis = None


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of tensors made from Python floats; TypeError for a non-floating one."""
    from . import _dtype

    _dtype.set_default_dtype(d)
    _plans.clear()


_SUBMODULES = frozenset(
    ("amp", "fft", "library", "linalg", "nn", "npu", "optim", "random", "serialization", "special",
     "testing", "utils")
)  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module("." + name, __name__)
    if name in ("save", "load"):
        from . import serialization

        globals()[name] = getattr(serialization, name)
        return globals()[name]
    found = _functional.function(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_functional.FUNCTIONS, *_SUBMODULES})
