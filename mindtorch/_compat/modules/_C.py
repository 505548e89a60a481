"""Owns the low-level switches that the source documents name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from enum import IntEnum
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import Any
from weakref import ref

from mindtorch._autograd.grad_mode import LOCAL, MODES
from mindtorch._autograd.graph import pop_hooks, push_hooks
from mindtorch._autograd.node import AccumulateGrad, SavedTensor
from mindtorch._autograd.running import (
    DelayedError,
    EngineBase as _EngineBase,  # noqa: F401
    UndefinedGrad,
    current_autograd_node as _current_autograd_node,  # noqa: F401
    current_graph_task_execution_order as _current_graph_task_execution_order,  # noqa: F401
    current_graph_task_id as _current_graph_task_id,  # noqa: F401
    will_engine_execute_node as _will_engine_execute_node,  # noqa: F401
)
from mindtorch._autograd.scope import StepScope
from mindtorch._dispatch import keys
from mindtorch._dispatch.builtins import MODULES, _VariableFunctionsClass
from mindtorch._dispatch.overrides import DisableTorchFunction, DisableTorchFunctionSubclass
from mindtorch._functional import publish
from mindtorch._random.generator import Generator
from mindtorch._tensor.device import device
from mindtorch._tensor.dtype import dtype
from mindtorch._tensor.geometry import Size
from mindtorch._tensor.loading import load
from mindtorch._tensor.slots import TensorSlots as TensorBase
from mindtorch._tensor.subclass import disabled_torch_function_impl as _disabled_torch_function_impl
from mindtorch._tensor.tensor import Tensor
from mindtorch.library.schema_text import parse_schema as parse_schema
from mindtorch.nn.modules._conversion import _parse_to
from mindtorch.ops.namespaces import Tag as Tag
from mindtorch.ops.rows.matrix.decompositions import _LinAlgError as _LinAlgError
from mindtorch.serialization._records import (
    PyTorchFileReader as PyTorchFileReader,
    PyTorchFileWriter as PyTorchFileWriter,
)

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet",
           "Generator", "Size", "TensorBase", "_disabled_torch_function_impl", "device",
           "dtype"]  # fmt: skip

__path__: list[str] = []  # what is below is in absent_modules.py
_TensorBase = TensorBase
_TensorMeta = type(Tensor)


class _DisableTorchDispatch(StepScope):
    """Inside, calls are seen by no dispatch mode: there are none."""

    def steps(self) -> Iterator[None]:
        yield


class _AutoDispatchBelowAutograd(keys.ExcludeDispatchKeyGuard):
    """Inside, nothing is recorded for gradients: an operator runs its device's kernel."""

    def __init__(self) -> None:
        super().__init__(keys.DispatchKey.Autograd)


class _DisableFuncTorch(_DisableTorchDispatch):
    """Inside, plain tensors stay plain: only tensors of a batch are seen by vmap."""


def _npu_aclnn_available() -> bool:
    """Whether ACLNN libraries (CANN's or the simulator's) can be loaded."""
    from mindtorch._backends import npu

    return npu.is_available()


def _npu_aclnn_symbols_ok() -> bool:
    """Whether every ACLNN symbol that rows call is exported."""
    from mindtorch._backends import npu

    return npu.symbols_ok()


class _Traced:
    """What annotations of exporters name; no graph is ever traced, so that none is made."""

    def __init__(self, *args: object):
        raise RuntimeError(f"torch._C.{type(self).__name__}: mindtorch traces no graphs")


class Graph(_Traced):
    """The type of a traced graph."""


class Node(_Traced):
    """The type of a call in a traced graph."""


class Value(_Traced):
    """The type of a value in a traced graph."""


def _log_api_usage_once(event: str) -> None:
    """Nothing: no usage is logged. Model libraries call it as they build their models."""


class DispatchKey(IntEnum):
    """Torch's layers that programs name: those of autocast have a meaning here."""

    Undefined = 0
    CPU = 1
    CUDA = 2
    Meta = 3
    PrivateUse1 = 4
    ADInplaceOrView = 5
    AutogradCPU = 6
    AutogradCUDA = 7
    Autograd = 8
    AutocastCPU = 9
    AutocastCUDA = 10
    AutocastXPU = 11
    AutocastPrivateUse1 = 12
    CompositeImplicitAutograd = 13
    CompositeExplicitAutograd = 14
    Python = 15
    PythonTLSSnapshot = 16
    Functionalize = 17


_AUTOCAST = frozenset(k for k in DispatchKey if k.name.startswith("Autocast"))


