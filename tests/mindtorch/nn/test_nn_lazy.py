"""Layers that learn their sizes from the first input become what torch's become."""

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

LAYERS = [
    ("LazyLinear", (3,), (2, 5)),
    ("LazyConv1d", (4, 3), (2, 3, 8)),
    ("LazyConv2d", (4, 3), (3, 8, 8)),
    ("LazyConvTranspose2d", (4, 3), (2, 3, 4, 4)),
    ("LazyBatchNorm1d", (), (4, 3)),
    ("LazyInstanceNorm2d", (), (2, 3, 4, 4)),
]


def _learned(t, name, args, shape):
    torch.manual_seed(0)
    mindtorch.manual_seed(0)
    layer = getattr(t.nn, name)(*args)
    before = [repr(p) for p in layer.parameters()], layer.has_uninitialized_params()
    out = layer(t.ones(shape))
    state = {k: v.double().tolist() for k, v in layer.state_dict().items()}
    return before, type(layer).__name__, repr(layer), tuple(out.shape), state


@pytest.mark.parametrize(("name", "args", "shape"), LAYERS, ids=[c[0] for c in LAYERS])
def test_a_layer_without_sizes_is_moved_and_cast(name, args, shape):
    layer = getattr(mindtorch.nn, name)(*args).to("npu").half()
    out = layer(mindtorch.ones(shape, device="npu", dtype=mindtorch.float16))
    assert {(v.device.type, v.dtype) for v in (out, *layer.parameters())} == {
        ("npu", mindtorch.float16)
    }


@pytest.mark.parametrize(("name", "args", "shape"), LAYERS, ids=[c[0] for c in LAYERS])
def test_the_first_input_decides_the_class_and_the_state(name, args, shape):
    got, expected = (_learned(t, name, args, shape) for t in (mindtorch, torch))
    assert got[:4] == expected[:4]
    for key, values in expected[4].items():
        assert mindtorch.tensor(got[4][key]).allclose(mindtorch.tensor(values)), key


def test_loading_gives_lazy_parameters_their_shapes():
    lazy = mindtorch.nn.Sequential(mindtorch.nn.LazyLinear(3))
    plain = mindtorch.nn.Sequential(mindtorch.nn.Linear(5, 3))
    lazy.load_state_dict(plain.state_dict())
    x = mindtorch.ones(2, 5)
    assert mindtorch.equal(lazy(x), plain(x))


@pytest.mark.parametrize("t", [mindtorch, torch], ids=["mindtorch", "torch"])
def test_a_shape_that_is_not_known_is_refused(t):
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        t.nn.LazyLinear(3).weight.shape  # noqa: B018
