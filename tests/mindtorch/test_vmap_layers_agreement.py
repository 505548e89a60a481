"""Gradients of layers for each sample and for each member of an ensemble, against torch's: values,
and that no row runs element by element."""

from collections import Counter

import numpy as np
import pytest

import mindtorch
from mindtorch.func import _batched
from tests.mindtorch.agreement import torch

WEIGHTED = """
nn.Conv2d(3, 4, 3)
nn.Conv2d(3, 6, (3, 2), stride=2, padding=1, groups=3)
nn.Conv2d(3, 2, 3, dilation=2, bias=False)
nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1)
nn.ConvTranspose2d(3, 3, 2, groups=3)
nn.BatchNorm2d(3)
nn.BatchNorm2d(3, track_running_stats=False)
nn.InstanceNorm2d(3, affine=True)
nn.GroupNorm(3, 3)
nn.LayerNorm((6, 6))
nn.PReLU()
""".strip().split("\n")
PLAIN = """
nn.MaxPool2d(2)
nn.AvgPool2d(2, padding=1)
nn.AdaptiveMaxPool2d(2)
nn.AdaptiveAvgPool2d(4)
nn.LPPool2d(2, 2)
nn.Upsample(scale_factor=2, mode="bilinear")
nn.ReflectionPad2d(1)
nn.Unfold(2)
nn.Flatten(2)
""".strip().split("\n")
CASES = [(text, members) for text in WEIGHTED for members in ("", "of one sample", "of samples")]


def parts(t, text):
    """The layer, its parameters by values that both libraries have, six samples."""
    layer = eval(text, {"nn": t.nn}).eval()
    names = {n: fill(t, p.shape) + (p.dim() == 1) for n, p in layer.named_parameters()}
    return layer, names, fill(t, (6, 3, 6, 6))


def fill(t, shape):
    count = 1
    for n in shape:
        count *= n
    return ((t.arange(float(count)) + 1) * 1.7).sin().reshape(shape)


def slopes(t, text, ensemble):
    layer, names, x = parts(t, text)
    buffers = dict(layer.named_buffers())

    def loss(weights, sample):
        out = t.func.functional_call(layer, (weights, buffers), (sample[None],))
        return (out.tanh() * fill(t, out.shape[1:])).sum()

    each = t.func.grad(loss, argnums=(0, 1))
    if not ensemble:
        return outs(t.func.vmap(each, in_dims=(None, 0))(names, x))
    several = {n: t.stack([v, v * 0.5, -v]) for n, v in names.items()}
    both = (several, x[:3]) if ensemble == "of samples" else (several, x[0])
    dims = (0, 0 if ensemble == "of samples" else None)
    return outs(t.func.vmap(each, in_dims=dims)(*both))


def outs(value):
    weights, inputs = value
    return tuple(v.contiguous() for v in (*weights.values(), inputs))


@pytest.mark.parametrize(("text", "ensemble"), [*CASES, *((text, "") for text in PLAIN)])
def test_gradients_of_layers(text, ensemble, monkeypatch):
    single, run = Counter(), _batched._each

    def each(op, *rest):
        single[op.name] += 1
        return run(op, *rest)

    monkeypatch.setattr(_batched, "_each", each)
    close(lambda t: slopes(t, text, ensemble))
    assert not single


def close(run):
    """Of one layout and dtype, and apart by the rounding of sums in another order."""
    for ours, theirs in zip(run(mindtorch), run(torch), strict=True):
        assert (tuple(ours.shape), str(ours.dtype)) == (tuple(theirs.shape), str(theirs.dtype))
        np.testing.assert_allclose(
            ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=2e-5
        )


def test_tables_of_an_ensemble_refuse_what_they_do_not_hold():
    def look(t, numbers):
        return t.func.vmap(t.nn.functional.embedding, in_dims=(None, 0))(
            numbers, fill(t, (3, 4, 2))
        )

    close(lambda t: (look(t, t.tensor([[0, 3], [1, 1]])),))
    beyond = mindtorch.tensor([4])
    with pytest.raises(IndexError):
        look(mindtorch, beyond)
