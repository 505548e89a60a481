"""Kernels of convolution: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out
from torch_samples import randn

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

F = torch.nn.functional


# What processors that multiply bfloat16 themselves compute without unfolding: padded widths beyond
# a tile of 32 columns, several blocks of lines, odd channels, depths beyond 1,024, remainders by
# the stride. Sums of small integers are exact in any order.
DIRECT = [
    ((2, 5, 40, 37), (9, 5, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 3, 20, 90), (8, 3, 5, 4), (2, 3), (2, 1), (1, 2), 1),
    ((1, 130, 6, 40), (5, 130, 3, 3), (1, 1), (0, 1), (1, 1), 1),
    ((3, 6, 33, 34), (12, 2, 1, 2), (1, 2), (0, 1), (1, 1), 3),
    ((2, 4, 300), (17, 4, 7), (4,), (3,), (1,), 1),
    ((1, 3, 5, 18, 33), (6, 3, 2, 3, 3), (2, 1, 1), (1, 1, 0), (1, 2, 1), 1),
    ((1, 4, 64, 3), (4, 4, 64, 3), (1, 1), (0, 0), (1, 1), 1),
]


@pytest.mark.parametrize("case", DIRECT, ids=str)
def test_convolutions_of_bfloat16_are_exact(sim: Any, case: Any) -> None:
    in_shape, w_shape, stride, padding, dilation, groups = case
    x, w = ((randn(torch.float64, *size) * 2).round() for size in (in_shape, w_shape))
    b = torch.arange(w_shape[0]).double()
    settings = (stride, padding, dilation, False, (0,) * len(stride), groups)
    y = torch.convolution(x, w, b, *settings)
    given = [t.bfloat16() for t in (x, w, b)]
    sim.check("aclnnConvolution", *given, *settings, Out(y.float(), tolerance=0.0), 0)
    sim.check("aclnnConvolution", *given, *settings, Out(y.bfloat16(), tolerance=0.0), 0)


def test_a_convolution_of_tiny_bfloat16_values_is_not_flushed(sim: Any) -> None:
    x = randn(torch.bfloat16, 1, 4, 8, 40).sign() * 2.0**-70
    w = randn(torch.bfloat16, 6, 4, 3, 3, seed=1).sign() * 2.0**-60
    settings = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    y = torch.convolution(x.double(), w.double(), None, *settings).bfloat16()
    assert y.abs().max() > 0
    for given, _ in sim.run("aclnnConvolution", x, w, None, *settings, Out(y), 0):
        assert torch.equal(given, y)


def test_four_paddings_pad_each_side_by_itself(sim: Any) -> None:
    x, w = randn(torch.float32, 1, 2, 5, 5), randn(torch.float32, 3, 2, 3, 3)
    y = F.conv2d(F.pad(x, (2, 0, 1, 3)), w)
    sim.check(
        "aclnnConvolution",
        x,
        w,
        None,
        (1, 1),
        (1, 3, 2, 0),
        (1, 1),
        False,
        (0, 0),
        1,
        Out(y, tolerance=2e-5),
        0,
    )


@pytest.mark.parametrize(
    ("weight", "settings", "words"),
    [
        ((3, 4, 3, 3), ((1, 1), (0, 0), (1, 1), False, (0, 0), 1), "channels"),
        ((3, 2, 3, 3), ((0, 1), (0, 0), (1, 1), False, (0, 0), 1), "stride"),
        ((3, 2, 9, 9), ((1, 1), (0, 0), (1, 1), False, (0, 0), 1), "does not fit"),
        ((3, 2, 3), ((1, 1), (0, 0), (1, 1), False, (0, 0), 1), "dims"),
    ],
)
def test_what_a_convolution_cannot_do_is_refused(
    sim: Any, weight: Any, settings: Any, words: str
) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, w = torch.zeros(1, 2, 5, 5), torch.zeros(weight)
    with pytest.raises(AclError, match=words) as caught:
        sim.run("aclnnConvolution", x, w, None, *settings, Out(torch.zeros(1, 3, 3, 3)), 0)
    assert caught.value.code == 161002
