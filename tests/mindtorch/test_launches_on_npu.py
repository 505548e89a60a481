"""Calls on npu take few launches: those of CANN's operators, where it has one."""

import pytest

import mindtorch
from mindtorch import nn
from mindtorch._backends.npu import runtime


def trained(layer, x):
    """The gradients by the input and the parameters."""
    out = layer(x)
    out = out[0] if isinstance(out, tuple) else out
    return mindtorch.autograd.grad(out.sum(), [x, *layer.parameters()])


# A call of a tensor of ones in the shape and dtype, and the most launches that it takes.
CALLS = {
    "cross": (lambda x: mindtorch.linalg.cross(x, x, dim=0), (3, 4), "float32", 1),
    "histc": (lambda x: x.histc(4, 0, 2), (9,), "float32", 1),
    "quantile": (lambda x: x.quantile(0.3, 1), (3, 4), "float32", 4),
    "bucketize": (lambda x: mindtorch.bucketize(x, x), (4,), "bfloat16", 3),
    "masked_scatter": (lambda x: x.masked_scatter(x > 0, x), (4,), "float32", 3),
    "bags": (
        lambda x: nn.functional.embedding_bag(x.new_zeros(2, 3, dtype=mindtorch.int64), x),
        (4, 3),
        "float32",
        3,
    ),
    "sizes of no round ratio": (
        lambda x: nn.functional.interpolate(x, (7, 9), mode="bicubic"),
        (1, 2, 4, 5),
        "float32",
        1,
    ),
    "spread by dims": (lambda x: x.repeat(1, 2, 1, 1, 1), (1, 2, 2, 2, 2), "float32", 1),
}
# Gradients through a layer, likewise.
LAYERS = {
    "layer norm": (lambda: nn.LayerNorm(3), (2, 4, 3), "bfloat16", 4),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3), "bfloat16", 11),
    "batch norm": (lambda: nn.BatchNorm1d(4), (3, 4), "float32", 5),
    "batch norm of halves": (lambda: nn.BatchNorm2d(4), (3, 4, 2, 2), "bfloat16", 21),
    "cell": (lambda: nn.LSTMCell(3, 4), (2, 3), "float32", 13),
}


def launches(call, x):
    counters = runtime.cann().runtime.counters
    call(x)
    before = counters()["launches"]
    call(x)
    return counters()["launches"] - before


def ones(shape, dtype):
    return mindtorch.ones(shape, device="npu", dtype=getattr(mindtorch, dtype))


@pytest.mark.parametrize("name", CALLS)
def test_calls_take_few_launches(name):
    call, shape, dtype, most = CALLS[name]
    assert launches(call, ones(shape, dtype)) <= most


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_take_few_launches(name):
    made, shape, dtype, most = LAYERS[name]
    x = ones(shape, dtype)
    layer = made().to("npu", x.dtype)
    assert launches(lambda x: trained(layer, x), x.requires_grad_()) <= most
