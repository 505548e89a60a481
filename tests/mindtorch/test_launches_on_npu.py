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
    "dropout": (nn.functional.dropout, (3, 5), "float32", 2),
    "causal attention": (
        lambda x: nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True),
        (1, 2, 3, 4),
        "float32",
        3,
    ),
    "linear over steps": (
        lambda x: nn.functional.linear(x, x[0], x[0, 0]),
        (2, 3, 3),
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


def step_on(device, kind, options, dtype="float32", **more):
    """Parameters after three steps, and the launches of the last."""
    params = [
        nn.Parameter(mindtorch.linspace(-1, 1, n).to(device, getattr(mindtorch, dtype)))
        for n in (1, 3, 12, 7)
    ]
    optimizer = getattr(mindtorch.optim, kind)(params, **options, **more)
    counters, before = runtime.cann().runtime.counters, 0
    for _ in range(3):
        for p in params:
            p.grad = p.detach() * p.detach() - 0.5
        before = counters()["launches"]
        optimizer.step()
    return params, counters()["launches"] - before


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("kind", "options", "most"),
    [
        ("Adam", {"weight_decay": 0.1, "amsgrad": True}, 9),
        ("AdamW", {"maximize": True}, 9),
        ("AdamW", {"fused": True}, 8),
        ("RMSprop", {"weight_decay": 0.1}, 6),
        ("RMSprop", {"centered": True, "momentum": 0.5, "maximize": True}, 10),
        ("Adagrad", {"lr_decay": 0.1}, 4),
        ("SGD", {"lr": 0.1}, 1),
        ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}, 9),
        ("NAdam", {"weight_decay": 0.1, "maximize": True}, 10),
        ("RAdam", {"betas": (0.5, 0.6), "weight_decay": 0.1}, 12),
        ("RAdam", {"decoupled_weight_decay": True}, 7),
        ("Adamax", {"weight_decay": 0.1}, 8),
        ("Adadelta", {"weight_decay": 0.1}, 12),
        ("ASGD", {"t0": 1, "weight_decay": 0.1}, 7),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}, 5),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}, 4),
    ],
)
def test_an_optimizer_steps_by_lists_with_the_same_numbers(kind, options, most, dtype):
    by_lists, launched = step_on("npu", kind, options, dtype)
    alone = {"foreach": None if options.get("fused") else False}
    one_by_one, _ = step_on("cpu" if options.get("fused") else "npu", kind, options, dtype, **alone)
    assert launched <= most
    for a, b in zip(by_lists, one_by_one, strict=True):
        assert a._version == b._version
        mindtorch.testing.assert_close(a.detach().cpu(), b.detach().cpu())


A, B, C = [1.5, -2.0, 0.25], [0.5, 2.0, -1.0], [3.0, 1.0, 2.0]
LISTS = {
    "add list": ("add", (B,), {"alpha": 2}), "add number": ("add", (2,), {}),
    "add numbers": ("add", ((0.1, 2.0),), {}), "sub": ("sub", (B,), {"alpha": 0.5}),
    "mul numbers": ("mul", ((3, 0.5),), {}), "mul": ("mul", (B,), {}), "div": ("div", (C,), {}),
    "div number": ("div", (3,), {}), "clamp_min": ("clamp_min", (0.5,), {}),
    "minimum": ("minimum", (B,), {}), "lerp": ("lerp", (B, 0.3), {}), "abs": ("abs", (), {}),
    "lerp list": ("lerp", (B, C), {}), "addcmul": ("addcmul", (B, C), {"value": 0.1}),
    "addcdiv": ("addcdiv", (B, C, 0.1), {}), "copy": ("copy", (B,), {"non_blocking": True}),
    "zero": ("zero", (), {}), "exp": ("exp", (), {}),
}  # fmt: skip


def lists_of(value, device):
    """Two tensors of a list of numbers; others as they are."""
    if not isinstance(value, list):
        return value
    return [mindtorch.tensor(value, device=device), mindtorch.tensor([value], device=device) * 2]


