"""Quantised tensors hold the integers that torch's hold, and print as they do."""

import copy
import io
import pickle
import warnings

import pytest
from agreement import agree

import mindtorch

torch = pytest.importorskip("torch", reason="torch 2.13 is the oracle")


def values(t):
    return t.tensor([[-1.0, 0.0, 0.55], [1.0, 2.0, 3.3]])


def quantized(t, kind="quint8", scale=0.1, zero=10):
    return t.quantize_per_tensor(values(t), scale, zero, getattr(t, kind))


def by_channel(t, axis=0):
    scales = t.tensor([0.1, 0.05, 0.2][: values(t).shape[axis]])
    zeros = t.tensor([10, 0, 3][: scales.numel()])
    return t.quantize_per_channel(values(t), scales, zeros, axis, t.quint8)


@pytest.mark.parametrize("kind", ["quint8", "qint8", "qint32"])
@pytest.mark.parametrize(("scale", "zero"), [(0.1, 10), (0.05, 0), (0.2, 1), (0.004, 3)])
def test_values_are_the_nearest_integers(kind, scale, zero):
    def run(t):
        q = quantized(t, kind, scale, zero)
        return q.int_repr(), q.dequantize(), q.q_scale(), q.q_zero_point(), repr(q)

    agree(run)


@pytest.mark.parametrize("axis", [0, 1])
def test_channels_have_scales_of_their_own(axis):
    def run(t):
        q = by_channel(t, axis)
        parts = (q.q_per_channel_scales(), q.q_per_channel_zero_points(), q.q_per_channel_axis())
        return *parts, q.int_repr(), q.dequantize(), repr(q), repr(q.qscheme())

    agree(run)


FUNCTIONS = {
    "row": lambda t, q: q[0], "column": lambda t, q: q[:, 1], "flat": lambda t, q: q.view(-1),
    "transpose": lambda t, q: q.t(), "copy": lambda t, q: q.clone(), "relu": lambda t, q: q.relu(),
    "greatest": lambda t, q: q.max(), "mean": lambda t, q: q.mean(), "equal": lambda t, q: q == q,
    "sort": lambda t, q: t.sort(q), "top": lambda t, q: q.topk(2), "cat": lambda t, q: t.cat([q, q]),
    "clamp": lambda t, q: q.clamp(0, 1), "into": lambda t, q: q.copy_(values(t) / 3),
    "filled": lambda t, q: q.fill_(1.0), "of torch": lambda t, q: t.dequantize(q),
    "padded": lambda t, q: t.nn.functional.pad(q, (1, 1)), "repeated": lambda t, q: q.repeat(1, 2),
    "hidden": lambda t, q: q.masked_fill(values(t) > 0, 0.0), "spread": lambda t, q: q.std(),
    "gelu": lambda t, q: t.nn.functional.gelu(q),
    "dropped": lambda t, q: t.nn.functional.dropout(q, 0.5, False),
    "dynamic": lambda t, q: t.quantize_per_tensor_dynamic(values(t), t.qint8, False),
    "narrow": lambda t, q: t.quantize_per_tensor_dynamic(values(t), t.quint8, True),
    "kind": lambda t, q: (q.dtype, q.is_quantized, q.type(), q.element_size(), q.shape, q.stride()),
    "deep": lambda t, q: copy.deepcopy(q), "several": lambda t, q: t.quantize_per_tensor(
        [values(t)] * 2, t.tensor([0.1, 0.2]), t.tensor([0, 1]), t.qint8),
}  # fmt: skip


def packed(t, q):
    """A weight for three inputs with a bias, as operators take it, and an input."""
    weight = t.quantize_per_tensor(t.arange(6.0).reshape(2, 3) / 9 - 0.2, 0.02, 0, t.qint8)
    return q, t.ops.quantized.linear_prepack(weight, t.arange(2.0))


