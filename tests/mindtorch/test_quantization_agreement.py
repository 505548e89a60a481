"""Models that are observed and quantised give what torch's give, and print as they do."""

import warnings

import pytest
from agreement import agree

pytestmark = pytest.mark.filterwarnings("ignore")


def tools(t):
    return __import__(f"{t.__name__}.ao.quantization", fromlist=["x"])


def model(t, last=3):
    nn, q = t.nn, tools(t)
    return nn.Sequential(q.QuantStub(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, last),
                         q.DeQuantStub())  # fmt: skip


def seeded(t, size=(4, 6), seed=0):
    generator = t.Generator().manual_seed(seed)
    return t.randn(size, generator=generator)


OBSERVERS = ("MinMaxObserver", "MovingAverageMinMaxObserver", "PerChannelMinMaxObserver",
             "HistogramObserver", "MovingAveragePerChannelMinMaxObserver")  # fmt: skip


@pytest.mark.parametrize("options", ["", "dtype=t.qint8", "quant_min=0, quant_max=127",
                                     "qscheme=t.per_{}_symmetric", "reduce_range=True"])  # fmt: skip
@pytest.mark.parametrize("name", OBSERVERS)
def test_observers_find_the_same_scales(name, options):
    kind = "channel" if "Channel" in name else "tensor"

    def run(t):
        observer = eval(f"cls({options.format(kind)})", {"cls": getattr(tools(t), name), "t": t})
        for seed in range(3):
            observer(seeded(t, seed=seed) * (seed + 1))
        state = sorted(observer.state_dict())
        return *observer.calculate_qparams(), repr(observer), str(state)

    agree(run)


@pytest.mark.parametrize("name", ["default_fake_quant", "default_weight_fake_quant",
    "default_per_channel_weight_fake_quant", "default_fused_act_fake_quant",
    "default_fused_wt_fake_quant", "default_fused_per_channel_wt_fake_quant",
    "default_histogram_fake_quant", "default_affine_fixed_qparams_fake_quant"])  # fmt: skip
def test_values_are_rounded_with_their_gradients(name):
    def run(t):
        module, x = getattr(tools(t), name)(), seeded(t).requires_grad_()
        first = module(x)
        second = module(x * 2)
        (first.sum() + second.sum()).backward()
        return first, second, x.grad, repr(module), str(sorted(module.state_dict()))

    agree(run)


@pytest.mark.parametrize("backend", ["x86", "fbgemm", "default"])
@pytest.mark.parametrize("fused", [False, True])
def test_a_model_is_quantised_after_training(backend, fused):
    def run(t):
        t.manual_seed(0)
        q, net = tools(t), model(t).eval()
        net = q.fuse_modules(net, [["1", "2"]]) if fused else net
        net.qconfig = q.default_qconfig if backend == "default" else q.get_default_qconfig(backend)
        prepared = q.prepare(net)
        with t.no_grad():
            for seed in range(3):
                prepared(seeded(t, seed=seed))
        converted = q.convert(prepared)
        weight = converted[1].weight()
        again = q.convert(q.prepare(net))
        again.load_state_dict(converted.state_dict())
        x = seeded(t, seed=5)
        return (repr(prepared), repr(converted), converted(x), repr(weight), again(x),
                str(list(converted.state_dict())))  # fmt: skip

    agree(run)


def test_a_convolution_is_quantised():
    def run(t):
        t.manual_seed(0)
        nn, q = t.nn, tools(t)
        net = nn.Sequential(q.QuantStub(), nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.ReLU(),
                            nn.MaxPool2d(2), q.DeQuantStub()).eval()  # fmt: skip
        net.qconfig = q.get_default_qconfig("x86")
        net = q.prepare(q.fuse_modules(net, [["1", "2"]]))
        x = seeded(t, (2, 4, 6, 6)).mul(8).round().div(8)
        with t.no_grad():
            net[1][0].weight.copy_(net[1][0].weight.mul(64).round().div(64))
            net[1][0].bias.zero_()
            net(x)
        net = q.convert(net)
        return net(x), repr(net[1].weight())

    agree(run)


