"""Types that graph clients build layers and steps of; references are torch's own."""

import numpy as np
import pytest
from compiled import install
from numpy_harness import Ops, Out
from type_harness import Types

torch = pytest.importorskip("torch", reason="torch is the oracle")
F = torch.nn.functional

RNG = np.random.default_rng(7)
CLOSE = {"rtol": 2e-5, "atol": 2e-6}


@pytest.fixture(scope="module")
def types(nops: Ops) -> Types:
    return Types(nops, install())


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.tensor(array.astype(np.float64), requires_grad=True)


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_biases_and_their_gradient(types: Types, data_format: str) -> None:
    x, bias = normal(2, 3, 4, 3), normal(3)
    axis = 1 if data_format == "NCHW" else 3
    shape = [1, 1, 1, 1]
    shape[axis] = 3
    [y] = types("BiasAdd", [x, bias], [Out(x.shape)], data_format=data_format)
    np.testing.assert_allclose(y, x + bias.reshape(shape), **CLOSE)
    [grad] = types("BiasAddGrad", [x], [Out((3,))], data_format=data_format)
    others = tuple(i for i in range(4) if i != axis)
    np.testing.assert_allclose(grad, x.sum(others), **CLOSE)


def test_batch_norm_in_pieces_is_torchs(types: Types) -> None:
    x, dy = normal(4, 3, 5, 2), normal(4, 3, 5, 2)
    scale, offset, mean, variance = normal(3), normal(3), normal(3), np.abs(normal(3)) + 0.5
    each = Out((3,))
    total, squares = types("BNTrainingReduce", [x], [each, each])
    inputs = [x, total, squares, scale, offset, mean, variance]
    y, new_mean, new_variance, batch_mean, batch_variance = types(
        "BNTrainingUpdate", inputs, [Out(x.shape), each, each, each, each], factor=0.3, epsilon=0.01
    )
    tx, ts, to = tensor(x), tensor(scale), tensor(offset)
    running = torch.tensor(mean.astype(float)), torch.tensor(variance.astype(float))
    expected = F.batch_norm(tx, *running, ts, to, training=True, momentum=0.3, eps=0.01)
    expected.backward(torch.tensor(dy.astype(float)))
    np.testing.assert_allclose(y, expected.detach(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(new_mean, running[0], **CLOSE)
    np.testing.assert_allclose(new_variance, running[1], **CLOSE)
    d_scale, d_offset = types(
        "BNTrainingUpdateGrad", [dy, x, batch_mean, batch_variance], [each, each], epsilon=0.01
    )
    np.testing.assert_allclose(d_scale, ts.grad, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(d_offset, to.grad, rtol=1e-4, atol=1e-5)
    inputs = [dy, x, d_scale, d_offset, scale, batch_mean, batch_variance]
    [dx] = types("BNTrainingReduceGrad", inputs, [Out(x.shape)], epsilon=0.01)
    np.testing.assert_allclose(dx, tx.grad, rtol=1e-4, atol=1e-5)

    tx = tensor(x)
    still = torch.tensor(mean.astype(float)), torch.tensor(variance.astype(float))
    expected = F.batch_norm(tx, *still, ts, to, training=False, eps=0.01)
    expected.backward(torch.tensor(dy.astype(float)))
    [y] = types("BNInfer", [x, scale, offset, mean, variance], [Out(x.shape)], epsilon=0.01)
    np.testing.assert_allclose(y, expected.detach(), rtol=1e-4, atol=1e-5)
    [dx] = types("BNInferGrad", [dy, scale, variance], [Out(x.shape)], epsilon=0.01)
    np.testing.assert_allclose(dx, tx.grad, rtol=1e-4, atol=1e-5)


def test_layer_norm_gives_variances_and_their_gradient(types: Types) -> None:
    x, gamma, beta, dy = normal(3, 4, 5), normal(4, 5), normal(4, 5), normal(3, 4, 5)
    tx, tg, tb = tensor(x), tensor(gamma), tensor(beta)
    expected = F.layer_norm(tx, (4, 5), tg, tb, eps=0.02)
    expected.backward(torch.tensor(dy.astype(float)))
    stat = Out((3, 1, 1))
    y, mean, variance = types(
        "LayerNorm", [x, gamma, beta], [Out(x.shape), stat, stat],
        begin_norm_axis=1, begin_params_axis=-2, epsilon=0.02,
    )  # fmt: skip
    np.testing.assert_allclose(y, expected.detach(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(variance.ravel(), x.reshape(3, -1).var(1), rtol=1e-5)
    grads = types(
        "LayerNormGrad", [dy, x, variance, mean, gamma],
        [Out(x.shape), Out(gamma.shape), Out(beta.shape)], epsilon=0.02,
    )  # fmt: skip
    for got, leaf in zip(grads, (tx, tg, tb), strict=True):
        np.testing.assert_allclose(got, leaf.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_pools_and_their_gradients(
    types: Types, data_format: str, padding: str, dtype: str
) -> None:
    x = normal(2, 3, 7, 9, dtype=dtype)
    tx = tensor(x)
    height, width = (3, 4) if padding == "VALID" else (4, 5)
    # SAME: 3 × 3 windows, 2 apart, one row and column beyond each border of odd sizes.
    pad = 0 if padding == "VALID" else 1
    for kind in ("Max", "Avg"):
        tx.grad = None
        pooled = (
            F.max_pool2d(tx, 3, 2, pad)
            if kind == "Max"
            else F.avg_pool2d(tx, 3, 2, pad, count_include_pad=False)
        )
        assert pooled.shape[2:] == (height, width)
        dy = normal(*pooled.shape, dtype=dtype)
        pooled.backward(torch.tensor(dy.astype(float)))
        last = data_format == "NHWC"

        def laid(array: np.ndarray, last: bool = last) -> np.ndarray:
            return np.ascontiguousarray(array.transpose(0, 2, 3, 1)) if last else array

        step, window = ([1, 2, 2, 1], [1, 3, 3, 1]) if last else ([1, 1, 2, 2], [1, 1, 3, 3])
        options = {"ksize": window, "strides": step, "padding": padding, "data_format": data_format}
        y_shape = laid(dy).shape
        [y] = types(f"{kind}Pool", [laid(x)], [Out(y_shape, dtype)], **options)
        loose = {"rtol": 2e-3, "atol": 2e-3} if dtype == "float16" else CLOSE
        np.testing.assert_allclose(y.astype(float), laid(pooled.detach().numpy()), **loose)
        shape_of_x = np.array(laid(x).shape, np.int32)
        inputs = [laid(x), y, laid(dy)] if kind == "Max" else [shape_of_x, laid(dy)]
        [dx] = types(f"{kind}PoolGrad", inputs, [Out(laid(x).shape, dtype)], **options)
        np.testing.assert_allclose(dx.astype(float), laid(tx.grad.numpy()), **loose)


def test_a_pooled_image_of_another_size_is_refused(types: Types) -> None:
    with pytest.raises(Exception, match="3 windows along an axis, not 4"):
        types("MaxPool", [normal(1, 1, 7, 7)], [Out((1, 1, 4, 4))], ksize=[1, 1, 3, 3],
              strides=[1, 1, 2, 2], padding="VALID", data_format="NCHW")  # fmt: skip


@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_of_convolutions(types: Types, groups: int) -> None:
    x, w = normal(2, 4, 6, 5), normal(6, 4 // groups, 3, 3)
    tx, tw = tensor(x), tensor(w)
    y = F.conv2d(tx, tw, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=groups)
    dy = normal(*y.shape)
    y.backward(torch.tensor(dy.astype(float)))
    options = {"strides": [1, 1, 2, 1], "pads": [1, 1, 0, 0], "dilations": [1, 1, 1, 2],
               "groups": groups, "data_format": "NCHW"}  # fmt: skip
    sizes = np.array(x.shape, np.int32), np.array(w.shape, np.int32)
    [dx] = types("Conv2DBackpropInput", [sizes[0], w, dy], [Out(x.shape)], **options)
    np.testing.assert_allclose(dx, tx.grad, rtol=1e-4, atol=1e-5)
    [dw] = types("Conv2DBackpropFilter", [x, sizes[1], dy], [Out(w.shape)], **options)
    np.testing.assert_allclose(dw, tw.grad, rtol=1e-4, atol=1e-5)


def test_single_values(types: Types) -> None:
    x = np.array([-8, -1, -0.0, 0.5, 7, np.nan], np.float32)
    t = torch.tensor(x.astype(float))
    for name, expected in (
        ("Softplus", F.softplus(t)), ("Relu6", F.relu6(t)), ("Elu", F.elu(t, 1.5)),
    ):  # fmt: skip
        options = {"alpha": 1.5} if name == "Elu" else {}
        [y] = types(name, [x], [Out(x.shape)], **options)
        np.testing.assert_allclose(y, expected, **CLOSE)
    [y] = types("IsNan", [x], [Out(x.shape, "bool")])
    np.testing.assert_array_equal(y, np.isnan(x))


@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "batchmean"])
def test_divergence(types: Types, reduction: str) -> None:
    x, target = normal(3, 4), np.abs(normal(3, 4))
    target[0, 0] = 0
    expected = F.kl_div(tensor(x), tensor(target), reduction=reduction).detach().numpy()
    [y] = types("KLDiv", [x, target], [Out(expected.shape)], reduction=reduction)
    np.testing.assert_allclose(y, expected, **CLOSE)


def test_ranges_and_spaces(types: Types) -> None:
    for dtype in ("int32", "int64", "float32"):
        start = 2**24 + 1 if "int" in dtype else 2
        inputs = [np.array(v, dtype) for v in (start, start + 14, 3)]
        [y] = types("Range", inputs, [Out((5,), dtype)])
        np.testing.assert_array_equal(y, inputs[0] + 3 * np.arange(5).astype(dtype))
    inputs = [np.array(1, np.float32), np.array(2, np.float32), np.array(4, np.int32)]
    [y] = types("LinSpace", inputs, [Out((4,))])
    np.testing.assert_allclose(y, np.linspace(1, 2, 4), **CLOSE)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(types: Types, axis: int) -> None:
    x = np.array([[0, 2, 4], [3, -1, 5]], np.int32)
    expected = np.where(np.expand_dims(x, axis) == np.arange(5).reshape(
        [5 if i == axis % 3 else 1 for i in range(3)]), 2.5, -1.0)  # fmt: skip
    values = [np.array(5, np.int32), np.array(2.5, np.float32), np.array(-1, np.float32)]
    [y] = types("OneHot", [x, *values], [Out(expected.shape)], axis=axis)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("columns", [False, True])
def test_places_of_what_is_not_zero(types: Types, columns: bool) -> None:
    x = (RNG.random((3, 4, 2)) < 0.4).astype(np.float32)
    room = Out((3, x.size) if columns else (x.size, 3), "int64")
    [places] = types("NonZero", [x], [room], sized=True, transpose=columns)
    expected = np.argwhere(x)
    np.testing.assert_array_equal(places, expected.T if columns else expected)
    [none] = types("NonZero", [np.zeros_like(x)], [room], sized=True, transpose=columns)
    assert none.shape == ((3, 0) if columns else (0, 3))


def test_strided_views_of_memory(types: Types) -> None:
    x = normal(4, 6)
    size, stride = np.array([2, 3, 2], np.int64), np.array([1, 6, 2], np.int64)
    inputs = [x, size, stride, np.array([3], np.int64)]
    [y] = types("AsStrided", inputs, [Out((2, 3, 2))])
    np.testing.assert_array_equal(y, torch.as_strided(torch.tensor(x), (2, 3, 2), (1, 6, 2), 3))
    with pytest.raises(Exception, match="outside of x"):
        types("AsStrided", [x, size, stride * 4, inputs[3]], [Out((2, 3, 2))])


def test_steps_of_adam_w_are_torchs(types: Types) -> None:
    var, m, v = normal(5), normal(5), np.abs(normal(5))
    grad = normal(5)
    numbers = [0.9**2, 0.99**2, 0.1, 0.2, 0.9, 0.99, 1e-3]  # powers before the step, lr, decay …
    single = [np.array(n, np.float32) for n in numbers]
    got = types("ApplyAdamW", [var, m, v, *single, grad, None], [Out((5,))] * 3, maximize=False)
    parameter = torch.nn.Parameter(torch.tensor(var.astype(float)))
    step = torch.optim.AdamW([parameter], lr=0.1, betas=(0.9, 0.99), eps=1e-3, weight_decay=0.2)
    step.state[parameter] = {
        "step": torch.tensor(2.0), "exp_avg": torch.tensor(m.astype(float)),
        "exp_avg_sq": torch.tensor(v.astype(float)),
    }  # fmt: skip
    parameter.grad = torch.tensor(grad.astype(float))
    step.step()
    state = step.state[parameter]
    for value, expected in zip(
        got, (parameter.detach(), state["exp_avg"], state["exp_avg_sq"]), strict=True
    ):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("last", [False, True])
def test_samples_at_moved_places_are_those_of_interpolation(types: Types, last: bool) -> None:
    """Against torch's grid_sample, place by place of a filter, for two groups of channels."""
    x, offsets = normal(2, 4, 5, 6), normal(2, 3 * 2 * 6, 3, 2) * 1.5
    rows, columns, filters = 3, 2, [(i, j) for i in range(2) for j in range(3)]
    tx, moved = tensor(x), tensor(offsets)
    parts = moved.reshape(2, 3, 2, 6, rows, columns)  # image, (right, down, factor), group, place
    tiles = torch.empty(2, 4, rows, 2, columns, 3, dtype=torch.float64)
    for group in range(2):
        for k, (i, j) in enumerate(filters):
            right, down, factor = (parts[:, n, group, k] for n in range(3))
            row = torch.arange(rows)[:, None] * 2 - 1 + i * 1 + down
            column = torch.arange(columns)[None] * 3 - 2 + j * 2 + right
            grid = torch.stack([(2 * column + 1) / 6 - 1, (2 * row + 1) / 5 - 1], -1)
            channels = slice(2 * group, 2 * group + 2)
            found = F.grid_sample(tx[:, channels], grid, align_corners=False) * factor[:, None]
            tiles[:, channels, :, i, :, j] = found
    expected = tiles.reshape(2, 4, rows * 2, columns * 3)
    grad = normal(*expected.shape)
    expected.backward(torch.tensor(grad.astype(float)))

    def laid(array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array.transpose(0, 2, 3, 1)) if last else array

    options = {
        "ksize": [2, 3], "strides": [1, 2, 3, 1] if last else [1, 1, 2, 3],
        "pads": [1, 1, 2, 2], "dilations": [1, 1, 2, 1] if last else [1, 1, 1, 2],
        "deformable_groups": 2, "data_format": "NHWC" if last else "NCHW", "modulated": True,
    }  # fmt: skip
    [y] = types("DeformableOffsets", [laid(x), laid(offsets)], [Out(laid(grad).shape)], **options)
    np.testing.assert_allclose(y, laid(expected.detach().numpy()), rtol=1e-4, atol=1e-5)
    inputs = [laid(grad), laid(x), laid(offsets)]
    outs = [Out(inputs[1].shape), Out(inputs[2].shape)]
    for got, source in zip(
        types("DeformableOffsetsGrad", inputs, outs, **options), (tx, moved), strict=True
    ):
        np.testing.assert_allclose(got, laid(source.grad.numpy()), rtol=1e-3, atol=1e-4)


def test_choices_and_writes_by_index(types: Types) -> None:
    x, updates = normal(4, 3, 2), normal(2, 2)
    for dtype in ("int32", "int64"):
        points = np.array([[3, 1], [0, 2]], dtype)
        [y] = types("GatherNd", [x, points], [Out((2, 2))])
        np.testing.assert_array_equal(y, x[[3, 0], [1, 2]])
        [y] = types("TensorScatterUpdate", [x, points, updates], [Out(x.shape)])
        expected = x.copy()
        expected[[3, 0], [1, 2]] = updates
        np.testing.assert_array_equal(y, expected)
    index = np.array([[[0, 1], [2, 0], [1, 1]]], np.int32)
    source = normal(1, 3, 2)
    [y] = types("ScatterElements", [x, index, source], [Out(x.shape)], axis=1, reduction="add")
    expected = torch.tensor(x).scatter_add(
        1, torch.tensor(index.astype(np.int64)), torch.tensor(source)
    )
    np.testing.assert_allclose(y, expected, **CLOSE)
    values, at = types(
        "TopK", [x, np.array(2, np.int32)], [Out((4, 2, 2)), Out((4, 2, 2), "int32")], dim=1
    )
    best = torch.topk(torch.tensor(x), 2, dim=1)
    np.testing.assert_array_equal(values, best.values)
    np.testing.assert_array_equal(at, best.indices)
    std, mean = types("ReduceStd", [x], [Out((4, 2)), Out((4, 2))], dim=[1], unbiased=True)
    np.testing.assert_allclose(std, x.std(1, ddof=1), **CLOSE)
    np.testing.assert_allclose(mean, x.mean(1), **CLOSE)


def test_steps_of_optimizers_are_torchs(types: Types) -> None:
    """Two steps each: the second sees what the first left in its states."""
    start, grads = normal(6), [normal(6), normal(6)]
    one = lambda v: np.array(v, np.float32)  # noqa: E731

    def torchs(make: type[torch.optim.Optimizer], **options: float | bool) -> np.ndarray:
        parameter = torch.nn.Parameter(torch.tensor(start.astype(float)))
        optimizer = make([parameter], lr=0.1, **options)
        for g in grads:
            parameter.grad = torch.tensor(g.astype(float))
            optimizer.step()
        return parameter.detach().numpy()

    for nesterov in (False, True):
        var, accum = start.copy(), np.zeros(6, np.float32)
        stat, by_sgd, sgd_accum = np.ones(6, np.float32), start.copy(), np.zeros(6, np.float32)
        for g in grads:
            [var] = types("ApplyMomentum", [var, accum, one(0.1), g, one(0.9)], [Out((6,))],
                          use_nesterov=nesterov)  # fmt: skip
            accum = 0.9 * accum + g  # states are changed where they are, on the device
            [by_sgd] = types("SGD", [by_sgd, g, one(0.1), sgd_accum, one(0.9), stat], [Out((6,))],
                             nesterov=nesterov)  # fmt: skip
            sgd_accum, stat = 0.9 * sgd_accum + g, np.zeros(6, np.float32)
        expected = torchs(torch.optim.SGD, momentum=0.9, nesterov=nesterov)
        np.testing.assert_allclose(var, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(by_sgd, expected, rtol=1e-5, atol=1e-6)
    m, v, var = np.zeros(6, np.float32), np.zeros(6, np.float32), start.copy()
    for t, g in enumerate(grads, 1):
        inputs = [
            var,
            m,
            v,
            one(0.9**t),
            one(0.99**t),
            one(0.1),
            one(0.9),
            one(0.99),
            one(1e-12),
            g,
        ]
        [var] = types("ApplyAdam", inputs, [Out((6,))])
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        m, v = m.astype(np.float32), v.astype(np.float32)
    expected = torchs(torch.optim.Adam, betas=(0.9, 0.99), eps=1e-12)
    np.testing.assert_allclose(var, expected, rtol=1e-4, atol=1e-5)
    accum, var = np.full(6, 0.1, np.float32), start.copy()
    for g in grads:
        [var] = types("ApplyAdagrad", [var, accum, one(0.1), g], [Out((6,))])
        accum = accum + g * g
    expected = torchs(torch.optim.Adagrad, initial_accumulator_value=0.1, eps=0.0)
    np.testing.assert_allclose(var, expected, rtol=1e-5, atol=1e-6)
    square, moment, var = np.ones(6, np.float32), np.zeros(6, np.float32), start.copy()
    plain = start.astype(float)
    mean, step = np.ones(6), np.zeros(6)
    for g in grads:
        inputs = [var, square, moment, one(0.1), one(0.8), one(0.5), one(0.01), g]
        [var] = types("ApplyRMSProp", inputs, [Out((6,))])
        mean = 0.8 * mean + 0.2 * g * g
        step = 0.5 * step + 0.1 * g / np.sqrt(mean + 0.01)
        plain = plain - step
        square, moment = mean.astype(np.float32), step.astype(np.float32)
    np.testing.assert_allclose(var, plain, rtol=1e-5, atol=1e-6)


def test_assignments(types: Types) -> None:
    a, b = normal(3, 2), normal(3, 2)
    for name, expected in (("Assign", b), ("AssignAdd", a + b), ("AssignSub", a - b)):
        [y] = types(name, [a, b], [Out(a.shape)])
        np.testing.assert_allclose(y, expected, **CLOSE)


def test_bilinear_resizing(types: Types) -> None:
    x = normal(2, 3, 4, 5)
    for options, align in (({"align_corners": True}, True), ({"half_pixel_centers": True}, False)):
        [y] = types(
            "ResizeBilinearV2", [x, np.array([7, 3], np.int32)], [Out((2, 3, 7, 3))], **options
        )
        expected = F.interpolate(tensor(x), (7, 3), mode="bilinear", align_corners=align)
        np.testing.assert_allclose(y, expected.detach(), rtol=1e-4, atol=1e-5)
    with pytest.raises(Exception, match="half_pixel_centers"):
        types("ResizeBilinearV2", [x, np.array([7, 3], np.int32)], [Out((2, 3, 7, 3))])


def test_sums_of_many(types: Types) -> None:
    parts = [normal(2, 3) for _ in range(4)]
    [y] = types("AddN", parts, [Out((2, 3))])
    np.testing.assert_allclose(y, np.sum(parts, 0), **CLOSE)
    with pytest.raises(Exception, match="input 1 differs in shape"):
        types("AddN", [parts[0], normal(3)], [Out((2, 3))])


def test_sizes_that_do_not_fit_are_refused(types: Types) -> None:
    """Outputs and operands smaller than what a type would write or read."""
    x, three, one = normal(2, 3, 4, 4), normal(3), np.array(1, np.float32)
    small, each = Out((2, 3)), Out((3,))
    pool = {
        "ksize": [1, 1, 2, 2],
        "strides": [1, 1, 2, 2],
        "padding": "VALID",
        "data_format": "NCHW",
    }
    for name, inputs, outputs, options in (
        ("BiasAdd", [x, three], [small], {"data_format": "NCHW"}),
        ("BiasAddGrad", [x], [Out((2,))], {"data_format": "NCHW"}),
        ("BNInfer", [x, three, three, three, three], [small], {}),
        ("BNTrainingReduce", [x], [each, Out((2,))], {}),
        ("BNTrainingUpdateGrad", [x, normal(2, 3), three, three], [each, each], {}),
        ("LayerNorm", [x, normal(4), normal(4)], [Out(x.shape), Out((2,)), Out((24,))],
         {"begin_norm_axis": 3}),
        ("MaxPool", [x], [Out((2, 4, 2, 2))], pool),
        ("MaxPoolGrad", [x, normal(2, 3, 2, 2), normal(2, 3, 2, 2)], [small], pool),
        ("Relu6", [x], [small], {}),
        ("KLDiv", [x, x], [small], {"reduction": "none"}),
        ("OneHot", [np.zeros((5,), np.int32), np.array(3, np.int32), one, one], [Out((4, 3))], {}),
        ("ApplyMomentum", [three, three, np.zeros(0, np.float32), three, one], [each], {}),
        ("SGD", [three, three, one, three, one, normal(2)], [each], {}),
    ):  # fmt: skip
        with pytest.raises(Exception, match=r"elements, not|differ in number or channels"):
            types(name, inputs, outputs, **options)
