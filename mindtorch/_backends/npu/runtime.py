"""Owns the opened install and which stream a thread's work goes to; opens nothing at import."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Final

import aclnn_bindings
from aclnn_bindings import BindingError, product_of

from ..._tensor.dtype import dtype as Dtype
from ..._tensor.locks import Lock
from ..registry import registry

if TYPE_CHECKING:
    from aclnn_bindings import Cann, Device, Stream

MAX_DEVICES = 128  # torch's indices of devices are bytes with a sign

_lock = Lock()
_cann: Cann | None = None
_reason = ""
_threads_off_default: set[int] = set()

# Address of each device's default stream while every thread works there, else 0: the hot path
# reads this list and asks `stream_address` only for a 0.
SHARED: list[int] = [0] * MAX_DEVICES


def cann() -> Cann:
    """The install that `npu` means, opened at the first call; errors as `aclnn_bindings.open`."""
    global _cann
    if _cann is None:
        with _lock:
            if _cann is None:
                opened = aclnn_bindings.open()
                opened.runtime.on_close(forget)
                _cann = opened
    return _cann


def forget() -> None:
    """Look streams and plans up again: those of the present session may be over."""
    SHARED[:] = [0] * MAX_DEVICES
    registry.on_change()


def use(opened: Cann | None) -> None:
    """Make `npu` mean another install (None: look for one again); for tools and tests.

    RuntimeError while the present one runs: its tensors would be left without memory.
    """
    global _cann
    if _cann is not None and _cann is not opened and _cann.runtime.started:
        raise RuntimeError("npu: the runtime of the present install is running; close it first")
    forget()
    _cann = opened


def is_available() -> bool:
    """Whether an install was found and it sees at least one device; never raises."""
    global _reason
    try:
        return device_count() > 0
    except (BindingError, OSError, ImportError) as error:
        _reason = str(error)
        return False


def why_not() -> str:
    """What the last `is_available` that said no ran into."""
    return _reason


def device_count() -> int:
    """How many devices the install sees."""
    return cann().runtime.device_count()


def is_open(index: int | None = None) -> bool:
    """Whether the runtime (or device `index`) is in use; opens nothing."""
    if _cann is None or not _cann.runtime.started:
        return False
    return index is None or _cann.runtime.is_open(index)


def device(index: int | None = None) -> Device:
    """The bindings' device, by default the calling thread's."""
    return cann().runtime.device(index)


def current_stream(index: int | None = None) -> Stream:
    """The stream that this thread's work on a device goes to."""
    return cann().runtime.current_stream(index)


def stream_address(index: int) -> int:
    """What a launch on device `index` takes as its stream; opens the device at first use."""
    address = current_stream(index).address
    if not _threads_off_default:
        SHARED[index] = address
    return address


def set_stream(stream: Stream) -> None:
    """Send this thread's work on the stream's device to `stream`."""
    me = threading.get_ident()
    default = stream is stream.device.default_stream
    with _lock:
        if default:
            _threads_off_default.discard(me)
        else:
            _threads_off_default.add(me)
        SHARED[:] = [0] * MAX_DEVICES
    cann().runtime.set_stream(stream)


def acl_dtype(dtype: Dtype) -> int:
    """The value of a dtype in this install's aclDataType; TypeError where it has none."""
    value = cann().runtime.dtypes.get(dtype.acl)
    if value is None:
        raise TypeError(f"{dtype} is not a type of this CANN (aclDataType has no {dtype.acl})")
    return value


# Values of cubeMathType (aclnnMatmul document): keep the dtype, or let float32 be multiplied in
# lower precision, which is the only way on products whose cube unit has no float32.
KEEP_DTYPE, ALLOW_LOWER = 0, 1


@functools.cache
def product() -> str | None:
    """The product code of this machine's SoC, as operator documents use it."""
    device()
    return product_of(cann().soc_name())


class Precision:
    """torch.npu.matmul and torch.npu.conv: whether float32 may be multiplied in HF32.

    As torch_npu has them, but False by default for convolutions too: what is not asked for keeps
    its digits. Without effect on products whose cube unit has no float32.
    """

    def __init__(self) -> None:
        self._allow_hf32 = False

    @property
    def allow_hf32(self) -> bool:
        return self._allow_hf32

    @allow_hf32.setter
    def allow_hf32(self, allow: bool) -> None:
        if not isinstance(allow, bool):
            raise TypeError(f"allow_hf32: expected a bool, got {type(allow).__name__}")
        self._allow_hf32 = allow
        registry.on_change()  # plans hold the mode that they were made with


matmul, conv = Precision(), Precision()


# What rows name for cubeMathType: whose switch allows HF32. Means have none.
MODES: dict[str, Precision | None] = {
    "cube_math_type": matmul, "conv_math_type": conv, "mean_math_type": None,
}  # fmt: skip


def cube_math_type(name: str) -> int:
    """What this machine's matrix unit is asked for; aclnnMatmul document, by product."""
    switch = MODES[name]
    keeps = product() in ("910b", "A3", "950") and not (switch and switch.allow_hf32)
    return KEEP_DTYPE if keeps else ALLOW_LOWER


# Level of determinism → ACL_OPT_DETERMINISTIC, ACL_OPT_STRONG_CONSISTENCY; source: document of
# torch_npu.npu.set_deterministic_level.
_LEVELS: Final = {0: (0, 0), 1: (1, 0), 2: (1, 1)}
_STRONG: Final = "ACL_OPT_STRONG_CONSISTENCY"


def set_deterministic_level(level: int) -> None:
    """Ask for 0: nothing, 1: equal results of repeated launches, 2: of equal rows too (CANN 8.5).

    Sets options of the process (aclrtSetSysParamOpt) and replaces what
    use_deterministic_algorithms asked for. ValueError for other levels, RuntimeError for 2 where
    this CANN has no such option.
    """
    if level not in _LEVELS:
        raise ValueError(f"set_deterministic_level: level must be 0, 1 or 2, got {level!r}")
    opened = cann()
    opened.runtime.start()
    repeated, everywhere = _LEVELS[level]
    strong = opened.runtime.constant(_STRONG, -1)
    if strong < 0 and everywhere:
        raise RuntimeError(f"set_deterministic_level(2): this CANN has no {_STRONG} (8.5 has)")
    option = opened.runtime.constant("ACL_OPT_DETERMINISTIC", 0)
    opened.functions.aclrtSetSysParamOpt(option, repeated)
    if strong >= 0:
        opened.functions.aclrtSetSysParamOpt(strong, everywhere)


def set_deterministic(on: bool) -> None:
    """What torch.use_deterministic_algorithms asks of devices."""
    set_deterministic_level(int(on))
