"""Owns device names; refuses to know whether a device is there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from .._compat.class_names import CClass, class_name
from .._compat.invalid_arguments import invalid_combination
from .scoped_stack import popping, pushing

TYPES = ("cpu", "meta", "npu")
# Devices that programs name, compare and ask for; a tensor on one is refused by `resolve`.
ELSEWHERE = ("cuda", "xpu", "mps", "hpu", "mtia", "xla", "ipu", "hip", "privateuseone")
_interned: dict[tuple[str, int | None], device] = {}
# The same by the texts that named them.
_BY_TEXT: dict[object, device] = {}
_current_npu = 0


class Bound:
    """A method whose body makes what is called; asked of the class, as `ExitStack` does, one that
    takes the instance first."""

    def __init__(self, make: Callable[[Any], Callable[..., Any]]):
        self.make = make

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[..., Any]:
        if instance is None:
            return lambda instance, *args: self.make(instance)(*args)
        return self.make(instance)


_UNGIVEN: None = cast("None", object())


class device(metaclass=CClass):  # noqa: N801 - torch's name
    """A device type and an index: `device("npu:0")`, `device("npu", 0)`, `device(0)`.

    Interned: equal devices are one object. RuntimeError for an unknown type.
    """

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __new__(cls, type: DeviceLike | None = _UNGIVEN, index: int | None = None) -> device:
        known = _BY_TEXT.get(type) if index is None and type.__class__ is str else None
        if known is not None:
            return known
        key = _parse(type, index)
        interned = _interned.get(key)
        if interned is None:
            interned = object.__new__(cls)
            object.__setattr__(interned, "type", key[0])
            object.__setattr__(interned, "index", key[1])
            interned = _interned.setdefault(key, interned)
        if index is None and type.__class__ is str:
            _BY_TEXT[type] = interned
        return interned

    def __setattr__(self, name: str, value: object) -> None:
        object.__getattribute__(self, name)
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def _compare(self, other: object) -> bool:
        if isinstance(other, device):
            raise TypeError("comparison not implemented")
        return NotImplemented

    __lt__ = __le__ = __gt__ = __ge__ = _compare

    def __repr__(self) -> str:
        tail = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{tail})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (device, (self.type, self.index))

    @Bound
    def __enter__(self) -> Callable[[], device]:
        resolve(self)
        return pushing(_local.stack, self)

    @Bound
    def __exit__(self) -> Callable[..., None]:
        return popping(_local.stack)


Device = device  # where a parameter has the class's name


class _DeviceStack(threading.local):
    """The devices of this thread's `with` statements, innermost last."""

    def __init__(self) -> None:
        self.stack: list[device] = []


_local = _DeviceStack()


def _parse(type: DeviceLike | None, index: int | None) -> tuple[str, int | None]:
    if isinstance(type, device):
        return type.type, type.index
    if isinstance(type, int) and not isinstance(type, bool):
        return "npu", _index(type)
    if not isinstance(type, str):
        args = [type] * (type is not _UNGIVEN) + [index] * (index is not None)
        raise TypeError(invalid_combination("device()", args, {}, _SIGNATURES))
    if not type:
        raise RuntimeError("Device string must not be empty")
    name, colon, tail = type.partition(":")
    if not name.replace("_", "a").isalpha():
        raise RuntimeError(f"Invalid device string: '{type}'")
    if name not in TYPES and name not in ELSEWHERE:
        raise RuntimeError(
            f"Expected one of {_NAMED} device type at start of device string: {name}"
        )
    if not colon:
        return name, None if index is None else _index(index)
    if not (tail.isascii() and tail.isdecimal()) or (len(tail) > 1 and tail[0] == "0"):
        raise RuntimeError(f"Invalid device string: '{type}'")
    if index is not None:
        raise RuntimeError(
            f"type (string) must not include an index because index was passed explicitly: {type}"
        )
    if len(tail) > len(str(_LAST)):
        raise RuntimeError(
            f"Could not parse device index '{tail:.60}' in device string '{type:.80}'"
        )
    return name, _index(int(tail))


