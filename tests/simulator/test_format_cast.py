"""The inner format as clients describe it: plain views of tiles, and the way back."""

import ctypes
import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled import install
from numpy_harness import Array, Ops, Out, close
from quantized_operands import inner

RNG = np.random.default_rng(3)


def seen(nops: Ops, tiles: Array, shape: tuple[int, ...]) -> Any:
    """A plain view of tiles, as torch_npu and the documents' programs describe them."""
    strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
    return nops.put(tiles).view(shape, strides, 0, "FRACTAL_NZ")


@pytest.mark.parametrize(("shape", "dtype", "wide"), [((20, 33), "float16", 16),
                                                      ((2, 20, 33), "int8", 32)])  # fmt: skip
def test_a_plain_view_of_tiles_is_written_read_and_copied(
    nops: Ops, shape: tuple[int, ...], dtype: str, wide: int
) -> None:
    x = RNG.integers(-9, 9, shape).astype(dtype)
    expected = inner(x, wide)
    tiles = seen(nops, np.ones_like(expected).reshape(-1), shape)
    nops("aclnnNpuFormatCast", x, tiles)
    whole = tiles.view((expected.size,), (1,), 0, "ND")
    np.testing.assert_array_equal(whole.numpy(), expected.reshape(-1))
    (back,) = nops("aclnnNpuFormatCast", tiles, Out(shape, dtype))
    np.testing.assert_array_equal(back, x)
    (copied,) = nops("aclnnInplaceCopy", Out(shape, dtype), tiles)
    np.testing.assert_array_equal(copied, x)
    other = seen(nops, np.ones_like(expected).reshape(-1), shape)
    nops("aclnnInplaceCopy", other, x)
    np.testing.assert_array_equal(
        other.view((expected.size,), (1,), 0, "ND").numpy(), expected.reshape(-1)
    )


def test_a_product_reads_what_the_cast_wrote(nops: Ops) -> None:
    x, w = (RNG.standard_normal(s).astype(np.float16) for s in ((5, 20), (20, 33)))
    tiles = seen(nops, np.zeros(3 * 32 * 16, np.float16), w.shape)
    nops("aclnnNpuFormatCast", w, tiles)
    (y,) = nops("aclnnMatmulWeightNz", x, tiles, Out((5, 33), "float16"), 0)
    close(y, x.astype(np.float64) @ w, 2e-3)


def test_storage_too_small_for_tiles_is_plain(nops: Ops) -> None:
    x, w = (RNG.standard_normal(s).astype(np.float16) for s in ((5, 20), (20, 33)))
    (y,) = nops("aclnnMatmulWeightNz", x, seen(nops, w.reshape(-1), w.shape),
                Out((5, 33), "float16"), 0)  # fmt: skip
    close(y, x.astype(np.float64) @ w, 2e-3)


ND, NCL, NZ, NC1HWC0, C0_16, C0_32 = 2, 47, 29, 3, 50, 51
FLOAT, HALF, INT8, INT32, FLOAT8 = 0, 1, 2, 3, 36  # aclDataType


@functools.cache
def library(name: str) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(install() / "lib64" / f"lib{name}.so"))
    if name == "nnopbase":
        loaded.aclCreateTensor.restype = ctypes.c_void_p
    return loaded


def described(
    shape: tuple[int, ...], dtype: int, format: int, storage: tuple[int, ...], address: int | None
) -> ctypes.c_void_p:
    def dims(values: tuple[int, ...]) -> tuple[Any, ctypes.c_uint64]:
        return (ctypes.c_int64 * len(values))(*values), ctypes.c_uint64(len(values))

    data = ctypes.c_void_p(address)
    return ctypes.c_void_p(
        library("nnopbase").aclCreateTensor(
            *dims(shape), dtype, None, ctypes.c_int64(0), format, *dims(storage), data
        )
    )


