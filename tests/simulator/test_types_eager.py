"""Types that eager clients call where operators are compiled just in time; torch judges."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from compiled import install
from numpy_harness import Array, Ops, Out
from type_harness import Attribute, Types

torch = pytest.importorskip("torch", reason="torch is the oracle")
F = torch.nn.functional

RNG = np.random.default_rng(12)
CLOSE = {"rtol": 2e-5, "atol": 2e-6}
Function = Callable[..., torch.Tensor]


@pytest.fixture(scope="module")
def types(nops: Ops) -> Types:
    return Types(nops, install())


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def numbers(*values: int, dtype: str = "int64") -> np.ndarray:
    return np.array(values, dtype)


def leaf(array: np.ndarray) -> torch.Tensor:
    return torch.tensor(array.astype(np.float64), requires_grad=True)


@dataclass(frozen=True)
class Function1:
    """A type of one input, torch's function, and the type of its gradient.

    `given`: the gradient's inputs, by the letters g (upstream), x and y.
    """

    type: str
    torch: Function
    gradient: str = ""
    given: str = "gx"
    attributes: dict[str, Attribute] = field(default_factory=dict)
    of_gradient: dict[str, Attribute] = field(default_factory=dict)


ACTIVATIONS = [
    Function1("Gelu", lambda x: F.gelu(x, approximate="tanh"), "GeluGrad", "gxy"),
    Function1("LeakyRelu", lambda x: F.leaky_relu(x, 0.3), "LeakyReluGrad",
              attributes={"negative_slope": 0.3}),
    Function1("HardSigmoid", F.hardsigmoid, "HardSigmoidGrad"),
    Function1("HardShrink", lambda x: F.hardshrink(x, 0.4), "HardShrinkGrad",
              attributes={"lambd": 0.4}),
    Function1("SoftShrink", lambda x: F.softshrink(x, 0.4), "SoftShrinkGrad",
              attributes={"lambd": 0.4}),
    Function1("Selu", F.selu, "SeluGrad", "gy"),
    Function1("CeluV2", lambda x: F.celu(x, 0.7), attributes={"alpha": 0.7}),
    Function1("SoftplusV2", lambda x: F.softplus(x, 2, 1.5), "SoftplusV2Grad",
              attributes={"beta": 2.0, "threshold": 1.5}),
    Function1("LogSigmoid", F.logsigmoid, "LogSigmoidGrad"),
    Function1("ThresholdV2D", lambda x: F.threshold(x, 0.2, -3), "ThresholdGradV2D",
              attributes={"threshold": 0.2, "value": -3.0}, of_gradient={"threshold": 0.2}),
    Function1("GLU", lambda x: F.glu(x, 1), "GLUGrad", attributes={"dim": 1}),
    Function1("Swish", F.silu, "SwishGrad", "gxy", attributes={"scale": 1.0}),
    Function1("Trace", torch.trace),
    Function1("Diag", lambda x: torch.diag(x, 1), attributes={"diagonal": 1}),
    Function1("Roll", lambda x: torch.roll(x, (1, -2), (0, 1)),
              attributes={"shifts": [1, -2], "dims": [0, 1]}),
]  # fmt: skip


@pytest.mark.parametrize("row", ACTIVATIONS, ids=lambda row: row.type)
def test_functions_and_their_gradients(types: Types, row: Function1) -> None:
    x = normal(6, 6)
    tx = leaf(x)
    expected = row.torch(tx)
    [y] = types(row.type, [x], [Out(tuple(expected.shape))], **row.attributes)
    np.testing.assert_allclose(y, expected.detach(), **CLOSE)
    if not row.gradient:
        return
    g = normal(*expected.shape)
    expected.backward(torch.tensor(g.astype(np.float64)))
    given: dict[str, Array] = {"g": g, "x": x, "y": y}
    attributes = row.of_gradient or row.attributes
    [dx] = types(row.gradient, [given[k] for k in row.given], [Out(x.shape)], **attributes)
    np.testing.assert_allclose(dx, tx.grad, **CLOSE)


def test_gradients_that_stand_alone(types: Types) -> None:
    x, g = normal(5, 4), normal(5, 4)

    def gradient(function: Function) -> np.ndarray:
        tx = leaf(x)
        function(tx).backward(torch.tensor(g.astype(np.float64)))
        assert tx.grad is not None
        return tx.grad.numpy()

    [dx] = types("HardtanhGrad", [x, g], [Out(x.shape)], min_val=-0.5, max_val=0.75)
    np.testing.assert_allclose(dx, gradient(lambda t: F.hardtanh(t, -0.5, 0.75)), **CLOSE)
    elu = {"alpha": 0.6, "scale": 1.0, "input_scale": 1.0, "is_result": False}
    [dx] = types("EluGradV2", [g, x], [Out(x.shape)], **elu)
    np.testing.assert_allclose(dx, gradient(lambda t: F.elu(t, 0.6)), **CLOSE)
    weight = normal(4)
    [y] = types("PRelu", [x, weight], [Out(x.shape)])
    tx, tw = leaf(x), leaf(weight)
    expected = F.prelu(tx, tw)
    expected.backward(torch.tensor(g.astype(np.float64)))
    np.testing.assert_allclose(y, expected.detach(), **CLOSE)
    dx, dw = types("PReluGrad", [g, x, weight], [Out(x.shape), Out((4,))])
    np.testing.assert_allclose(dx, tx.grad, **CLOSE)
    np.testing.assert_allclose(dw, tw.grad, **CLOSE)


@dataclass(frozen=True)
class Loss:
    """A loss of two inputs; `given`: the gradient's inputs by g (upstream), x and t (target)."""

    type: str
    torch: Function
    gradient: str
    given: str = "xtg"
    attributes: dict[str, Attribute] = field(default_factory=dict)
    target: Callable[[np.ndarray], np.ndarray] = field(default=lambda t: t)
    x: Callable[[np.ndarray], np.ndarray] = field(default=lambda x: x)


