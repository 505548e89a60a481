"""Grouped products, feed-forward layers of experts and what follows them, against numpy."""

import pytest
from numpy_harness import Ops, Out
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
