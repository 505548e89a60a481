"""Every layer: repr, state dict keys, forward and backward are torch's."""

from typing import Any

import pytest
from nn_differential import compare_modules, integers, rand

import mindtorch as mt

Case = tuple[str, Any, tuple[Any, ...]]

LINEAR: list[Case] = [
    ("identity", lambda nn: nn.Identity(3, unused=4), (rand(2, 3),)),
    ("linear", lambda nn: nn.Linear(3, 4), (rand(2, 3),)),
    ("linear without bias", lambda nn: nn.Linear(3, 4, bias=False), (rand(5, 2, 3),)),
    ("linear of a vector", lambda nn: nn.Linear(3, 4), (rand(3),)),
    ("bilinear", lambda nn: nn.Bilinear(3, 4, 5), (rand(2, 3), rand(2, 4, seed=2))),
    ("embedding", lambda nn: nn.Embedding(7, 3), (integers(7, 2, 5),)),
    ("embedding with padding", lambda nn: nn.Embedding(7, 3, padding_idx=-2), (integers(7, 9),)),
    (
        "embedding scaled by frequency",
        lambda nn: nn.Embedding(4, 3, scale_grad_by_freq=True),
        (integers(4, 9),),
    ),
    (
        "embedding bag",
        lambda nn: nn.EmbeddingBag(7, 3, mode="sum"),
        (integers(7, 9), integers(1, 1)),
    ),
    ("embedding bag of rows", lambda nn: nn.EmbeddingBag(7, 3), (integers(7, 3, 4),)),
    ("embedding bag max", lambda nn: nn.EmbeddingBag(7, 3, mode="max"), (integers(7, 3, 4),)),
]

ACTIVATIONS = [
    "ReLU",
    "ReLU6",
    "GELU",
    "SiLU",
    "Mish",
    "Sigmoid",
    "Tanh",
    "LogSigmoid",
    "Softsign",
    "Tanhshrink",
    "Hardswish",
    "Hardsigmoid",
    "Hardtanh",
    "ELU",
    "CELU",
    "SELU",
    "LeakyReLU",
    "Softplus",
    "Softshrink",
    "Hardshrink",
    "GLU",
    "PReLU",
]

