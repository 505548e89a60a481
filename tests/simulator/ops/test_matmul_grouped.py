"""Grouped products, feed-forward layers of experts and what follows them, against numpy."""

import numpy as np
import pytest
from numpy_harness import Ops, Out, close
from quantized_operands import draw

from aclnn_bindings.runtime.status import AclError

NONE6 = (None,) * 6


@pytest.mark.parametrize(
    ("weight", "bias", "out", "message"),
    [
        ((1, 8, 4), None, (7, 4), "fewer members than there are groups"),
        ((2, 6, 4), None, (7, 4), "smaller than the width of x"),
        ((2, 8, 3), None, (7, 4), "smaller than the width of x"),
        ((2, 8, 4), (2, 3), (7, 4), "narrower than the output"),
    ],
)
def test_groups_that_do_not_fit_are_refused(
    nops: Ops,
    weight: tuple[int, ...],
    bias: tuple[int, ...] | None,
    out: tuple[int, ...],
    message: str,
) -> None:
    biases = None if bias is None else (draw(*bias),)
    args = (draw(7, 8),), (draw(*weight),), biases, *NONE6[:4], (2, 5), 0
    with pytest.raises(AclError, match=message):
        nops.both("aclnnGroupedMatmul", *args, (Out(out, "float16"),))


def test_rows_of_no_group_are_zero(nops: Ops) -> None:
    x, w = draw(7, 8), draw(3, 8, 4)
    ends = np.array([2, 2, 6], np.int64)
    weights = [(x,), (w,), None, *NONE6[:5], ends, None, None, None]
    (y,) = nops.both("aclnnGroupedMatmulV5", weights, [3, 0, 0, 0, None],
                     [(Out((7, 4), "float16"),), None, None])  # fmt: skip
    close(y[:2], x[:2].astype(np.float64) @ w[0], 2e-3)
    close(y[2:6], x[2:6].astype(np.float64) @ w[2], 2e-3)
    assert not y[6:].any()