def windowed(t, q, dims, *more):
    """A window of ones over `dims` dims, packed, and an input of one channel."""
    shape = (1, 1, *[1] * (dims - 2), 2, 1)[: dims + 2]
    weight = t.quantize_per_tensor(t.ones(shape) / 3, 0.02, 0, t.qint8)
    sizes = [1] * dims, [0] * dims, *([[0] * dims] if more else []), [1] * dims, 1
    name = f"conv{'_transpose' * bool(more)}{dims}d"
    held = getattr(t.ops.quantized, f"{name}_prepack")(weight, t.ones(1), *sizes)
    return q.reshape(
        1, 1, *[1] * (dims - 2), *q.shape[-min(dims, 2) :] if dims > 1 else (-1,)
    ), held


OPERATORS = {
    "cat_relu": lambda t, q: ([q, q], 0, 0.3, 5), "add_scalar_relu": lambda t, q: (q, -0.7),
    "mul_scalar_relu": lambda t, q: (q, 2.5), "clamp": lambda t, q: (q, 0.0, 0.6),
    "threshold": lambda t, q: (q, 0.5, 0.0), "dropout": lambda t, q: (q, 0.5, False),
    "max_pool1d": lambda t, q: (q[None], [2], [1], [0], [1], False),
    "max_pool2d": lambda t, q: (q[None], [2, 2], [1, 1], [0, 0], [1, 1], False),
    "batch_norm1d": lambda t, q: (
        q, t.ones(3), t.zeros(3), t.zeros(3), t.ones(3), 1e-5, 0.13, 3),
    "batch_norm2d_relu": lambda t, q: (
        q[None, :, None], t.ones(2), t.zeros(2), t.zeros(2), t.ones(2), 1e-5, 0.13, 3),
    "linear_dynamic": lambda t, q: (q.dequantize(), packed(t, q)[1]),
    "linear_relu_dynamic": lambda t, q: (q.dequantize(), packed(t, q)[1], True),
    "linear_dynamic_fp16": lambda t, q: (
        q.dequantize(), t.ops.quantized.linear_prepack_fp16(t.ones(2, 3) / 3, t.ones(2))),
    "conv1d": lambda t, q: (*windowed(t, q, 1), 0.05, 9),
    "conv2d_relu": lambda t, q: (*windowed(t, q, 2), 0.05, 9),
    "conv3d": lambda t, q: (*windowed(t, q, 3), 0.05, 9),
    "conv_transpose2d": lambda t, q: (*windowed(t, q, 2, True), 0.05, 9),
    "conv2d_unpack": lambda t, q: windowed(t, q, 2)[1:],
    "conv2d_stride": lambda t, q: windowed(t, q, 2)[1:],
    "conv2d_groups": lambda t, q: windowed(t, q, 2)[1:],
    "conv2d_dynamic": lambda t, q: (q.dequantize().reshape(1, 1, 2, -1), windowed(t, q, 2)[1]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_quantised_tensors(name):
    def run(t):
        return repr(getattr(t.ops.quantized, name)(*OPERATORS[name](t, quantized(t))))

    agree(run)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_quantised_tensors(name):
    agree(lambda t: repr(FUNCTIONS[name](t, quantized(t))))


REFUSED = {
    "whole numbers": lambda t: t.quantize_per_tensor(t.arange(3), 0.1, 0, t.qint8),
    "quantised before": lambda t: t.quantize_per_tensor(quantized(t), 0.1, 0, t.qint8),
    "a scale with a gradient": lambda t: t.fake_quantize_per_tensor_affine(
        values(t), t.ones((), requires_grad=True), t.zeros((), dtype=t.int32), 0, 9),
    "a number more": lambda t: quantized(t) + 1,
    "a plain one more": lambda t: values(t) + quantized(t),
    "a power": lambda t: t.pow(quantized(t), quantized(t)),
    "a sine": lambda t: t.sin(quantized(t)),
    "sum of two": lambda t: quantized(t) + quantized(t), "float": lambda t: quantized(t).float(),
    "dtype": lambda t: quantized(t).to(t.float32), "list": lambda t: quantized(t).tolist(),
    "array": lambda t: quantized(t).numpy(), "plain": lambda t: values(t).int_repr(),
    "plain scale": lambda t: values(t).q_scale(), "axis": lambda t: quantized(t).q_per_channel_axis(),
    "scale": lambda t: by_channel(t).q_scale(), "kind": lambda t: quantized(t, "float32"),
    "a layer's weight": lambda t: t.nn.functional.linear(quantized(t), values(t), t.ones(2)),
    "halves": lambda t: quantized(t).half(), "near": lambda t: t.allclose(quantized(t), quantized(t)),
    "a layer's window": lambda t: t.nn.functional.conv1d(
        quantized(t), t.ones(1, 2, 1), t.ones(1)),
    "whole numbers held": lambda t: t.fake_quantize_per_tensor_affine(t.arange(3), 0.1, 0, 0, 9),
    "points past the end": lambda t: t.fake_quantize_per_channel_affine(
        values(t), t.ones(2), t.tensor([0, 9], dtype=t.int32), 0, -4, 7),
    "scales of a side too many": lambda t: t._fake_quantize_learnable_per_channel_affine(
        values(t), t.ones(2), t.zeros(2), -1, -4, 7),
    "scales": lambda t: t.quantize_per_channel(
        values(t), t.ones(1), t.zeros(2), 0, t.qint8),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_quantised_tensors_refuse(name):
    agree(REFUSED[name], text=False)


def test_zero_points_that_are_floats_stay_floats():
    def run(t):
        scales, zeros = t.tensor([0.1, 0.2]), t.tensor([0.5, 10.0])
        q = t.quantize_per_channel(t.ones(2, 2), scales, zeros, 0, t.quint8)
        parts = (q.q_per_channel_scales(), q.q_per_channel_zero_points(), q.dequantize())
        return [str(q.qscheme()).rpartition(".")[2], repr(q).replace("mindtorch", "torch"), *parts]

    agree(run)


def test_rounding_to_a_grid_has_torchs_nodes():
    def run(t):
        x, scale = t.ones(2, requires_grad=True), t.ones(2)
        zero = t.zeros(2, dtype=t.int32)
        results = (
            t.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 9),
            t.fake_quantize_per_tensor_affine(x, scale[0], zero[0], 0, 9),
            t.fake_quantize_per_channel_affine(x, scale, zero, 0, 0, 9),
        )
        return [repr(y.grad_fn).partition(" ")[0] for y in results]

    agree(run)


@pytest.mark.parametrize("point", [0.0, 1.4, 2.5, -300.0, 300.0])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_scales_and_zero_points_are_learned(axis, point):
    def run(t):
        x = (t.arange(12.0).reshape(3, 4) / 3 - 2).requires_grad_()
        number = 1 if axis is None else x.shape[axis]
        scale = (t.arange(number) * 0.1 + 0.3).requires_grad_()
        zero = (t.arange(number) * 0.7 + point).requires_grad_()
        kind = "tensor" if axis is None else "channel"
        function = getattr(t, f"_fake_quantize_learnable_per_{kind}_affine")
        y = function(x, scale, zero, *(() if axis is None else (axis,)), -4, 7, 0.5)
        (y * t.arange(12.0).reshape(3, 4)).sum().backward()
        return y, repr(y.grad_fn).partition(" ")[0], x.grad, scale.grad, zero.grad

    agree(run, digits=4)


def test_a_quantised_tensor_is_pickled():
    agree(lambda t: repr(pickle.loads(pickle.dumps(quantized(t)))))


@pytest.mark.parametrize("make", [quantized, by_channel])
def test_a_quantised_tensor_is_in_files_as_torch_has_it(make):
    for source, reader in ((torch, mindtorch), (mindtorch, torch), (mindtorch, mindtorch)):
        file = io.BytesIO()
        source.save({"q": make(source)[:, :1]}, file)
        file.seek(0)
        assert repr(reader.load(file)["q"]) == repr(make(reader)[:, :1])


def test_a_quantised_tensor_warns_of_its_end():
    def run(t):
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            t.set_warn_always(True)
            quantized(t)
            t.set_warn_always(False)
        return [(w.category.__name__, str(w.message).partition(" (Triggered")[0]) for w in log][:1]

    agree(run)