SPATIAL: list[Case] = [
    ("conv1d", lambda nn: nn.Conv1d(4, 6, 3, padding=1), (rand(2, 4, 9),)),
    ("conv1d strided", lambda nn: nn.Conv1d(4, 6, 3, stride=2, dilation=2), (rand(2, 4, 9),)),
    ("conv2d", lambda nn: nn.Conv2d(3, 4, 3), (rand(2, 3, 7, 8),)),
    ("conv2d grouped", lambda nn: nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), groups=2, bias=False),
     (rand(2, 4, 7, 8),)),
    ("conv2d depthwise", lambda nn: nn.Conv2d(4, 4, 3, padding="same", groups=4),
     (rand(2, 4, 7, 8),)),
    ("conv2d same even", lambda nn: nn.Conv2d(3, 4, 4, padding="same"), (rand(2, 3, 7, 8),)),
    ("conv2d unbatched", lambda nn: nn.Conv2d(3, 4, 3), (rand(3, 7, 8),)),
    ("conv2d reflect", lambda nn: nn.Conv2d(3, 4, 3, padding=2, padding_mode="reflect"),
     (rand(2, 3, 7, 8),)),
    ("conv2d circular", lambda nn: nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"),
     (rand(2, 3, 7, 8),)),
    ("conv3d", lambda nn: nn.Conv3d(2, 3, 2, stride=2, padding=1), (rand(2, 2, 4, 5, 6),)),
    ("conv transpose 1d", lambda nn: nn.ConvTranspose1d(4, 6, 3, 2, 1, 1), (rand(2, 4, 5),)),
    ("conv transpose 2d", lambda nn: nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2),
     (rand(2, 4, 5, 6),)),
    ("conv transpose 3d", lambda nn: nn.ConvTranspose3d(2, 3, 2, 2), (rand(1, 2, 3, 3, 3),)),
    ("max pool 1d", lambda nn: nn.MaxPool1d(3, 2, 1), (rand(2, 3, 9),)),
    ("max pool 2d", lambda nn: nn.MaxPool2d(2), (rand(2, 3, 7, 8),)),
    ("max pool 2d ceil", lambda nn: nn.MaxPool2d(3, 2, 1, ceil_mode=True), (rand(2, 3, 7, 8),)),
    ("max pool 2d indices", lambda nn: nn.MaxPool2d((2, 3), return_indices=True),
     (rand(2, 3, 7, 8),)),
    ("max pool 3d", lambda nn: nn.MaxPool3d(2), (rand(1, 2, 4, 5, 6),)),
    ("avg pool 1d", lambda nn: nn.AvgPool1d(3, 2, 1), (rand(2, 3, 9),)),
    ("avg pool 2d", lambda nn: nn.AvgPool2d(3, 2, 1, count_include_pad=False),
     (rand(2, 3, 7, 8),)),
    ("avg pool 2d ceil", lambda nn: nn.AvgPool2d(2, ceil_mode=True), (rand(2, 3, 7, 7),)),
    ("avg pool 3d", lambda nn: nn.AvgPool3d(2), (rand(1, 2, 4, 5, 6),)),
    ("adaptive avg 1d", lambda nn: nn.AdaptiveAvgPool1d(4), (rand(2, 3, 9),)),
    ("adaptive avg 2d", lambda nn: nn.AdaptiveAvgPool2d((3, None)), (rand(2, 3, 7, 8),)),
    ("adaptive avg 2d to one", lambda nn: nn.AdaptiveAvgPool2d(1), (rand(2, 3, 7, 8),)),
    ("adaptive avg 3d", lambda nn: nn.AdaptiveAvgPool3d(2), (rand(1, 2, 4, 5, 6),)),
    ("adaptive max 1d", lambda nn: nn.AdaptiveMaxPool1d(4), (rand(2, 3, 9),)),
    ("adaptive max 2d", lambda nn: nn.AdaptiveMaxPool2d((3, 5)), (rand(2, 3, 7, 8),)),
    ("adaptive max 3d", lambda nn: nn.AdaptiveMaxPool3d(2), (rand(1, 2, 4, 5, 6),)),
    ("lp pool 2d", lambda nn: nn.LPPool2d(2, 3, 2), (rand(2, 3, 7, 8),)),
    ("zero pad", lambda nn: nn.ZeroPad2d((1, 2, 0, 3)), (rand(2, 3, 4, 5),)),
    ("constant pad", lambda nn: nn.ConstantPad1d((1, -1), 2.5), (rand(2, 3, 5),)),
    ("reflection pad", lambda nn: nn.ReflectionPad2d(2), (rand(2, 3, 4, 5),)),
    ("replication pad", lambda nn: nn.ReplicationPad3d(1), (rand(1, 2, 3, 4, 5),)),
    ("circular pad", lambda nn: nn.CircularPad1d((2, 1)), (rand(2, 3, 5),)),
    ("pixel shuffle", lambda nn: nn.PixelShuffle(2), (rand(2, 8, 3, 4),)),
    ("pixel unshuffle", lambda nn: nn.PixelUnshuffle(2), (rand(2, 2, 4, 6),)),
    ("channel shuffle", lambda nn: nn.ChannelShuffle(2), (rand(2, 6, 3, 3),)),
    ("unfold", lambda nn: nn.Unfold((2, 3), 1, 1, 2), (rand(2, 3, 5, 6),)),
    ("fold", lambda nn: nn.Fold((4, 5), (2, 3), padding=1, stride=2), (rand(2, 18, 9),)),
    ("upsample nearest", lambda nn: nn.Upsample(scale_factor=2), (rand(2, 3, 4, 5),)),
    ("upsample to size", lambda nn: nn.Upsample((7, 3)), (rand(2, 3, 4, 5),)),
    ("upsample bilinear", lambda nn: nn.Upsample(scale_factor=1.7, mode="bilinear"),
     (rand(2, 3, 4, 5),)),
    ("upsample aligned", lambda nn: nn.Upsample((7, 9), mode="bilinear", align_corners=True),
     (rand(2, 3, 4, 5),)),
    ("upsample bicubic", lambda nn: nn.Upsample((7, 3), mode="bicubic"), (rand(2, 3, 4, 5),)),
    ("upsample linear", lambda nn: nn.Upsample(5, mode="linear"), (rand(2, 3, 8),)),
    ("upsample trilinear", lambda nn: nn.Upsample(scale_factor=2, mode="trilinear"),
     (rand(1, 2, 3, 3, 3),)),
    ("flatten", lambda nn: nn.Flatten(), (rand(2, 3, 4, 5),)),
    ("unflatten", lambda nn: nn.Unflatten(1, (2, 3)), (rand(2, 6, 4),)),
]  # fmt: skip

