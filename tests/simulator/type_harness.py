"""Calls operators by their type names (aclopCompileAndExecute) on numpy arrays."""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy_harness import CODES, Array, Ops, Out

ND, SYS, KEEP = 2, 1, 0  # aclFormat; aclopEngineType and aclopCompileType
Handles = ctypes.Array[ctypes.c_void_p]
Attribute = bool | int | float | str | Sequence[int] | Sequence[float]


class Types:
    """`types("Iou", [boxes, others], [Out(shape)], mode="iou")` gives the outputs."""

    def __init__(self, nops: Ops, home: Path) -> None:
        self.nops = nops
        self.runtime = ctypes.CDLL(str(home / "lib64" / "libascendcl.so"))
        self.compiler = ctypes.CDLL(str(home / "lib64" / "libacl_op_compiler.so"))
        for name in ("aclCreateTensorDesc", "aclCreateDataBuffer", "aclopCreateAttr"):
            getattr(self.runtime, name).restype = ctypes.c_void_p
        self.runtime.aclGetRecentErrMsg.restype = ctypes.c_char_p

    def _attributes(self, values: Mapping[str, Attribute]) -> ctypes.c_void_p:
        attr = ctypes.c_void_p(self.runtime.aclopCreateAttr())
        for name, value in values.items():
            key = name.encode()
            if isinstance(value, bool):
                self.runtime.aclopSetAttrBool(attr, key, ctypes.c_uint8(value))
            elif isinstance(value, int):
                self.runtime.aclopSetAttrInt(attr, key, ctypes.c_int64(value))
            elif isinstance(value, float):
                self.runtime.aclopSetAttrFloat(attr, key, ctypes.c_float(value))
            elif isinstance(value, str):
                self.runtime.aclopSetAttrString(attr, key, value.encode())
            elif all(isinstance(v, int) for v in value):
                self.runtime.aclopSetAttrListInt(
                    attr, key, len(value), (ctypes.c_int64 * len(value))(*map(int, value))
                )
            else:
                self.runtime.aclopSetAttrListFloat(
                    attr, key, len(value), (ctypes.c_float * len(value))(*value)
                )
        return attr

    def __call__(
        self,
        type_name: str,
        inputs: Sequence[Array | None],
        outputs: Sequence[Out],
        *,
        sized: bool = False,
        **attributes: Attribute,
    ) -> list[Array]:
        """The outputs' values. `sized`: their shapes are told by the call. Raises on refusals."""
        cann, keep = self.nops.cann, []

        def side(
            arrays: Sequence[Array | None],
        ) -> tuple[ctypes.Array[ctypes.c_void_p], ctypes.Array[ctypes.c_void_p]]:
            descs, buffers = (ctypes.c_void_p * len(arrays))(), (ctypes.c_void_p * len(arrays))()
            for i, array in enumerate(arrays):
                if array is None:  # an optional input that is left out
                    descs[i] = self.runtime.aclCreateTensorDesc(-1, 0, None, ND)
                    buffers[i] = self.runtime.aclCreateDataBuffer(None, ctypes.c_size_t(0))
                    continue
                tensor = cann.tensor(array)
                keep.append(tensor)
                shape = (ctypes.c_int64 * array.ndim)(*array.shape)
                descs[i] = self.runtime.aclCreateTensorDesc(
                    CODES[array.dtype.name], array.ndim, shape, ND
                )
                buffers[i] = self.runtime.aclCreateDataBuffer(
                    ctypes.c_void_p(tensor.buffer.address), ctypes.c_size_t(array.nbytes)
                )
            return descs, buffers

        in_descs, in_buffers = side(inputs)
        first = [np.zeros(tuple(o.shape), o.dtype) for o in outputs]
        results = len(keep)
        out_descs, out_buffers = side(first)
        attr = self._attributes(attributes)
        stream = cann.runtime.current_stream()
        run = (
            self.compiler.aclopCompileAndExecuteV2
            if sized
            else self.compiler.aclopCompileAndExecute
        )
        code = run(type_name.encode(), len(inputs), in_descs, in_buffers, len(outputs), out_descs,
                   out_buffers, attr, SYS, KEEP, None, ctypes.c_void_p(stream.handle))  # fmt: skip
        message = self.runtime.aclGetRecentErrMsg() if code else None
        try:
            stream.synchronize()
            if code:
                raise RuntimeError((message or b"").decode())
            arrays = [tensor.numpy() for tensor in keep[results:]]
            if not sized:
                return arrays
            shapes = [self._shape(desc) for desc in out_descs]
            return [
                a.reshape(-1)[: int(np.prod(s))].reshape(s)
                for a, s in zip(arrays, shapes, strict=True)
            ]
        finally:
            self.runtime.aclopDestroyAttr(attr)
            for desc in (*in_descs, *out_descs):
                self.runtime.aclDestroyTensorDesc(ctypes.c_void_p(desc))
            for buffer in (*in_buffers, *out_buffers):
                self.runtime.aclDestroyDataBuffer(ctypes.c_void_p(buffer))

    def _shape(self, desc: int | None) -> list[int]:
        at = ctypes.c_void_p(desc)
        size = ctypes.c_int64()
        shape = []
        for i in range(self.runtime.aclGetTensorDescNumDims(at)):
            self.runtime.aclGetTensorDescDimV2(at, ctypes.c_size_t(i), ctypes.byref(size))
            shape.append(size.value)
        return shape
