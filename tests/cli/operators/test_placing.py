"""How samples lie in memory: tiles of the inner format, and elements of four bits."""

import ml_dtypes
import numpy as np
import pytest
from mindtorch_npu.conformance.operators.placing import blank, in_tiles, lay

import aclnn_bindings
from aclnn_bindings.install.library import bundled_simulator

inside = pytest.mark.skipif(bundled_simulator() is None, reason="simulator is not built")


def test_a_matrix_lies_in_tiles_column_by_column():
    x = np.arange(2 * 20 * 40, dtype=np.float16).reshape(2, 20, 40)
    tiles = in_tiles(x)
    assert tiles.shape == (2, 3, 2, 16, 16)
    for r, c in ((0, 0), (17, 5), (3, 39)):
        assert (tiles[:, c // 16, r // 16, r % 16, c % 16] == x[:, r, c]).all()
    assert tiles[:, 2, :, :, 8:].max() == 0
    assert in_tiles(np.zeros((16, 32), np.int8)).shape == (1, 1, 16, 32)


@inside
@pytest.mark.parametrize("kind", [ml_dtypes.int4, ml_dtypes.float4_e2m1fn])
def test_elements_of_four_bits_share_a_byte_and_read_back(kind):
    cann = aclnn_bindings.open(simulator=True)
    x = np.array([[1, -2, 3], [0, -1, 2]]).astype(kind)
    laid = lay(cann, x, "contiguous")
    assert laid.tensor.spec.nbytes == 3
    assert (laid.read().astype(float) == x.astype(float)).all()
    assert laid.trespass() == 0
    low, high = laid.before[0] & 15, laid.before[0] >> 4
    assert (low, high) == tuple(x[0, :2].view(np.uint8))
    laid.base.buffer.fill(0x11)
    assert laid.trespass() > 0  # an input changed
    out = blank(cann, x, "contiguous", 0xFF)
    out.base.buffer.fill(0x11)
    assert out.trespass() > 0  # what lies behind an output changed