def signs(t: np.ndarray) -> np.ndarray:
    return np.sign(t).astype(np.float32)


def shares(t: np.ndarray) -> np.ndarray:
    return (1 / (1 + np.exp(-t))).astype(np.float32)


LOSSES = [
    Loss("MseLoss", F.mse_loss, "MseLossGrad"),
    Loss("LpLoss", F.l1_loss, "L1LossGrad", "gxt"),
    Loss("SmoothL1LossV2", lambda x, t, reduction: F.smooth_l1_loss(x, t, reduction=reduction,
                                                                    beta=0.6),
         "SmoothL1LossGradV2", attributes={"sigma": 0.6}),
    Loss("BinaryCrossEntropy", F.binary_cross_entropy, "BinaryCrossEntropyGrad", x=shares,
         target=shares),
    Loss("SigmoidCrossEntropyWithLogitsV2", F.binary_cross_entropy_with_logits,
         "SigmoidCrossEntropyWithLogitsGradV2", target=shares),
    Loss("KLDiv", F.kl_div, "KlDivLossGrad", "gxt", target=shares),
    Loss("SoftMarginLoss", F.soft_margin_loss, "SoftMarginLossGrad", target=signs),
]  # fmt: skip


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("row", LOSSES, ids=lambda row: row.type)
def test_losses_and_their_gradients(types: Types, row: Loss, reduction: str) -> None:
    x, target = row.x(normal(4, 5)), row.target(normal(4, 5))
    tx, tt = leaf(x), torch.tensor(target.astype(np.float64))
    expected = row.torch(tx, tt, reduction=reduction)
    [y] = types(row.type, [x, target], [Out(tuple(expected.shape))], reduction=reduction,
                **row.attributes)  # fmt: skip
    np.testing.assert_allclose(y, expected.detach(), rtol=1e-4, atol=1e-5)
    g = normal(*expected.shape)
    expected.backward(torch.tensor(g.astype(np.float64)))
    given = {"g": g, "x": x, "t": target}
    [dx] = types(row.gradient, [given[k] for k in row.given], [Out(x.shape)],
                 reduction=reduction, **row.attributes)  # fmt: skip
    np.testing.assert_allclose(dx, tx.grad, rtol=1e-4, atol=1e-5)


