"""The inner format as clients describe it: plain views of tiles, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy_harness import Array, Ops, Out, close
from test_ops_matmul_quant import inner

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