NORMS: list[Case] = [
    ("layer norm", lambda nn: nn.LayerNorm(5), (rand(2, 3, 5),)),
    ("layer norm two dims", lambda nn: nn.LayerNorm((3, 5), eps=1e-3), (rand(2, 3, 5),)),
    ("layer norm plain", lambda nn: nn.LayerNorm(5, elementwise_affine=False), (rand(2, 5),)),
    ("layer norm no bias", lambda nn: nn.LayerNorm(5, bias=False), (rand(2, 5),)),
    ("rms norm", lambda nn: nn.RMSNorm(5), (rand(2, 3, 5),)),
    ("rms norm eps", lambda nn: nn.RMSNorm((3, 5), eps=1e-5), (rand(2, 3, 5),)),
    ("group norm", lambda nn: nn.GroupNorm(2, 6), (rand(2, 6, 4, 5),)),
    ("group norm plain", lambda nn: nn.GroupNorm(3, 6, affine=False), (rand(2, 6, 4),)),
    ("batch norm 1d", lambda nn: nn.BatchNorm1d(3), (rand(6, 3),)),
    ("batch norm 1d long", lambda nn: nn.BatchNorm1d(3, momentum=None), (rand(6, 3, 4),)),
    ("batch norm 2d", lambda nn: nn.BatchNorm2d(3), (rand(2, 3, 4, 5),)),
    ("batch norm 2d bare", lambda nn: nn.BatchNorm2d(3, affine=False, track_running_stats=False),
     (rand(2, 3, 4, 5),)),
    ("batch norm 3d", lambda nn: nn.BatchNorm3d(2), (rand(2, 2, 3, 3, 3),)),
    ("instance norm 1d", lambda nn: nn.InstanceNorm1d(3), (rand(2, 3, 5),)),
    ("instance norm 2d", lambda nn: nn.InstanceNorm2d(3, affine=True, track_running_stats=True),
     (rand(2, 3, 4, 5),)),
    ("local response norm", lambda nn: nn.LocalResponseNorm(3), (rand(2, 5, 4, 4),)),
]  # fmt: skip

SEQUENCES: list[Case] = [
    ("lstm", lambda nn: nn.LSTM(3, 4, num_layers=2), (rand(5, 2, 3),)),
    ("lstm both ways", lambda nn: nn.LSTM(3, 4, bidirectional=True, batch_first=True),
     (rand(2, 5, 3),)),
    ("lstm projected", lambda nn: nn.LSTM(3, 4, proj_size=2), (rand(5, 2, 3),)),
    ("gru", lambda nn: nn.GRU(3, 4, bidirectional=True, num_layers=2), (rand(5, 2, 3),)),
    ("gru without bias", lambda nn: nn.GRU(3, 4, bias=False), (rand(5, 3),)),
    ("rnn", lambda nn: nn.RNN(3, 4), (rand(5, 2, 3), rand(1, 2, 4, seed=4))),
    ("rnn relu", lambda nn: nn.RNN(3, 4, nonlinearity="relu"), (rand(5, 2, 3),)),
    ("lstm cell", lambda nn: nn.LSTMCell(3, 4), (rand(2, 3),)),
    ("gru cell", lambda nn: nn.GRUCell(3, 4), (rand(2, 3), rand(2, 4, seed=3))),
    ("rnn cell", lambda nn: nn.RNNCell(3, 4, nonlinearity="relu"), (rand(2, 3),)),
    ("encoder layer", lambda nn: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0),
     (rand(5, 2, 8),)),
    ("encoder layer norm first",
     lambda nn: nn.TransformerEncoderLayer(
         8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True),
     (rand(2, 5, 8),)),
    ("decoder layer", lambda nn: nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0),
     (rand(5, 2, 8), rand(4, 2, 8, seed=5))),
    ("transformer", lambda nn: nn.Transformer(8, 2, 1, 2, 16, dropout=0.0),
     (rand(5, 2, 8), rand(4, 2, 8, seed=5))),
]  # fmt: skip


def ids(cases: list[Case]) -> list[str]:
    return [case[0] for case in cases]


CASES = LINEAR + SPATIAL + NORMS + SEQUENCES


@pytest.fixture(params=["cpu", "npu"])
def device(request: pytest.FixtureRequest) -> str:
    import mindtorch

    if request.param == "npu" and not mindtorch.npu.is_available():
        pytest.skip("no NPU and no simulator install is there")
    return str(request.param)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_layer_behaves_as_torchs(case: Case, device: str) -> None:
    _, make, args = case
    compare_modules(make, args, device=device)


@pytest.mark.parametrize("case", NORMS, ids=ids(NORMS))
def test_norm_in_evaluation_behaves_as_torchs(case: Case) -> None:
    _, make, args = case
    compare_modules(make, args, training=False)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_behaves_as_torchs(name: str, device: str) -> None:
    compare_modules(lambda nn: getattr(nn, name)(), (rand(3, 6),), device=device)


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Softmin"])
def test_softmax_layers_behave_as_torchs(name: str) -> None:
    compare_modules(lambda nn: getattr(nn, name)(dim=1), (rand(3, 6),))


INPLACE = [
    "ReLU",
    "ReLU6",
    "SiLU",
    "Mish",
    "Hardswish",
    "Hardsigmoid",
    "ELU",
    "CELU",
    "SELU",
    "LeakyReLU",
]


