"""Kernels of convolution: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted
from torch_samples import noise, randn, result_and_gradient

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

F = torch.nn.functional
FLOATS = [torch.float32, torch.float16, torch.bfloat16]
# Sums of some hundred products: relative to the largest result.
LOOSE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
# input, weight, stride, padding, dilation, output padding, groups
PLAIN = [
    ((2, 3, 9), (4, 3, 3), (1,), (1,), (1,), (0,), 1),
    ((2, 4, 7, 8), (6, 4, 3, 3), (1, 1), (1, 1), (1, 1), (0, 0), 1),
    ((2, 4, 9, 8), (6, 2, 3, 2), (2, 1), (0, 2), (2, 1), (0, 0), 2),
    ((2, 4, 6, 6), (4, 1, 3, 3), (2, 2), (1, 1), (1, 1), (0, 0), 4),
    ((2, 5, 4, 4), (3, 5, 1, 1), (1, 1), (0, 0), (1, 1), (0, 0), 1),
    ((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), (1, 2, 1), (0, 1, 1), (1, 1, 2), (0, 0, 0), 1),
]
TRANSPOSED = [
    ((2, 4, 5), (4, 3, 3), (2,), (1,), (1,), (1,), 1),
    ((2, 4, 5, 6), (4, 3, 3, 2), (2, 1), (1, 0), (1, 2), (1, 0), 1),
    ((2, 4, 3, 3), (4, 2, 3, 3), (3, 2), (0, 1), (1, 1), (2, 1), 2),
    ((1, 2, 3, 3, 2), (2, 3, 2, 2, 2), (1, 2, 1), (0, 0, 1), (1, 1, 1), (0, 1, 0), 1),
    ((2, 3, 4, 4), (3, 2, 1, 1), (1, 1), (0, 0), (1, 1), (0, 0), 1),
]
CASES = [(False, *case) for case in PLAIN] + [(True, *case) for case in TRANSPOSED]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolutions_and_their_gradients_equal_torch(sim: Any, dtype: Any, case: Any) -> None:
    transposed, in_shape, w_shape, stride, padding, dilation, extra, groups = case
    x, w = randn(dtype, *in_shape), randn(dtype, *w_shape, seed=1)
    b = randn(dtype, w_shape[1] * groups if transposed else w_shape[0], seed=2)
    settings = (stride, padding, dilation, transposed, extra, groups)
    wide = [t.double().requires_grad_() for t in (x, w, b)]
    y = torch.convolution(*wide, *settings)
    tol = LOOSE[dtype]
    expected = y.detach().to(dtype)
    sim.check("aclnnConvolution", x, w, b, *settings, Out(expected, tolerance=tol), 0)
    plain = torch.convolution(*[t.detach() for t in wide[:2]], None, *settings).to(dtype)
    sim.check("aclnnConvolution", x, w, None, *settings, Out(plain, tolerance=tol), 0)
    g = randn(dtype, *y.shape, seed=3)
    gx, gw, gb = (t.to(dtype) for t in torch.autograd.grad(y, wide, g.double()))
    outs = [Out(t, tolerance=4 * tol) for t in (gx, gw, gb)]
    every = (True, True, True)
    sim.check("aclnnConvolutionBackward", g, x, w, tuple(b.shape), *settings, every, 0, *outs)
    only = (False, True, False)
    sim.check("aclnnConvolutionBackward", g, x, w, None, *settings, only, 0, None, outs[1], None)


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


def test_a_depthwise_convolution_equals_torch(sim: Any) -> None:
    x, w, b = randn(torch.float32, 2, 4, 6, 7), randn(torch.float32, 8, 1, 3, 3), torch.ones(8)
    y = F.conv2d(x, w, b, (1, 2), (1, 0), (1, 1), groups=4)
    sim.check(
        "aclnnConvDepthwise2d", x, w, (3, 3), b, (1, 2), (1, 0), (1, 1), Out(y, tolerance=2e-5), 0
    )


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


def test_convolution_over_time_and_its_gradients(sim: Any) -> None:
    x, w = noise(6, 2, 3).requires_grad_(), noise(3, 3, 4, seed=1).requires_grad_()
    b = noise(4, seed=2).requires_grad_()
    y = torch.conv_tbc(x, w, b, 1)
    given = [t.detach() for t in (x, w, b)]
    accepted(sim, "aclnnConvTbc", *given, 1, Out(y.detach(), tolerance=1e-5), 0)
    g = noise(*y.shape, seed=3)
    grads = torch.autograd.grad((y * g).sum(), (x, w, b))
    accepted(sim, "aclnnConvTbcBackward", g, *given, 1, 0, *(Out(t, tolerance=1e-5) for t in grads))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel", [(1, 1), (2, 3), (3, 2)])
def test_unfolding_and_folding_equal_torch(sim: Any, dtype: Any, kernel: Any) -> None:
    x = randn(dtype, 2, 3, 6, 7)
    for dilation, padding, stride in (((1, 1), (0, 0), (1, 1)), ((2, 1), (1, 2), (2, 3))):
        settings = (kernel, dilation, padding, stride)
        y, g, gx = result_and_gradient(lambda a, s=settings: F.unfold(a, *s), x)
        sim.check("aclnnIm2col", x, *settings, Out(y))
        sim.check("aclnnIm2col", x[0], *settings, Out(y[0]))
        sim.check("aclnnIm2colBackward", g, (6, 7), *settings, Out(gx))