# What torch's error names, the adapter's backend by its general name.
_NAMED = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan,"
    " mps, meta, hpu, mtia, privateuseone"
)
_SIGNATURES = ("(torch.device device)", "(str type, int index = -1)")
_LAST = 127  # torch keeps an index in eight bits, and wraps larger ones


def _index(index: int) -> int:
    if not isinstance(index, int):
        kind = class_name(index)
        raise TypeError(f"device(): argument 'index' (position 2) must be int, not {kind}")
    if index < 0:
        raise RuntimeError("Device index must not be negative")
    if index > _LAST:
        raise RuntimeError(f"Device index {index} is too large: at most {_LAST}")
    return int(index)


# What names a device: one, its text, or the index of an npu.
DeviceLike: TypeAlias = device | str | int


def resolve(value: DeviceLike | None) -> device:
    """The device a tensor lands on: None is the default one, `npu` is the current npu."""
    if value is None:
        value = _local.stack[-1] if _local.stack else _default
    if value is CPU or value == "cpu":
        return CPU
    resolved = value if value.__class__ is device else device(value)
    if resolved.index is None and resolved.type == "npu":
        return device("npu", _current_npu)
    if resolved.type == "cpu":
        return CPU
    if resolved.type == "meta":
        return META
    if resolved.type in STANDING_IN:
        return resolve(device(STANDING_IN[resolved.type], resolved.index))
    if resolved.type in ELSEWHERE:
        _refuse(resolved)
    return resolved


# Types of devices whose tensors are of another: see torch_npu.contrib.transfer_to_npu.
STANDING_IN: dict[str, str] = {}


_OF_MTIA = (
    ". Ensure you have `import mtia.host_runtime.torch_mtia.dynamic_library` in your python src"
    " file and include `//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!"
)


def _refuse(target: device) -> None:
    """AssertionError as by a torch without CUDA, MTIA or XPU; RuntimeError for other devices."""
    if target.type in ("cuda", "mtia", "xpu"):
        more = _OF_MTIA if target.type == "mtia" else ""
        raise AssertionError(f"Torch not compiled with {target.type.upper()} enabled{more}")
    if target.type in ("ipu", "mps"):
        raise RuntimeError(f"PyTorch is not linked with support for {target.type} devices")
    raise RuntimeError(f"{target}: mindtorch has no such device; it has {', '.join(TYPES)}")


def set_current_npu(index: int) -> None:
    """Make `npu` without an index mean `npu:index`."""
    global _current_npu
    _current_npu = index


def current_npu() -> int:
    """The index that `npu` without one means."""
    return _current_npu


def set_default_device(device: DeviceLike | None) -> None:
    """Where factories without `device=` put tensors (torch.set_default_device)."""
    global _default
    _default = CPU
    if device is not None:
        resolve(device)
        _default = Device(device)


def get_default_device() -> device:
    """Where factories without `device=` put tensors (torch.get_default_device)."""
    return resolve(None)


CPU = device("cpu")
META = device("meta")
_default = CPU


def without_cuda(what: str) -> RuntimeError:
    """What torch says where its library for CUDA is not loaded: it cannot do `what`."""
    return RuntimeError(
        f"Cannot {what} without ATen_cuda library. PyTorch splits its backend into two shared"
        " libraries: a CPU library and a CUDA library; this error has occurred because you are"
        " trying to use some CUDA functionality, but the CUDA library has not been loaded by the"
        " dynamic linker for some reason.  The CUDA library MUST be loaded, EVEN IF you don't"
        " directly use any symbols from the CUDA library! One common culprit is a lack of"
        " -Wl,--no-as-needed in your link arguments; many dynamic linkers will delete dynamic"
        " library dependencies if you don't depend on any of their symbols.  You can check if this"
        " has occurred by using ldd on your binary to see if there is a dependency on *_cuda.so"
        " library."
    )