def test_a_reduction_that_is_none_is_refused(types: Types) -> None:
    with pytest.raises(Exception, match="reduction median is none of none, mean and sum"):
        types("MseLoss", [normal(2), normal(2)], [Out(())], reduction="median")


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_likelihoods_of_classes(types: Types, reduction: str) -> None:
    x, weight = normal(6, 4), np.abs(normal(4)) + 0.1
    target = numbers(0, 3, 1, 2, 3, 1)
    tx = leaf(x)
    expected = F.nll_loss(tx, torch.tensor(target), torch.tensor(weight.astype(np.float64)),
                          ignore_index=1, reduction=reduction)  # fmt: skip
    how: dict[str, Attribute] = {"reduction": reduction, "ignore_index": 1}
    y, total = types("NLLLoss", [x, target, weight], [Out(tuple(expected.shape)), Out(())], **how)
    np.testing.assert_allclose(y, expected.detach(), **CLOSE)
    g = normal(*expected.shape)
    expected.backward(torch.tensor(g.astype(np.float64)))
    [dx] = types("NLLLossGrad", [x, g, target, weight, total], [Out(x.shape)], **how)
    np.testing.assert_allclose(dx, tx.grad, **CLOSE)


def test_root_mean_square_norms(types: Types) -> None:
    x, gamma, g = normal(3, 8), normal(8), normal(3, 8)
    tx, tg = leaf(x), leaf(gamma)
    expected = F.rms_norm(tx, [8], tg, eps=1e-3)
    expected.backward(torch.tensor(g.astype(np.float64)))
    y, rstd = types("RmsNorm", [x, gamma], [Out(x.shape), Out((3, 1))], epsilon=1e-3)
    np.testing.assert_allclose(y, expected.detach(), rtol=1e-4, atol=1e-5)
    dx, dgamma = types("RmsNormGrad", [g, x, rstd, gamma], [Out(x.shape), Out((8,))])
    np.testing.assert_allclose(dx, tx.grad, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dgamma, tg.grad, rtol=1e-4, atol=1e-5)
    both = [Out(x.shape), Out((3, 1)), Out(x.shape)]
    y, _, total = types("AddRmsNorm", [x, g, gamma], both, epsilon=1e-3)
    np.testing.assert_allclose(total, x + g, **CLOSE)
    expected = F.rms_norm(torch.tensor(x + g), [8], torch.tensor(gamma), eps=1e-3)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def window(axes: int, stride: int, pad: int, dilation: int) -> dict[str, Attribute]:
    return {"strides": [1, 1, *[stride] * axes], "pads": [pad] * 2 * axes,
            "dilations": [1, 1, *[dilation] * axes]}  # fmt: skip


@pytest.mark.parametrize("axes", [2, 3])
def test_transposed_convolutions(types: Types, axes: int) -> None:
    x, filter_, bias = normal(2, 4, *[3] * axes), normal(4, 3, *[3] * axes), normal(6)
    function = F.conv_transpose2d if axes == 2 else F.conv_transpose3d
    expected = function(torch.tensor(x), torch.tensor(filter_), torch.tensor(bias), stride=2,
                        padding=1, output_padding=1, groups=2)  # fmt: skip
    size = numbers(*expected.shape, dtype="int32")
    [y] = types(f"Conv{axes}DTranspose", [size, x, filter_, bias], [Out(tuple(expected.shape))],
                groups=2, output_padding=[0, 0, *[1] * axes], **window(axes, 2, 1, 1))  # fmt: skip
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


