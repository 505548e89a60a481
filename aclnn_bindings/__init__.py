"""Typed bindings to Ascend's ACL and ACLNN libraries, made from their headers.

import aclnn_bindings
cann = aclnn_bindings.open(simulator=True)
a, out = cann.tensor(array), cann.empty(array.shape)
cann.ops.aclnnAdd(self=a, other=a, alpha=1.0, out=out)
print(out.numpy())
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .call.arrays import DeviceTensor as DeviceTensor
    from .call.dynamic import launch_dynamic as launch_dynamic
    from .call.handles import (
        BoolArray as BoolArray,
        FloatArray as FloatArray,
        IntArray as IntArray,
        Scalar as Scalar,
        ScalarList as ScalarList,
        Tensor as Tensor,
        TensorList as TensorList,
    )
    from .call.marshal import HostCell as HostCell
    from .call.operator import BoundOp as BoundOp
    from .call.plan import Plan as Plan
    from .call.specs import (
        RawHandle as RawHandle,
        ScalarSpec as ScalarSpec,
        TensorSpec as TensorSpec,
    )
    from .cann import Cann as Cann
    from .diagnose.causes import Cause as Cause, causes as causes
    from .diagnose.census import Census as Census, CensusOp as CensusOp, Status as Status
    from .diagnose.child import StepResult as StepResult
    from .diagnose.probe import Report as Report, Request as Request, probe as probe
    from .errors import (
        ArgumentError as ArgumentError,
        BindingError as BindingError,
        ClosedHandleError as ClosedHandleError,
        ForkedError as ForkedError,
        MissingSymbolError as MissingSymbolError,
        RuntimeStateError as RuntimeStateError,
        StillUsedError as StillUsedError,
        UnknownPointerError as UnknownPointerError,
        UnsupportedSignatureError as UnsupportedSignatureError,
        UntrustedSignatureError as UntrustedSignatureError,
    )
    from .install.describe import Install as Install
    from .install.library import (
        InstallNotFoundError as InstallNotFoundError,
        declarations as declarations,
        find_install as find_install,
    )
    from .install.machine import device_nodes as device_nodes
    from .install.products import product_of as product_of, support as support
    from .install.search import (
        ENVIRONMENT as ENVIRONMENT,
        Step as Step,
        bundled_simulator as bundled_simulator,
    )
    from .interface.compare import Difference as Difference, diff as diff
    from .interface.signature import (
        WORKSPACE_SUFFIX as WORKSPACE_SUFFIX,
        Declarations as Declarations,
        Direction as Direction,
        Kind as Kind,
        OpSignature as OpSignature,
        Param as Param,
        Signature as Signature,
    )
    from .runtime.device import Context as Context, Device as Device
    from .runtime.memory import Buffer as Buffer, PinnedBuffer as PinnedBuffer, throw_on as throw_on
    from .runtime.native import (
        Block as Block,
        address_of as address_of,
        allocate as allocate,
        ffi as ffi,
        launch as launch,
        launch_into as launch_into,
        launch_many as launch_many,
        lib as lib,
    )
    from .runtime.status import (
        AclAbortedError as AclAbortedError,
        AclDeviceError as AclDeviceError,
        AclDeviceLostError as AclDeviceLostError,
        AclError as AclError,
        AclOutOfMemoryError as AclOutOfMemoryError,
        AclParameterError as AclParameterError,
        AclTimeoutError as AclTimeoutError,
        AclUnsupportedError as AclUnsupportedError,
        StatusCodes as StatusCodes,
    )
    from .runtime.stream import Event as Event, Stream as Stream

# What users of these bindings import from here: module → names. `open` is the door, and stays out
# of `__all__` so that a star import does not hide the builtin.
_FACE: Final = {
    "call.arrays": ("DeviceTensor",),
    "call.dynamic": ("launch_dynamic",),
    "call.handles": (
        "BoolArray",
        "FloatArray",
        "IntArray",
        "Scalar",
        "ScalarList",
        "Tensor",
        "TensorList",
    ),
    "call.marshal": ("HostCell",),
    "call.operator": ("BoundOp",),
    "call.plan": ("Plan",),
    "call.specs": (
        "RawHandle",
        "ScalarSpec",
        "TensorSpec",
    ),
    "cann": ("Cann",),
    "diagnose.causes": (
        "Cause",
        "causes",
    ),
    "diagnose.census": (
        "Census",
        "CensusOp",
        "Status",
    ),
    "diagnose.child": ("StepResult",),
    "diagnose.probe": (
        "Report",
        "Request",
        "probe",
    ),
    "errors": (
        "ArgumentError",
        "BindingError",
        "ClosedHandleError",
        "ForkedError",
        "MissingSymbolError",
        "RuntimeStateError",
        "StillUsedError",
        "UnknownPointerError",
        "UnsupportedSignatureError",
        "UntrustedSignatureError",
    ),
    "install.describe": ("Install",),
    "install.library": (
        "InstallNotFoundError",
        "declarations",
        "find_install",
    ),
    "install.machine": ("device_nodes",),
    "install.products": (
        "product_of",
        "support",
    ),
    "install.search": (
        "ENVIRONMENT",
        "Step",
        "bundled_simulator",
    ),
    "interface.compare": (
        "Difference",
        "diff",
    ),
    "interface.signature": (
        "Declarations",
        "Direction",
        "Kind",
        "OpSignature",
        "Param",
        "Signature",
        "WORKSPACE_SUFFIX",
    ),
    "runtime.device": (
        "Context",
        "Device",
    ),
    "runtime.memory": (
        "Buffer",
        "PinnedBuffer",
        "throw_on",
    ),
    "runtime.native": (
        "Block",
        "allocate",
        "address_of",
        "ffi",
        "launch",
        "launch_into",
        "launch_many",
        "lib",
    ),
    "runtime.status": (
        "AclAbortedError",
        "AclDeviceError",
        "AclDeviceLostError",
        "AclError",
        "AclOutOfMemoryError",
        "AclParameterError",
        "AclTimeoutError",
        "AclUnsupportedError",
        "StatusCodes",
    ),
    "runtime.stream": (
        "Event",
        "Stream",
    ),
}
_PLACES: Final = {name: module for module, names in _FACE.items() for name in names}

__all__ = [*_PLACES]


def open(home: str | Path | None = None, simulator: bool = False) -> Cann:
    """Open an install: the one at `home`, the bundled simulator, or the first that is found.

    Loads and initialises nothing before the first use. InstallNotFoundError names where it looked.
    """
    from .cann import open_install

    return open_install(home, simulator)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("mindtorch-npu")
        except PackageNotFoundError:  # a tree that is not installed
            return "0+unknown"
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module("." + _PLACES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_PLACES, "open", *(name for name in globals() if name.startswith("__"))})
