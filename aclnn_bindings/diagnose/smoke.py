"""A child program: one tour of a device, from aclInit to an operator's checked result.

It calls with the types that the install declares, by ctypes: it must work where the launch
extension does not. Sequence: CANN runtime and ACLNN documents, acl_semantics of executors.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from .child import Steps, main

FUNCTIONS: Final = (
    "aclInit", "aclFinalize", "aclrtGetDeviceCount", "aclrtSetDevice", "aclrtResetDevice",
    "aclrtGetSocName", "aclrtGetMemInfo", "aclrtCreateStream", "aclrtDestroyStream",
    "aclrtCreateEvent", "aclrtRecordEvent", "aclrtDestroyEvent", "aclrtSynchronizeStream",
    "aclrtMalloc", "aclrtFree", "aclrtMemcpy", "aclGetRecentErrMsg", "aclCreateTensor",
    "aclDestroyTensor", "aclCreateScalar", "aclDestroyScalar", "aclnnAddGetWorkspaceSize",
    "aclnnAdd",
)  # fmt: skip
CONSTANTS: Final = (
    "ACL_FLOAT", "ACL_FORMAT_ND", "ACL_HBM_MEM", "ACL_MEM_MALLOC_HUGE_FIRST",
    "ACL_MEMCPY_HOST_TO_DEVICE", "ACL_MEMCPY_DEVICE_TO_HOST", "ACL_ERROR_REPEAT_INITIALIZE",
)  # fmt: skip
_TYPES: Final[Mapping[str, Any]] = {
    "bool": ctypes.c_bool, "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32,
    "int64": ctypes.c_int64, "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64, "size": ctypes.c_size_t,
    "float": ctypes.c_float, "double": ctypes.c_double, "enum": ctypes.c_int32, "void": None,
    "string": ctypes.c_char_p,
}  # fmt: skip
_SHAPE: Final = (2, 3)
_COUNT: Final = 6
_BYTES: Final = 4 * _COUNT


class CallFailed(RuntimeError):
    """A call returned a code other than success, or a result was wrong."""


class BoundFunctions:
    """The functions of `FUNCTIONS`, bound with declared types and looked up in order."""

    def __init__(self, request: Any) -> None:
        loaded = {path: _open(path) for path in request["libraries"]}
        self.handles = [loaded[path] for path in request["searched"]]
        self.types: dict[str, list[str]] = request["functions"]
        self.constants: dict[str, int] = request["constants"]
        self.codes: dict[str, str] = request["codes"]

    def bind(self, name: str) -> Callable[..., Any]:
        """The C function `name`; CallFailed when it is not declared or no library has it."""
        if name not in self.types:
            raise CallFailed(f"{name} is not declared by this install")
        for handle in self.handles:
            function = getattr(handle, name, None)
            if function is not None:
                returns, *params = [_TYPES.get(kind, ctypes.c_void_p) for kind in self.types[name]]
                function.restype, function.argtypes = returns, params
                return function  # type: ignore[no-any-return]
        raise CallFailed(f"{name} is exported by none of the libraries")

    def call(self, name: str, *args: Any, allow: Sequence[int] = ()) -> None:
        """Call a function that returns a status; CallFailed tells code, symbol and CANN's text."""
        code = self.bind(name)(*args)
        if code and code not in allow:
            symbol = self.codes.get(str(code), "unknown code")
            raise CallFailed(f"{name} returned {code} ({symbol}){self._message()}")

    def _message(self) -> str:
        try:
            text = self.bind("aclGetRecentErrMsg")()
        except CallFailed:
            return ""
        return f": {text.decode('utf-8', 'replace').strip()}" if text else ""

    def __getitem__(self, name: str) -> int:
        if name not in self.constants:
            raise CallFailed(f"{name} is not declared by this install")
        return self.constants[name]


def _open(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path, mode=os.RTLD_LAZY | os.RTLD_GLOBAL)


def tour(steps: Steps, request: Any) -> None:
    """Each step needs those before it, so the first failure ends the tour."""
    api = BoundFunctions(request)
    with ExitStack() as cleanup:
        with steps.step("init"):
            allow = (api.constants.get("ACL_ERROR_REPEAT_INITIALIZE", 0),)
            api.call("aclInit", None, allow=allow)
            cleanup.callback(api.call, "aclFinalize")
        facts: dict[str, Any] = {}
        with steps.step("device", facts):
            _device(api, cleanup, facts)
        stream = ctypes.c_void_p()
        with steps.step("stream"):
            api.call("aclrtCreateStream", ctypes.byref(stream))
            cleanup.callback(api.call, "aclrtDestroyStream", stream)
        with steps.step("event"):
            _event(api, stream)
        blocks = []
        with steps.step("malloc"):
            blocks = [_malloc(api, cleanup) for _ in range(3)]
        with steps.step("copy"):
            _copy(api, blocks)
        with steps.step("add"):
            _add(api, stream, blocks)
        with steps.step("close"):
            cleanup.close()