def sizes(shape: tuple[int, ...], dtype: int, to: int, like: int, given: int = ND) -> Any:
    """The shape and format that a cast has, or the code that refuses it."""
    tensor = described(shape, dtype, given, shape, None)
    to_dims, count, actual = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_uint64(), ctypes.c_int()
    code = library("opapi").aclnnNpuFormatCastCalculateSizeAndFormat(
        tensor, to, like, ctypes.byref(to_dims), ctypes.byref(count), ctypes.byref(actual)
    )
    library("nnopbase").aclDestroyTensor(tensor)
    return code or ([to_dims[i] for i in range(count.value)], actual.value)


def cast(nops: Ops, source: ctypes.c_void_p, to: ctypes.c_void_p) -> None:
    opapi, stream = library("opapi"), nops.cann.runtime.current_stream()
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    first = opapi.aclnnNpuFormatCastGetWorkspaceSize
    assert first(source, to, ctypes.byref(size), ctypes.byref(executor)) == 0
    assert opapi.aclnnNpuFormatCast(None, size, executor, ctypes.c_void_p(stream.handle)) == 0
    stream.synchronize()


def test_tiles_are_as_wide_as_their_storage_says(nops: Ops) -> None:
    """Four bytes by a matrix unit's width for halves, as torch_npu casts them."""
    x = RNG.integers(-9, 9, (20, 33)).astype(np.int32)
    expected = inner(x, 16)
    source, tiles, back = nops.put(x), nops.put(np.ones_like(expected)), nops.put(np.ones_like(x))
    plain = described(x.shape, INT32, ND, x.shape, source.buffer.address)
    laid = described(x.shape, INT32, NZ, expected.shape, tiles.buffer.address)
    again = described(x.shape, INT32, ND, x.shape, back.buffer.address)
    cast(nops, plain, laid)
    np.testing.assert_array_equal(tiles.numpy(), expected)
    cast(nops, laid, again)
    np.testing.assert_array_equal(back.numpy(), x)
    told = ctypes.c_int()
    library("nnopbase").aclGetFormat(laid, ctypes.byref(told))
    assert told.value == NZ  # as it was given
    for tensor in (plain, laid, again):
        library("nnopbase").aclDestroyTensor(tensor)


def test_sizes_of_casts_are_those_of_the_document() -> None:
    """Ascend910B2: conversion/npu_format_cast/docs/aclnnNpuFormatCast.md of ops-math."""
    assert sizes((20, 33), HALF, NZ, HALF) == ([3, 2, 16, 16], NZ)
    assert sizes((20, 33), HALF, NZ, -1) == ([3, 2, 16, 16], NZ)
    assert sizes((2, 20, 33), INT8, NZ, INT8, NCL) == ([2, 2, 2, 16, 32], NZ)
    assert sizes((20, 33), INT32, NZ, HALF) == ([3, 2, 16, 16], NZ)
    assert sizes((20, 33), FLOAT, NZ, FLOAT) == ([5, 2, 16, 8], NZ)
    assert sizes((20, 33), HALF, ND, HALF, NZ) == ([20, 33], ND)
    assert sizes((33,), HALF, NZ, HALF) == sizes((0, 3), HALF, NZ, HALF) == 161002
    assert sizes((20, 33), HALF, NZ, 12) == 161002  # no tiles of bool
    assert sizes((20, 33), HALF, NC1HWC0, HALF) == 361001


def test_newer_products_name_tiles_that_are_not_32_bytes_wide() -> None:
    code = (
        "import test_format_cast as t; print([t.sizes((20, 33), *c) for c in ("
        + ", ".join(
            str((dtype, NZ, like))
            for dtype, like in (
                (INT32, HALF),
                (FLOAT, HALF),
                (FLOAT, FLOAT8),
                (HALF, HALF),
                (HALF, INT8),
            )
        )
        + ")])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "ACLSIM_SOC": "950"}, check=True,
        capture_output=True, text=True, cwd=Path(__file__).parent,
    )  # fmt: skip
    halves = [3, 2, 16, 16]
    assert done.stdout.strip() == str(
        [(halves, C0_16), (halves, C0_16), ([2, 2, 16, 32], C0_32), (halves, NZ), 361001]
    )