def test_a_model_trains_with_rounded_weights_and_is_quantised():
    def run(t):
        t.manual_seed(0)
        nn, q = t.nn, tools(t)
        net = nn.Sequential(q.QuantStub(), nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(),
                            nn.Flatten(), nn.Linear(12, 2), q.DeQuantStub())  # fmt: skip
        net = q.fuse_modules_qat(net.train(), [["1", "2", "3"]])
        net.qconfig = q.get_default_qat_qconfig("x86")
        net = q.prepare_qat(net)
        optimizer = t.optim.SGD(net.parameters(), lr=0.05)
        losses = []
        for seed in range(3):
            optimizer.zero_grad()
            loss = net(seeded(t, (4, 2, 4, 4), seed)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        kinds = [type(m).__name__ for m in net.modules()]
        final = [type(m).__name__ for m in q.convert(net.eval()).modules()]
        return t.stack(losses), str(kinds), str(final)

    agree(run)


@pytest.mark.parametrize("layer", ["Linear(5, 4)", "LSTM(5, 4, 2, bidirectional=True)",
    "GRU(5, 4, batch_first=True)", "LSTMCell(5, 4)", "GRUCell(5, 4)", "RNNCell(5, 4)"])  # fmt: skip
@pytest.mark.parametrize("dtype", ["qint8", "float16"])
def test_weights_are_quantised_alone(layer, dtype):
    def run(t):
        t.manual_seed(0)
        nn, q = t.nn, tools(t)
        plain = nn.Sequential(eval(f"nn.{layer}", {"nn": nn}))
        net = q.quantize_dynamic(plain, dtype=getattr(t, dtype))
        result = net(seeded(t, (2, 5) if "Cell" in layer else (3, 2, 5)))
        flat = [v for part in (result if isinstance(result, tuple) else (result,))
                for v in (part if isinstance(part, tuple) else (part,))]  # fmt: skip
        return *flat, repr(net)

    # FBGEMM adds the products of float16 weights in an order of its own; gates are exponentials.
    agree(run, digits=3)


REFUSED = {
    "instance": lambda t, q: q.QConfig(q.MinMaxObserver(), q.MinMaxObserver),
    "scheme": lambda t, q: q.MinMaxObserver(qscheme=t.per_channel_affine),
    "range": lambda t, q: q.MinMaxObserver(quant_min=1, quant_max=3),
    "placeholder": lambda t, q: q.PlaceholderObserver().calculate_qparams(),
    "evaluated": lambda t, q: q.prepare_qat(model(t).eval()),
    "unknown": lambda t, q: q.fuse_modules(model(t), [["1", "3"]]),
    "backend": lambda t, q: q.get_default_qconfig("x87"),
    "dtype": lambda t, q: q.quantize_dynamic(model(t), dtype=t.int8),
    "modes": lambda t, q: q.fuse_conv_bn(False, t.nn.Conv2d(1, 1, 1), t.nn.BatchNorm2d(1).eval()),
    "types": lambda t, q: q.fuse_conv_bn(True, t.nn.Conv2d(1, 2, 1), t.nn.BatchNorm2d(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    agree(lambda t: REFUSED[name](t, tools(t)), text=name != "unknown")  # it names classes


def test_warnings_name_what_is_to_come():
    def run(t):
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            tools(t).prepare(t.nn.Linear(1, 1))
        return str([(w.category.__name__, str(w.message)) for w in log])

    agree(run)


def ints(t, *size, seed=1):
    return t.quantize_per_tensor(seeded(t, size, seed), 0.05, 100, t.quint8)


LAYERS = {
    "Hardswish": lambda nn, nnq: nnq.Hardswish(0.03, 20),
    "ELU": lambda nn, nnq: nnq.ELU(0.03, 70, 0.7),
    "LeakyReLU": lambda nn, nnq: nnq.LeakyReLU(0.03, 70, 0.2),
    "Sigmoid": lambda nn, nnq: nnq.Sigmoid(1 / 256, 0),
    "Softmax": lambda nn, nnq: nnq.Softmax(1, 1 / 256, 0),
    "ReLU6": lambda nn, nnq: nnq.ReLU6(),
    "BatchNorm2d": lambda nn, nnq: nnq.BatchNorm2d(4),
    "GroupNorm": lambda nn, nnq: nnq.GroupNorm(2, 4, None, None, 0.03, 100, affine=False),
    "InstanceNorm2d": lambda nn, nnq: nnq.InstanceNorm2d(4, None, None, 0.03, 100),
    "LayerNorm": lambda nn, nnq: nnq.LayerNorm(
        4, nn.Parameter(nn.Linear(4, 4).weight[0]), None, 0.03, 100
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_integers_compute_print_and_keep_the_same(name):
    def run(t):
        t.manual_seed(0)
        layer = LAYERS[name](t.nn, t.ao.nn.quantized)
        result = layer(ints(t, 2, 4, 4, 4))
        again = LAYERS[name](t.nn, t.ao.nn.quantized)
        again.load_state_dict(layer.state_dict())
        return result.int_repr(), result.q_scale(), repr(layer), str(list(layer.state_dict()))

    agree(run)


def test_layers_without_weights_are_converted():
    def run(t):
        nn, q = t.nn, tools(t)
        t.manual_seed(0)
        net = nn.Sequential(
            q.QuantStub(), nn.Conv2d(3, 4, 3), nn.Hardswish(), nn.ELU(), nn.BatchNorm2d(4),
            nn.ConvTranspose2d(4, 3, 3, 2, 1, 1), nn.LeakyReLU(0.2), nn.GroupNorm(1, 3),
            nn.ReLU6(), q.DeQuantStub(),
        ).eval()  # fmt: skip
        net.qconfig = q.get_default_qconfig("qnnpack")
        net = q.prepare(net)
        net(seeded(t, (4, 3, 8, 8)))
        net = q.convert(net)
        result = net(seeded(t, (1, 3, 8, 8), 1))
        return (result / result.abs().max()).round(decimals=1), str([type(m).__name__ for m in net])

    agree(run)


def test_tables_are_quantised_row_by_row():
    def run(t):
        nn, q = t.nn, tools(t)
        t.manual_seed(0)
        config = q.float_qparams_weight_only_qconfig
        net = nn.Sequential(nn.Embedding(10, 4)).eval()
        net.qconfig = config
        rows = q.convert(q.prepare(net))
        bags = nn.Sequential(nn.EmbeddingBag(10, 4, mode="sum"))
        sums = q.quantize_dynamic(bags, {nn.EmbeddingBag: config})
        index = t.tensor([[1, 2], [3, 9]])
        return (
            rows(index), repr(rows), str(list(rows.state_dict())), sums(index),
            sums(index, None, t.tensor([[0.5, 2.0], [1.0, 0.0]])),
            sums(index.flatten(), t.tensor([0, 3])),
        )  # fmt: skip

    agree(run)


@pytest.mark.parametrize("call", [
    "conv1d(x[:, :, 0], w[:, :, 0], b, padding=1, scale=0.2, zero_point=50)",
    "conv2d(x, w, b, stride=2, scale=0.2, zero_point=50)", "conv2d(x, x, None)",
    "conv2d(x, w, None, padding_mode='reflect')", "conv2d(x[0], w, b)",
    "linear(x, w[:, 0, :2, :2].reshape(1, 4), None, 0.1, 90)", "avg_pool2d(x, 2)",
    "max_pool2d(x, 2)", "max_pool2d(x, 2, return_indices=True)", "adaptive_avg_pool2d(x, 2)",
    "clamp(x, -0.5, 0.5)", "hardtanh(x)", "hardsigmoid(x)", "hardswish(x, 0.1, 20)",
    "leaky_relu(x, 0.1)", "interpolate(x, scale_factor=2)", "upsample_nearest(x, (8, 8))",
    "avg_pool2d(x.dequantize(), 2)", "clamp(x.dequantize(), 0.0, 1.0)"])  # fmt: skip
def test_functions_of_integers_are_the_same(call):
    def run(t):
        names = {
            "x": ints(t, 1, 3, 4, 4), "b": seeded(t, (1,)),
            "w": t.quantize_per_tensor(seeded(t, (1, 3, 3, 3), 2), 0.02, 0, t.qint8),
        }  # fmt: skip
        result = eval(f"F.{call}", {**names, "F": t.ao.nn.quantized.functional})
        return result.int_repr(), result.q_scale(), result.q_zero_point()

    agree(run)


@pytest.mark.parametrize("call", [
    "add(x, x, 0.1, 50)", "add_scalar(x, 1.5)", "mul_scalar(x, -2.0)", "sigmoid(x, 1 / 256, 0)",
    "hardswish(x, 0.03, 20)", "relu6(x)", "elu(x, 0.03, 50)", "celu(x, 0.03, 50, 2.0)",
    "leaky_relu(x, 0.1, False, 0.03, 50)", "softmax(x, 1, 1 / 256, 0)", "matmul(x, x, 0.1, 100)",
    "layer_norm(x, [4], None, None, 1e-5, 0.03, 100)",
    "group_norm(x, 2, None, None, 1e-5, 0.03, 100)",
    "instance_norm(x, None, None, 1e-5, 0.03, 100)",
    "batch_norm2d(x, one, zero, zero, one, 1e-5, 0.05, 100)",
    "linear(x, Q.linear_prepack(w, None), 0.1, 90)",
    "linear_relu(x, Q.linear_prepack(w, one), 0.1, 90)"])  # fmt: skip
def test_operators_of_integers_are_the_same(call):
    def run(t):
        names = {
            "x": ints(t, 1, 4, 4, 4), "one": t.ones(4), "zero": t.zeros(4),
            "w": t.quantize_per_tensor(seeded(t, (4, 4), 2), 0.02, 0, t.qint8),
        }  # fmt: skip
        result = eval(f"Q.{call}", {**names, "Q": t.ops.quantized})
        return result.int_repr(), result.q_scale(), result.q_zero_point()

    agree(run)


# As many channels out as in: with others torch mixes those of transposed convolutions.
@pytest.mark.parametrize("name", ["Conv1d", "Conv2d", "ConvTranspose2d"])
def test_convolutions_of_floats_have_weights_of_integers(name):
    def run(t):
        t.manual_seed(0)
        layer = getattr(t.ao.nn.quantized.dynamic, name)(3, 3, 3)
        source = getattr(t.nn, name)(3, 3, 3)
        weight = t.quantize_per_tensor(source.weight.detach(), 0.01, 0, t.qint8)
        layer.set_weight_bias(weight, source.bias.detach())
        return layer(seeded(t, (1, 3, 6, 6)[: source.weight.dim()])), repr(layer)

    agree(run, digits=5)
