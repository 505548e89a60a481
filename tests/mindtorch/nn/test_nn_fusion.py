"""A normalization folded into the layer before it computes what the two compute, as torch's."""

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def _pair(t, layer, norm):
    for i, module in enumerate((layer, norm)):
        for j, tensor in enumerate((*module.parameters(), *module.buffers())):
            if tensor.is_floating_point():
                count = t.arange(1.0, tensor.numel() + 1)
                tensor.data.copy_(t.sin(count * 0.3 + i + j).reshape(tensor.shape).abs() + 0.1)
    return layer.eval(), norm.eval()


CASES = {
    "conv": lambda t: (*_pair(t, t.nn.Conv2d(2, 3, 2), t.nn.BatchNorm2d(3)), "conv", (1, 2, 4, 4)),
    "bare": lambda t: (
        *_pair(t, t.nn.Conv1d(2, 3, 2, bias=False), t.nn.BatchNorm1d(3, affine=False)),
        "conv",
        (1, 2, 5),
    ),
    "linear": lambda t: (*_pair(t, t.nn.Linear(4, 3), t.nn.BatchNorm1d(3)), "linear", (2, 4)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fused_layer_computes_both(case):
    results = []
    for t in (mindtorch, torch):
        layer, norm, kind, shape = CASES[case](t)
        x = t.ones(shape)
        fused = getattr(t.nn.utils.fusion, f"fuse_{kind}_bn_eval")(layer, norm)
        assert t.allclose(fused(x), norm(layer(x)), atol=1e-5)
        results.append(fused(x).double().tolist())
    assert mindtorch.tensor(results[0]).allclose(mindtorch.tensor(results[1]), atol=1e-5)


@pytest.mark.parametrize("t", [mindtorch, torch], ids=["mindtorch", "torch"])
def test_training_layers_are_not_fused(t):
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        t.nn.utils.fusion.fuse_conv_bn_eval(t.nn.Conv1d(1, 1, 1), t.nn.BatchNorm1d(1))
