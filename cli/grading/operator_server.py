"""Runs launches of one operator for a grader: `python -m mindtorch_npu.grading.operator_server`.

It reads one JSON object a line and answers each with one. Elements lie in memory that both
processes share, at places that the grader names. No reference and no result of one is here: what
runs in this process is not trusted, the operator and so its answers.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import IO, Any, Final

from aclnn_bindings import TensorSpec, address_of, ffi
from aclnn_bindings.call import handles
from aclnn_bindings.call.specs import ScalarSpec
from aclnn_bindings.errors import BindingError
from aclnn_bindings.runtime.status import AclError
from aclnn_bindings.runtime.words import call, decode

from . import sandbox

# The operator whose launches, first and last of all, show that the log of calls is whole.
WITNESS: Final = "aclnnAbs"
# More than the caches of a device hold (L2 of Ascend910B: 192 MiB).
_CACHE_BYTES: Final = 256 << 20


class Server:
    """The opened install, the operator's two functions, and the launch at hand."""

    def __init__(self, setup: Mapping[str, Any]) -> None:
        import aclnn_bindings

        self.isolation = sandbox.enter(setup["hide"], setup["folder"]) if setup["isolate"] else []
        if setup["isolate"]:
            self.isolation += sandbox.limit(setup["memory"], setup["seconds"])
        self.elements = memoryview(mmap.mmap(setup["region"], setup["bytes"]))
        self.cann = aclnn_bindings.open(setup["home"], simulator=setup["simulator"])
        self.cann.runtime.start()
        self.cann.runtime.set_device(setup["device"])
        self.stream = self.cann.runtime.current_stream()
        self._witness()
        if setup["isolate"]:
            self.isolation += sandbox.forbid()
        self.name = setup["operator"]
        self.stack = ExitStack()

    def load(self) -> None:
        """Find the operator's functions, which loads its library; BindingError where that fails."""
        signature = self.cann.op(self.name).signature
        self.first = self.cann.symbols.require(signature.workspace.name)
        self.second = self.cann.symbols.require(signature.execute.name)

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do one step of a launch: `prepare`, `first`, `second` or `inspect`."""
        step: dict[str, Any] = getattr(self, f"_{request['step']}")(request)
        return step

    def _prepare(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Make all memory and descriptors: inputs hold other values than in the second phase."""
        self.stack.close()
        self.launch = request
        self.buffers = []
        for tensor in request["tensors"]:
            buffer = self.cann.empty((tensor["bytes"],), "UINT8").buffer
            self.stack.callback(_spoil, buffer)
            buffer.write(self._at(tensor, "before"))
            self.buffers.append(buffer)
        self.words = [self._word(form) for form in request["parameters"]]
        self.size, self.executor = ffi.new("uint64_t *"), ffi.new("uint64_t *")
        return {}

    def _first(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Phase 1, and which results it wrote already."""
        if request.get("empty"):
            return {}
        tail = [(False, address_of(self.size)), (False, address_of(self.executor))]
        code = decode("int", call(self.first, [*self.words, *tail]), {})
        return {"code": code, "text": self._message()} if code else {"code": 0}

    def _between(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Which results phase 1 wrote already; the workspace; caches that hold something else."""
        if request["cold"]:
            with self.cann.empty((_CACHE_BYTES,), "UINT8") as other:
                other.buffer.fill(1)
        if request.get("empty"):
            self.cann.runtime.device().synchronize()
            return {}
        self.cann.runtime.device().synchronize()
        early = [i for i, t in enumerate(self.launch["tensors"]) if t["written"]
                 and self.buffers[i].to_bytes() != self._at(t, "before")]  # fmt: skip
        self.workspace = self.cann.empty((max(int(self.size[0]), 1),), "UINT8").buffer
        self.workspace.fill(0xA5)
        self.stream.synchronize()
        return {"early": early, "workspace": int(self.size[0])}

    def _second(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs' values, phase 2, the wait for its stream, and its results."""
        for tensor, buffer in zip(self.launch["tensors"], self.buffers, strict=True):
            if tensor["now"] != tensor["before"]:
                buffer.write(self.elements[tensor["now"] : tensor["now"] + tensor["bytes"]])
        code = 0
        if not request.get("empty"):
            numbers = (self.workspace.address, int(self.size[0]), int(self.executor[0]))
            words = [(False, number) for number in (*numbers, self.stream.handle)]
            code = decode("int", call(self.second, words), {})
        if code:
            return {"code": code, "text": self._message()}
        self.stream.synchronize()
        for tensor, buffer in zip(self.launch["tensors"], self.buffers, strict=True):
            if tensor["written"]:
                self._read(tensor, buffer)
        return {"code": 0}

    def _inspect(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        """All memory of the launch as it is now."""
        self.cann.runtime.device().synchronize()
        for tensor, buffer in zip(self.launch["tensors"], self.buffers, strict=True):
            self._read(tensor, buffer)
        return {}

    def _end(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        """Close, so that the log of calls is written."""
        self.stack.close()
        self._witness()
        self.cann.close()
        return {}

    def _witness(self) -> None:
        if self.cann.install.kind == "simulator":
            with self.cann.empty((1,)) as x, self.cann.empty((1,)) as y:
                self.cann.op(WITNESS)(x, y)
                self.stream.synchronize()

    def _at(self, tensor: Mapping[str, Any], place: str) -> bytes:
        return bytes(self.elements[tensor[place] : tensor[place] + tensor["bytes"]])

    def _read(self, tensor: Mapping[str, Any], buffer: Any) -> None:
        buffer.read(self.elements[tensor["after"] : tensor["after"] + tensor["bytes"]])

    def _message(self) -> str:
        address = self.cann.symbols.address("aclGetRecentErrMsg")
        return str(decode("const char *", call(address, [], "const char *"), {}) or "")[:500]

    def _word(self, form: Sequence[Any]) -> tuple[bool, int]:
        """(is a float, bits) of one parameter; its descriptor ends with the launch."""
        kind, *values = form
        if kind == "word":
            return bool(values[0]), int(values[1])
        if kind == "text":
            data = ffi.new("char[]", values[0].encode())
            self.stack.callback(lambda: data)
            return False, address_of(data)
        descriptor = self._descriptor(kind, values[0])
        self.stack.callback(descriptor.close)
        return False, descriptor.descriptor

    def _descriptor(self, kind: str, value: Any) -> Any:
        runtime = self.cann.runtime
        if kind == "tensor":
            fields: dict[str, Any] = dict(self.launch["tensors"][value]["spec"])
            fields |= {k: tuple(fields[k]) for k in ("shape", "strides", "storage_shape")}
            return handles.Tensor(runtime, TensorSpec(**fields), self.buffers[value].address)
        if kind == "tensors":
            return handles.TensorList(runtime, [self._descriptor("tensor", i) for i in value])
        if kind == "scalar":
            return handles.Scalar(runtime, ScalarSpec(value))
        if kind == "scalars":
            return handles.ScalarList(runtime, [self._descriptor("scalar", v) for v in value])
        arrays = {"ints": handles.IntArray, "bools": handles.BoolArray,
                  "floats": handles.FloatArray}  # fmt: skip
        return arrays[kind](runtime, value)


def _spoil(buffer: Any) -> None:
    """Leave garbage in memory that is given back."""
    if not buffer.closed:
        buffer.fill(0x5C)
        buffer.close()


def serve(server: Server, source: IO[str], out: IO[str]) -> None:
    """Answer requests until they end."""
    for line in source:
        request = json.loads(line)
        try:
            reply = server.answer(request)
        except (AclError, BindingError) as error:
            reply = {"code": getattr(error, "code", -1), "text": str(error)[:500]}
        out.write(json.dumps({"nonce": request["nonce"], **reply}) + "\n")
        out.flush()
        if request["step"] == "end":
            return


def main() -> None:
    """Serve the process that started this one."""
    sandbox.die_with_parent()
    source, out = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    setup = json.loads(source.readline())
    try:
        server = Server(setup)
        server.load()
        reply = {"isolation": server.isolation, "library": str(_library(server))}
    except BindingError as error:
        reply = {"refused": f"{type(error).__name__}: {error}"}
    out.write(json.dumps({"nonce": setup["nonce"], **reply}) + "\n")
    out.flush()
    if "refused" not in reply:
        serve(server, source, out)


def _library(server: Server) -> Any:
    provider = server.cann.symbols.provider(server.name)
    return getattr(provider, "path", None) or getattr(provider, "name", "")


if __name__ == "__main__":
    main()
    os._exit(0)  # the log of calls is written, and threads of the operator may hang