@pytest.mark.parametrize("name", INPLACE)
def test_inplace_activation_writes_into_its_input(name: str) -> None:
    import mindtorch

    x = mindtorch.tensor([-1.0, 0.5, 2.0])
    expected = getattr(mindtorch.nn, name)()(x.clone())
    found = getattr(mindtorch.nn, name)(inplace=True)(x)
    assert found.data_ptr() == x.data_ptr()
    assert x.tolist() == pytest.approx(expected.tolist())


ATTENTION: list[tuple[str, Any, dict[str, Any]]] = [
    ("plain", lambda nn: nn.MultiheadAttention(8, 2), {}),
    ("no weights", lambda nn: nn.MultiheadAttention(8, 2), {"need_weights": False}),
    ("each head", lambda nn: nn.MultiheadAttention(8, 2), {"average_attn_weights": False}),
    ("bias kv", lambda nn: nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True), {}),
    ("no bias", lambda nn: nn.MultiheadAttention(8, 4, bias=False), {}),
]


@pytest.mark.parametrize("case", ATTENTION, ids=[case[0] for case in ATTENTION])
def test_self_attention_behaves_as_torchs(case: tuple[str, Any, dict[str, Any]]) -> None:
    _, make, kwargs = case
    compare_modules(make, (rand(5, 2, 8), rand(4, 2, 8, seed=2), rand(4, 2, 8, seed=3)), **kwargs)


def test_attention_masks_behave_as_torchs() -> None:
    hidden = integers(2, 2, 4).bool()
    hidden[:, 0] = False
    args = (rand(5, 2, 8), rand(4, 2, 8, seed=2), rand(4, 2, 6, seed=3))
    compare_modules(
        lambda nn: nn.MultiheadAttention(8, 2, vdim=6),
        args,
        key_padding_mask=hidden,
        attn_mask=rand(5, 4, grad=False),
    )


HALVES: list[Case] = [
    ("linear", lambda nn: nn.Linear(5, 4), (rand(2, 5),)),
    ("layer norm", lambda nn: nn.LayerNorm(5), (rand(2, 5),)),
    ("rms norm", lambda nn: nn.RMSNorm(5), (rand(2, 5),)),
    ("group norm", lambda nn: nn.GroupNorm(2, 4), (rand(2, 4, 3),)),
    ("batch norm", lambda nn: nn.BatchNorm2d(3), (rand(4, 3, 5, 5),)),
    ("conv", lambda nn: nn.Conv2d(3, 4, 3), (rand(2, 3, 6, 6),)),
    ("gelu", lambda nn: nn.GELU(), (rand(3, 4),)),
    ("softmax", lambda nn: nn.Softmax(-1), (rand(3, 4),)),
    ("max pool", lambda nn: nn.MaxPool2d(2), (rand(2, 3, 6, 6),)),
]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("case", HALVES, ids=ids(HALVES))
def test_layer_in_half_precision_is_near_its_wide_self(case: Case, dtype: str) -> None:
    import numpy as np

    import mindtorch

    _, make, (x,) = case
    kind = getattr(mindtorch, dtype)
    mindtorch.manual_seed(0)
    wide = make(mindtorch.nn)
    half = make(mindtorch.nn).to(kind)
    half.load_state_dict(wide.state_dict())
    results = []
    for module, to in ((wide, mindtorch.float32), (half, kind)):
        given = mindtorch.from_numpy(x.detach().numpy().copy()).to(to).requires_grad_()
        out = module(given)
        assert out.dtype is to
        weights = np.random.default_rng(5).standard_normal(tuple(out.shape)).astype(np.float32)
        (out.float() * mindtorch.from_numpy(weights)).sum().backward()
        grads = [given.grad, *(p.grad for p in module.parameters())]
        assert all(grad.dtype is to for grad in grads)
        results.append([t.detach().float().numpy() for t in (out, *grads)])
    # bfloat16 keeps 8 bits: inputs, weights and results are each rounded once.
    for found, expected in zip(results[1], results[0], strict=True):
        scale = float(np.abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.05 * scale)


@pytest.mark.parametrize("name", ["native_batch_norm", "batch_norm"])
def test_every_call_moves_running_statistics_once(name):
    x = mt.arange(24.0).reshape(3, 2, 4).sin()
    for _ in range(5):  # the third call is the one that composites are recorded in
        moved = []
        for device in ("cpu", "npu"):
            mean, var = mt.zeros(2, device=device), mt.ones(2, device=device)
            if name == "batch_norm":
                mt.nn.functional.batch_norm(x.to(device), mean, var, training=True)
            else:
                mt.native_batch_norm(x.to(device), None, None, mean, var, True, 0.1, 1e-5)
            moved.append((mean.cpu(), var.cpu()))
        mt.testing.assert_close(*moved)