def _device(api: BoundFunctions, cleanup: ExitStack, facts: dict[str, Any]) -> None:
    count = ctypes.c_uint32()
    api.call("aclrtGetDeviceCount", ctypes.byref(count))
    facts["devices"] = count.value
    if not count.value:
        raise CallFailed("aclrtGetDeviceCount found no device")
    api.call("aclrtSetDevice", 0)
    cleanup.callback(api.call, "aclrtResetDevice", 0)
    name = api.bind("aclrtGetSocName")()
    if not name:
        raise CallFailed("aclrtGetSocName returned NULL")
    facts["soc"] = name.decode("utf-8", "replace")
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    try:
        api.call("aclrtGetMemInfo", api["ACL_HBM_MEM"], ctypes.byref(free), ctypes.byref(total))
    except CallFailed as error:  # nothing that follows needs the answer
        facts["memory_refused"] = str(error)
    else:
        facts["memory_free"], facts["memory_total"] = free.value, total.value


def _event(api: BoundFunctions, stream: ctypes.c_void_p) -> None:
    event = ctypes.c_void_p()
    api.call("aclrtCreateEvent", ctypes.byref(event))
    try:
        api.call("aclrtRecordEvent", event, stream)
        api.call("aclrtSynchronizeStream", stream)
    finally:
        api.call("aclrtDestroyEvent", event)


def _malloc(api: BoundFunctions, cleanup: ExitStack) -> ctypes.c_void_p:
    block = ctypes.c_void_p()
    policy = api["ACL_MEM_MALLOC_HUGE_FIRST"]
    api.call("aclrtMalloc", ctypes.byref(block), 4096, policy)
    cleanup.callback(api.call, "aclrtFree", block)
    return block


def _copy(api: BoundFunctions, blocks: list[ctypes.c_void_p]) -> None:
    sent = (ctypes.c_float * _COUNT)(*range(1, _COUNT + 1))
    for block in blocks[:2]:
        _to_device(api, block, sent)
    back = _to_host(api, blocks[0])
    if back != list(sent):
        raise CallFailed(f"copied {list(sent)} to the device, {back} came back")


def _to_device(api: BoundFunctions, block: ctypes.c_void_p, values: Any) -> None:
    api.call("aclrtMemcpy", block, 4096, values, _BYTES, api["ACL_MEMCPY_HOST_TO_DEVICE"])


def _to_host(api: BoundFunctions, block: ctypes.c_void_p) -> list[float]:
    values = (ctypes.c_float * _COUNT)()
    api.call("aclrtMemcpy", values, _BYTES, block, _BYTES, api["ACL_MEMCPY_DEVICE_TO_HOST"])
    return list(values)


def _add(api: BoundFunctions, stream: ctypes.c_void_p, blocks: list[ctypes.c_void_p]) -> None:
    """`x + 2 x` of blocks 0 and 1 into block 2, through both phases, checked on the host."""
    with ExitStack() as cleanup:
        tensors = [_tensor(api, block, cleanup) for block in blocks]
        alpha = ctypes.c_float(2.0)
        scalar = ctypes.c_void_p(
            api.bind("aclCreateScalar")(ctypes.addressof(alpha), api["ACL_FLOAT"])
        )
        cleanup.callback(api.bind("aclDestroyScalar"), scalar)
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        outputs = ctypes.byref(size), ctypes.byref(executor)
        self, other, out = tensors
        api.call("aclnnAddGetWorkspaceSize", self, other, scalar, out, *outputs)
        workspace = ctypes.c_void_p()
        if size.value:
            policy = api["ACL_MEM_MALLOC_HUGE_FIRST"]
            api.call("aclrtMalloc", ctypes.byref(workspace), size.value, policy)
            cleanup.callback(api.call, "aclrtFree", workspace)
        api.call("aclnnAdd", workspace, size, executor, stream)
        api.call("aclrtSynchronizeStream", stream)
    got, want = _to_host(api, blocks[2]), [3.0 * i for i in range(1, _COUNT + 1)]
    if got != want:
        raise CallFailed(f"aclnnAdd computed {got}, expected {want}")


def _tensor(api: BoundFunctions, block: ctypes.c_void_p, cleanup: ExitStack) -> ctypes.c_void_p:
    dims = (ctypes.c_int64 * 2)(*_SHAPE)
    strides = (ctypes.c_int64 * 2)(_SHAPE[1], 1)
    storage = (ctypes.c_int64 * 1)(_COUNT)
    where = [ctypes.cast(values, ctypes.c_void_p) for values in (dims, strides, storage)]
    descriptor = api.bind("aclCreateTensor")(
        where[0], 2, api["ACL_FLOAT"], where[1], 0, api["ACL_FORMAT_ND"], where[2], 1, block
    )
    if not descriptor:
        raise CallFailed("aclCreateTensor returned NULL")
    tensor = ctypes.c_void_p(descriptor)
    cleanup.callback(api.bind("aclDestroyTensor"), tensor)
    return tensor


if __name__ == "__main__":
    main(tour)