class DispatchKeySet:
    """A set of layers."""

    def __init__(self, *keys: Any):
        members = keys[0] if len(keys) == 1 and isinstance(keys[0], set | frozenset) else keys
        self.keys = frozenset(members)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.keys | other.keys)

    def has(self, key: DispatchKey) -> bool:
        return key in self.keys


class _ExcludeDispatchKeyGuard(StepScope):
    """Layers are passed by inside; NotImplementedError for others than autocast's."""

    def __init__(self, keys: DispatchKeySet):
        if not keys.keys <= _AUTOCAST:
            raise NotImplementedError(f"_ExcludeDispatchKeyGuard: {sorted(keys.keys - _AUTOCAST)}")

    def steps(self) -> Iterator[None]:
        before = LOCAL.autocast
        try:
            MODES.active += 1
            LOCAL.autocast = None
            yield
        finally:
            LOCAL.autocast = before
            MODES.active -= 1


def _get_tracing_state() -> None:
    """None: nothing is traced."""


def _get_accelerator(check: bool = False) -> device:
    """npu where there is one, else cpu."""
    from mindtorch._backends import npu

    return device("npu" if npu.is_available() else "cpu")


def _is_torch_function_enabled() -> bool:
    """Whether subclasses see calls."""
    from mindtorch._tensor.subclass import LOCAL as SUBCLASS

    return not SUBCLASS.off


def _get_privateuse1_backend_name() -> str:
    """npu."""
    return "npu"


def _jit_set_profiling_mode(mode: bool) -> bool:
    """False: nothing is compiled."""
    return False


_jit_set_profiling_executor = _jit_set_profiling_mode


class _autograd:  # noqa: N801 - torch's name
    """The hooks of saved tensors, entered and left without a `with`."""

    SavedTensor = SavedTensor
    _push_saved_tensors_default_hooks = staticmethod(push_hooks)
    _pop_saved_tensors_default_hooks = staticmethod(pop_hooks)


class _functions:  # noqa: N801 - torch's name
    """Nodes, and functions that make them."""

    AccumulateGrad = AccumulateGrad
    DelayedError = DelayedError
    UndefinedGrad = UndefinedGrad


class _WeakTensorRef:
    """A weak reference that only says whether its tensor is gone."""

    def __init__(self, tensor: Tensor):
        self._reference = ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._reference() is None


class _Lazy:
    """A function of torch that is made when it is first read."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        return publish.function(self.name)


def _finder(space: str) -> Callable[[str], Any]:
    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if space == "nn":
            return getattr(import_module("mindtorch.nn.functional"), name)
        return publish.module(space)[1](name.removeprefix(f"{space}_"))

    return find


def _publish() -> None:
    """The places of torch's functions of C: by these, pickles name them."""
    load()
    for name in publish.FUNCTIONS:
        if name not in vars(_VariableFunctionsClass):
            setattr(_VariableFunctionsClass, name, _Lazy(name))
    for space, module in MODULES.items():
        module.__dict__.setdefault("__getattr__", _finder(space))
        module.__spec__ = ModuleSpec(module.__name__, None)
        globals()[f"_{space}"] = sys.modules[f"mindtorch._C._{space}"] = module
    vars(MODULES["nn"]).update(_parse_to=_parse_to)


_publish()
_VariableFunctions = _VariableFunctionsClass()


def _are_functorch_transforms_active() -> bool:
    """Whether a function is being mapped, or differentiated, by torch.func."""
    return bool(LOCAL.levels)


def _get_default_device() -> str:
    """The device of tensors made without one."""
    from mindtorch._tensor.device import get_default_device

    return str(get_default_device())


def _is_alias_of(data: Tensor, other: Tensor) -> bool:
    """Whether two tensors share storage."""
    return data._storage is other._storage


def _is_torch_function_mode_enabled() -> bool:
    """Whether a TorchFunctionMode is entered."""
    return bool(LOCAL.functions)


def _get_cudnn_enabled() -> bool:
    """False: there is no CUDA."""
    return False


def _set_math_sdp_allow_fp16_bf16_reduction(allow: bool) -> None:
    """Accepted without effect: attention sums in float32."""


def _jit_switch(*_: object) -> bool:
    """Accepted without effect: nothing is compiled."""
    return False


_jit_set_texpr_fuser_enabled = _jit_set_nvfuser_enabled = _jit_set_nvfuser_guard_mode = _jit_switch
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_switch
_jit_can_fuse_on_cpu = _jit_can_fuse_on_gpu = _jit_switch


def _set_grad_enabled(enabled: bool) -> None:
    """Record gradients or not, from here on."""
    LOCAL.grad = enabled
