"""Phase 1 refuses parameters whose sizes do not fit; what is written in place is read before."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy_harness import Ops, Out

HALF = np.float16


def zeros(*shape: int, dtype: Any = HALF) -> Any:
    return np.zeros(shape, dtype)


def ffn(bias1: Any = None, bias2: Any = None, tokens: Any = None, scale: Any = None) -> list[Any]:
    more = [None] * 6
    return [zeros(4, 8), zeros(8, 6), zeros(6, 8), tokens, bias1, bias2, scale, None, *more, "relu",
            0, Out((4, 8), HALF)]  # fmt: skip


def lora(rows: int = 2, layers: int = 1) -> list[Any]:
    return [zeros(2, 16), zeros(rows, 16), zeros(1, 1, 16, 16), np.zeros(2, np.int32),
            zeros(1, layers, 16, 16), 0, 1.0, 0, 16, Out((2, 16), HALF)]  # fmt: skip


def gated(smooth: Any, rows: int = 4) -> list[Any]:
    return [zeros(4, 64), smooth, None, None, True, "dynamic", Out((4, 32), "int8"), Out((rows,))]


REFUSED = [
    ("aclnnFFN", ffn(bias1=zeros(2))),
    ("aclnnFFN", ffn(bias2=zeros(3))),
    ("aclnnFFN", ffn(tokens=(2, 2))),
    ("aclnnFFN", ffn(scale=zeros(4, dtype=np.float32))),
    ("aclnnAddLora", lora(rows=1)),
    ("aclnnAddLora", lora(layers=2)),
    ("aclnnSwiGluQuant", gated(zeros(3, dtype=np.float32))),
    ("aclnnSwiGluQuant", gated(None, rows=1)),
    ("aclnnSwiGluQuant", gated(None, rows=9)),
    ("aclnnMoeFinalizeRouting", [
        zeros(8, 5), zeros(4, 5), None, zeros(2, 3), zeros(4, 2), np.zeros(8, np.int32),
        np.zeros((4, 2), np.int32), Out((4, 5), HALF)]),
    ("aclnnTransposeBatchMatMul", [
        zeros(4, 2, 8), zeros(2, 8, 4), None, None, (0, 0, 2), (0, 1, 2), (1, 0, 2), 0, 1,
        Out((4, 2, 4), HALF)]),
]  # fmt: skip


@pytest.mark.parametrize(("op", "args"), REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_a_size_that_does_not_fit_is_refused(nops: Ops, op: str, args: list[Any]) -> None:
    with pytest.raises(Exception, match="161002"):
        nops(op, *args)


def test_sizes_that_fit_are_taken(nops: Ops) -> None:
    for bias in (None, zeros(6)):
        nops("aclnnFFN", *ffn(bias1=bias))
    nops("aclnnFFN", *ffn(tokens=(4,)))
    nops("aclnnAddLora", *lora())
    for smooth in (None, zeros(32, dtype=np.float32), zeros(1, dtype=np.float32)):
        nops("aclnnSwiGluQuant", *gated(smooth))


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_rotation_may_write_what_it_reads(nops: Ops, mode: int) -> None:
    rng = np.random.default_rng(mode)
    x, cos, sin = (rng.standard_normal(s).astype(np.float32) for s in (
        (1, 2, 2, 8), (1, 2, 1, 8), (1, 2, 1, 8)))  # fmt: skip
    (apart,) = nops("aclnnRotaryPositionEmbedding", x, cos, sin, mode, Out(x.shape))
    own = nops.put(x)
    nops.cann.ops["aclnnRotaryPositionEmbedding"](own, nops.put(cos), nops.put(sin), mode, own)
    nops.cann.runtime.current_stream().synchronize()
    np.testing.assert_array_equal(own.numpy(), apart)


def test_a_rotation_asks_for_no_workspace(nops: Ops) -> None:
    """ggml gives the output's memory back to its pool before it takes a workspace from there."""
    root = Path(nops.cann.install.root) / "lib64"
    base, kernels = (ctypes.CDLL(str(root / f"lib{n}.so")) for n in ("nnopbase", "opapi"))
    base.aclCreateTensor.restype = ctypes.c_void_p

    def tensor(*dims: int) -> ctypes.c_void_p:
        shape = (ctypes.c_int64 * 4)(*dims)
        steps = (ctypes.c_int64 * 4)(*(int(np.prod(dims[k + 1 :])) for k in range(4)))
        held = nops.put(np.zeros(dims, np.float32))
        memory.append(held)
        return ctypes.c_void_p(base.aclCreateTensor(
            shape, ctypes.c_uint64(4), 0, steps, ctypes.c_int64(0), 2, shape, ctypes.c_uint64(4),
            ctypes.c_void_p(held.buffer.address)))  # fmt: skip

    memory: list[Any] = []
    size, executor = ctypes.c_uint64(1), ctypes.c_void_p()
    tensors = [tensor(1, 2, 3, 8), tensor(1, 2, 1, 8), tensor(1, 2, 1, 8), tensor(1, 2, 3, 8)]
    code = kernels.aclnnRotaryPositionEmbeddingGetWorkspaceSize(
        *tensors[:3], ctypes.c_int64(1), tensors[3], ctypes.byref(size), ctypes.byref(executor)
    )
    assert (code, size.value) == (0, 0)
    kernels.aclnnRotaryPositionEmbedding(
        None, ctypes.c_uint64(0), executor,
        ctypes.c_void_p(nops.cann.runtime.current_stream().handle))  # fmt: skip
    nops.cann.runtime.current_stream().synchronize()
    for one in tensors:
        base.aclDestroyTensor(one)