def test_gradients_of_convolutions_of_volumes(types: Types) -> None:
    x, filter_ = normal(2, 2, 4, 5, 4), normal(3, 2, 2, 3, 2)
    tx, tf = leaf(x), leaf(filter_)
    expected = F.conv3d(tx, tf, stride=2, padding=1)
    g = normal(*expected.shape)
    expected.backward(torch.tensor(g.astype(np.float64)))
    size = numbers(*x.shape, dtype="int32")
    [dx] = types("Conv3DBackpropInput", [size, filter_, g], [Out(x.shape)], **window(3, 2, 1, 1))
    np.testing.assert_allclose(dx, tx.grad, rtol=1e-4, atol=1e-4)
    size = numbers(*filter_.shape, dtype="int32")
    [df] = types("Conv3DBackpropFilter", [x, size, g], [Out(filter_.shape)], **window(3, 2, 1, 1))
    np.testing.assert_allclose(df, tf.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("multiplier", [1, 2])
def test_convolutions_by_channel(types: Types, multiplier: int) -> None:
    x, filter_ = normal(2, 3, 5, 6), normal(3 * multiplier, 1, 3, 2)
    bias = normal(3 * multiplier)
    tx, tf = leaf(x), leaf(filter_)
    expected = F.conv2d(tx, tf, torch.tensor(bias.astype(float)), stride=2, padding=1, groups=3)
    g = normal(*expected.shape)
    expected.backward(torch.tensor(g.astype(np.float64)))
    turned = filter_.transpose(1, 0, 2, 3).copy()  # as clients turn it
    how = window(2, 2, 1, 1)
    [y] = types("DepthwiseConv2D", [x, turned, bias], [Out(tuple(expected.shape))], **how)
    np.testing.assert_allclose(y, expected.detach(), rtol=1e-4, atol=1e-4)
    size = numbers(*x.shape, dtype="int32")
    [dx] = types("DepthwiseConv2DBackpropInput", [size, turned, g], [Out(x.shape)], **how)
    np.testing.assert_allclose(dx, tx.grad, rtol=1e-4, atol=1e-4)
    size = numbers(*turned.shape, dtype="int32")
    [df] = types("DepthwiseConv2DBackpropFilter", [x, size, g], [Out(filter_.shape)], **how)
    np.testing.assert_allclose(df, tf.grad, rtol=1e-4, atol=1e-4)


def test_draws_are_those_of_their_seed(types: Types) -> None:
    shape, key, other = numbers(200, 300), numbers(7), numbers(8)
    first, next_, algorithm = numbers(0, 0), numbers(0, 10), numbers(1, dtype="int32")
    out = [Out((200, 300))]
    for name, mean, deviation in (("Normal", 0.0, 1.0), ("Uniform", 0.5, 12**-0.5)):
        draws = [
            types(f"StatelessRandom{name}V2", [shape, k, counter, algorithm], out)[0]
            for k, counter in ((key, first), (key, first), (key, next_), (other, first))
        ]
        assert np.array_equal(draws[0], draws[1])
        assert not np.array_equal(draws[0], draws[2])
        assert not np.array_equal(draws[0], draws[3])
        # 60,000 draws: five deviations of their mean, and as much of their spread.
        assert abs(draws[0].mean() - mean) < 5 * deviation / 60000**0.5
        assert abs(draws[0].std() / deviation - 1) < 5 / (2 * 60000) ** 0.5
    share = np.array([0.3], np.float32)
    [ones] = types("StatelessBernoulli", [shape, share, key, first[:1]], out)
    assert set(np.unique(ones)) == {0, 1}
    assert abs(ones.mean() - 0.3) < 5 * (0.21 / 60000) ** 0.5
    [order] = types("StatelessRandperm", [numbers(50), key, first[:1]], [Out((50,), "int64")])
    assert sorted(order) == list(range(50))
    assert list(order) != list(range(50))


def test_dropout_of_sums_after_softmax(types: Types) -> None:
    x, y, g = normal(6, 7), normal(6, 7), normal(6, 7)
    mask = np.zeros(128, np.uint8)
    mask[:42] = RNG.integers(0, 2, 42)
    kept = torch.tensor(mask[:42].reshape(6, 7).astype(np.float64)) / 0.5
    ty = leaf(y)
    soft = torch.softmax(torch.tensor(x.astype(np.float64)) + 0.25 * ty, -1)
    dropped = soft * kept
    dropped.backward(torch.tensor(g.astype(np.float64)))
    both = [Out(x.shape), Out(x.shape)]
    how: dict[str, Attribute] = {"alpha": 0.25, "input_keep_prob": 0.5}
    got, got_dropped = types(
        "AxpyWithSoftmaxAndDropOutDoMask", [x, y, mask], both, axis=[-1], **how
    )
    np.testing.assert_allclose(got, soft.detach(), **CLOSE)
    np.testing.assert_allclose(got_dropped, dropped.detach(), **CLOSE)
    [dy] = types("DropoutWithMulsAndSoftmaxGrad", [g, mask, got], [Out(y.shape)], axes=[-1], **how)
    np.testing.assert_allclose(dy, ty.grad, rtol=1e-4, atol=1e-5)
    with pytest.raises(Exception, match="a byte for each element"):
        types("AxpyWithSoftmaxAndDropOutDoMask", [x, y, mask[:41].copy()], both, axis=[-1], **how)


def test_dropout_by_bits(types: Types) -> None:
    x = normal(130)
    bits = RNG.integers(0, 2, 256).astype(np.uint8)
    mask = np.packbits(bits, bitorder="little")
    [y] = types("DropOutDoMask", [x, mask, np.array([0.8], np.float32)], [Out(x.shape)])
    np.testing.assert_allclose(y, x * bits[:130] / np.float32(0.8), rtol=1e-6)


@dataclass(frozen=True)
class Plain:
    """A type, its inputs and attributes, and what torch makes of the inputs."""

    type: str
    inputs: Sequence[np.ndarray]
    torch: Callable[..., torch.Tensor]
    attributes: dict[str, Attribute] = field(default_factory=dict)


ONE = np.array([0.5], np.float32)
NEAR = [np.array([1, 2, np.nan], np.float32), np.array([1.05, 3, np.nan], np.float32)]
PLAIN = [
    Plain("Addcdiv", [normal(3, 4), normal(3, 4), np.abs(normal(4)) + 1, ONE],
          lambda x, a, b, _: torch.addcdiv(x, a, b, value=0.5)),
    Plain("Addcmul", [normal(3, 4), normal(3, 4), normal(4), ONE],
          lambda x, a, b, _: torch.addcmul(x, a, b, value=0.5)),
    Plain("AxpyV2", [normal(3, 4), normal(4), ONE], lambda x, y, _: x + 0.5 * y),
    Plain("Lerp", [normal(3, 4), normal(3, 4), normal(3, 4)], torch.lerp),
    Plain("Xlogy", [normal(3, 4), np.abs(normal(3, 4))], torch.xlogy),
    Plain("LeftShift", [numbers(1, 5, 9), numbers(3, 1, 0)], torch.bitwise_left_shift),
    Plain("RightShift", [numbers(100, -5, 9), numbers(3, 1, 0)], torch.bitwise_right_shift),
    Plain("Dot", [normal(7), normal(7)], torch.dot),
    Plain("Cross", [normal(4, 3), normal(4, 3)], torch.linalg.cross, {"dim": -1}),
    Plain("Cumprod", [normal(3, 4), numbers(1)], lambda x, _: torch.cumprod(x, 1)),
    Plain("ReduceProd", [normal(3, 4), numbers(0)], lambda x, _: torch.prod(x, 0)),
    Plain("ReduceProd", [normal(3, 4), numbers(0, 1)], lambda x, _: torch.prod(x)),
    Plain("ReduceLogSumExp", [normal(3, 4), numbers(1)],
          lambda x, _: torch.logsumexp(x, 1, True), {"keep_dims": True}),
    Plain("MatrixInverse", [normal(4, 4) + 4 * np.eye(4, dtype=np.float32)], torch.inverse),
    Plain("MaskedScatter", [normal(3, 4), RNG.integers(0, 2, (3, 4)).astype(bool), normal(12)],
          torch.masked_scatter),
    Plain("Gather", [normal(9), numbers(3, 0, 8, 3)], torch.take),
    Plain("SearchSorted", [np.sort(normal(9)), normal(5)],
          lambda row, x: torch.searchsorted(row, x, right=True), {"right": True}),
    Plain("IsClose", NEAR, lambda x, y: torch.isclose(x, y, 0.1, 0.0, True),
          {"rtol": 0.1, "atol": 0.0, "equal_nan": True}),
    Plain("NanToNum", [np.array([np.nan, np.inf, -np.inf, 2], np.float32)],
          lambda x: torch.nan_to_num(x, 1, 7, -8), {"nan": 1.0, "posinf": 7.0, "neginf": -8.0}),
    Plain("EmbeddingDenseGrad", [normal(5, 3), numbers(0, 2, 2, 6, 1)],
          lambda g, i: torch.ops.aten.embedding_dense_backward(g, i, 7, 1, False),
          {"num_weights": 7, "padding_idx": 1, "scale_grad_by_freq": False}),
    Plain("AdaptiveAvgPool2d", [normal(2, 3, 7, 5)], lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
          {"output_size": [3, 2]}),
    Plain("GridSampler2D", [normal(2, 3, 4, 5), np.clip(normal(2, 3, 3, 2), -1.2, 1.2)],
          lambda x, grid: F.grid_sample(x, grid, "nearest", "border", align_corners=True),
          {"interpolation_mode": "nearest", "padding_mode": "border", "align_corners": True}),
]  # fmt: skip


@pytest.mark.parametrize("row", PLAIN, ids=lambda row: row.type)
def test_arithmetic_is_torchs(types: Types, row: Plain) -> None:
    expected = row.torch(*map(torch.tensor, row.inputs)).numpy()
    [y] = types(row.type, row.inputs, [Out(expected.shape, str(expected.dtype))], **row.attributes)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_scans_that_tell_positions(types: Types) -> None:
    x = normal(4, 9)
    for name, key, function in (
        ("Cummax", "dim", torch.cummax),
        ("Cummin", "axis", torch.cummin),
    ):
        expected, places = function(torch.tensor(x), 1)
        values, at = types(name, [x], [Out(x.shape), Out(x.shape, "int32")], **{key: 1})
        np.testing.assert_array_equal(values, expected)
        np.testing.assert_array_equal(at, places)


def test_unit_matrices_and_equality(types: Types) -> None:
    [eye] = types("Eye", [], [Out((3, 5))], num_rows=3, num_columns=5)
    np.testing.assert_array_equal(eye, np.eye(3, 5))
    x = normal(3, 4)
    for other in (x, x + 1):
        [same] = types("TensorEqual", [x, other], [Out((1,), "bool")])
        assert same[0] == (other is x)


def test_views_are_copied_into_views(types: Types) -> None:
    into, source = np.zeros(24, np.float32), normal(24)
    inputs = [into, numbers(2, 3), numbers(12, 2), numbers(1),
              source, numbers(2, 3), numbers(1, 4), numbers(2)]  # fmt: skip
    [got] = types("ViewCopy", inputs, [Out((24,))])
    places = [1, 3, 5, 13, 15, 17]
    np.testing.assert_array_equal(got[places], source[[2, 6, 10, 3, 7, 11]])


def test_average_pools_and_their_gradient(types: Types) -> None:
    x = normal(2, 3, 7, 6)
    how: dict[str, Attribute] = {
        "ksize": [1, 1, 3, 2], "strides": [1, 1, 2, 1], "pads": [1, 1, 0, 0],
        "padding_mode": "CALCULATED", "data_format": "NCHW", "global_pooling": False,
        "ceil_mode": False, "exclusive": True,
    }  # fmt: skip
    tx = leaf(x)
    expected = F.avg_pool2d(tx, (3, 2), (2, 1), (1, 0), count_include_pad=False)
    [y] = types("AvgPoolV2", [x], [Out(tuple(expected.shape))], **how)
    np.testing.assert_allclose(y, expected.detach(), **CLOSE)
    g = normal(*expected.shape)
    expected.backward(torch.tensor(g.astype(np.float64)))
    [dx] = types("AvgPoolV2Grad", [numbers(*x.shape), g], [Out(x.shape)], **how)
    np.testing.assert_allclose(dx, tx.grad, **CLOSE)
    tx = leaf(x)
    F.adaptive_avg_pool2d(tx, (3, 2)).sum().backward()
    ones = np.ones((2, 3, 3, 2), np.float32)
    [dx] = types("AdaptiveAvgPool2dGrad", [ones], [Out(x.shape)], orig_input_shape=list(x.shape))
    np.testing.assert_allclose(dx, tx.grad, **CLOSE)