@pytest.mark.parametrize("name", LISTS)
def test_lists_are_written_by_one_launch(name):
    word, args, options = LISTS[name]
    results = {}
    for device in ("cpu", "npu"):
        operands = [lists_of(v, device) for v in (A, *args)]
        counters = runtime.cann().runtime.counters
        before = counters()["launches"]
        getattr(mindtorch, f"_foreach_{word}_")(*operands, **options)
        assert counters()["launches"] - before == (device == "npu")
        results[device] = operands[0]
    for on_host, on_device in zip(results["cpu"], results["npu"], strict=True):
        assert on_device._version == 1
        mindtorch.testing.assert_close(on_device.cpu(), on_host)


def test_lists_that_share_memory_or_differ_are_written_one_by_one():
    def outcomes(lib, device):
        x = lib.arange(6.0, device=device)
        lib._foreach_add_([x[:4], x[2:]], 1)
        lib._foreach_addcmul_([x, x], [x, x], [x, x], lib.tensor([1.0, 2.0]))
        y, z = lib.ones(2, device=device), lib.full((2,), 2.0, device=device)
        lib._foreach_mul_([y, z], [z, y])
        lib._foreach_sub_((y, y), (1.0, 2.0))
        strided = [lib.ones(2, 3, device=device).t(), lib.ones(2, device=device)]
        lib._foreach_add_(strided, strided)
        whole = [lib.tensor([1, 2], device=device)]
        lib._foreach_mul_(whole, 3)
        by_tensors = [lib.ones(2, device=device), lib.ones(1, device=device)]
        lib._foreach_mul_(by_tensors, lib.tensor(3.0, device=device))
        lib._foreach_add_(by_tensors, lib.tensor(2.0, device=device))
        with pytest.raises(RuntimeError, match="at least one tensor"):
            lib._foreach_zero_([])
        with pytest.raises(RuntimeError, match="result type Float can't be cast"):
            lib._foreach_mul_(whole, 0.5)
        leaf = lib.ones(2, device=device, requires_grad=True)
        again = [leaf * 1]
        lib._foreach_mul_(again, 3)
        again[0].sum().backward()
        return [t.tolist() for t in (x, y, z, *strided, *whole, *by_tensors, leaf.grad)]

    torch = pytest.importorskip("torch")
    assert outcomes(mindtorch, "npu") == outcomes(mindtorch, "cpu") == outcomes(torch, "cpu")


@pytest.mark.parametrize("bad", [None, "inf", "nan"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_are_unscaled_and_measured_by_lists(dtype, bad):
    def step(device):
        params = [nn.Parameter(mindtorch.ones(n, device=device)) for n in (2, 3, 4)]
        params = [nn.Parameter(p.detach().to(getattr(mindtorch, dtype))) for p in params]
        for i, p in enumerate(params):
            p.grad = p.detach() * (i + 1.5)
        if bad:
            params[1].grad[1] = float(bad)
        optimizer = mindtorch.optim.SGD(params, lr=0.5)
        scaler = mindtorch.amp.GradScaler(device, init_scale=4.0)
        scaler.scale(mindtorch.ones(1, device=device))
        before = runtime.cann().runtime.counters()["launches"]
        scaler.unscale_(optimizer)
        middle = runtime.cann().runtime.counters()["launches"]
        total = nn.utils.get_total_norm([p.grad for p in params])
        after = runtime.cann().runtime.counters()["launches"]
        nn.utils.clip_grad_value_(params, 2.0)
        last = runtime.cann().runtime.counters()["launches"]
        nn.utils.clip_grads_with_norm_(params, 1.0, total)
        end = runtime.cann().runtime.counters()["launches"]
        launched = middle - before, after - middle, last - after, end - last
        scaler.step(optimizer)
        scaler.update()
        return [*(p.grad.cpu() for p in params), *(p.detach().cpu() for p in params), total.cpu(),
                mindtorch.tensor(scaler.get_scale())], launched  # fmt: skip

    (on_device, launched), (on_host, _) = step("npu"), step("cpu")
    assert all(n <= most for n, most in zip(launched, (4, 3, 2, 7), strict=True)), launched
    for a, b in zip(on_device, on_host, strict=True):
        mindtorch.testing.assert_close(a, b, equal_nan=True)
