"""Fake tensors show, compute and refuse as torch's do."""

import re
from copy import deepcopy
from importlib import import_module

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def calls(lib, mode, x):
    """Calls with a fake tensor of 2 × 3, each by its text."""
    functional, nn = lib.nn.functional, lib.nn
    return {
        "repr": lambda: (x, repr(x), type(x).__name__, x.device, x.shape, x.is_meta),
        "arithmetic": lambda: (x + 1, x * x, x.T, x[0], x[:, 1:], x.sum(), x.max(1)),
        "casts": lambda: (x.half(), x.to(lib.int8), x > 0, x.to("meta"), x.clone().stride()),
        "factories": lambda: (lib.ones(3), lib.arange(4), lib.zeros_like(x), lib.eye(2)),
        "numbers": lambda: (lib.tensor(3).item(), lib.tensor([1, 2]).tolist(), lib.tensor(2.0)),
        "counted": lambda: [t.add_(1) and t.item() for t in (lib.tensor(3.0),)],
        "layer": lambda: (nn.Linear(3, 4).weight, nn.Linear(3, 4)(x), nn.Conv1d(2, 4, 1)(x)),
        "loss": lambda: functional.cross_entropy(x, lib.zeros(2, dtype=lib.int64)),
        "gradient": lambda: gradient(lib),
        "parameter": lambda: mode.from_tensor(nn.Parameter(lib.ones(2))).requires_grad,
        "copies": lambda: (deepcopy(x), deepcopy(nn.Linear(2, 2)).weight),
        "step": lambda: step(lib),
        "sizes": lambda: x + lib.ones(4),
        "product": lambda: x @ lib.ones(2, 2),
        "view": lambda: x.view(7),
        "item": lambda: x.sum().item(),
        "several": lambda: x.item(),
        "bool": lambda: bool(x.sum() > 0),
        "float": lambda: float(x.sum()),
        "list": lambda: x.tolist(),
        "numpy": lambda: x.numpy(),
        "nonzero": lambda: x.nonzero(),
        "masked": lambda: lib.masked_select(x, x > 0),
        "index by mask": lambda: x[x > 0],
        "two modes": lambda: x + type(mode)().from_tensor(lib.ones(3)),
        "devices": lambda: x + lib.ones(3, device="meta"),
    }


def gradient(lib):
    layer = lib.nn.Linear(3, 1)
    loss = layer(lib.randn(2, 3)).sum()
    loss.backward()
    return loss, layer.weight.grad


def step(lib):
    layer = lib.nn.Linear(3, 1)
    optimizer = lib.optim.AdamW(layer.parameters())
    layer(lib.ones(1, 3)).sum().backward()
    optimizer.step()
    return layer.weight


def outcome(lib, name, inside):
    module = import_module(f"{lib.__name__}._subclasses.fake_tensor")
    mode = module.FakeTensorMode()
    lib.manual_seed(0)
    x = mode.from_tensor(lib.ones(2, 3))
    try:
        if inside:
            with mode:
                result = calls(lib, mode, x)[name]()
        else:
            result = calls(lib, mode, x)[name]()
    except Exception as error:
        text = str(error).splitlines()[0]
        if name in ("loss", "gradient", "step"):  # which operator comes first is torch's own matter
            text = text.partition(" Found in")[0]
        result = type(error).__name__, text
    return re.sub(r" object at 0x\w+", "", str(result)).replace(lib.__name__, "torch")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("inside", [True, False], ids=("inside", "outside"))
@pytest.mark.parametrize("name", list(calls(mindtorch, None, None)))
def test_fake_tensors_show_compute_and_refuse_as_torch(name, inside):
    assert outcome(mindtorch, name, inside) == outcome(torch, name, inside)


def story(lib):
    guards = import_module(f"{lib.__name__}._guards")
    fakes = import_module(f"{lib.__name__}._subclasses.fake_tensor")
    prop = import_module(f"{lib.__name__}.fx.passes.fake_tensor_prop").FakeTensorProp
    mode = fakes.FakeTensorMode(allow_non_fake_inputs=True)
    strided = lib.ones(4, 6)[:, ::2]
    yield mode.from_tensor(strided), mode.from_tensor(strided).stride()
    yield mode.from_tensor(strided) is mode.from_tensor(strided), fakes.is_fake(strided)
    yield mode.from_tensor(lib.ones(3)) + lib.ones(3)
    yield guards.detect_fake_mode([lib.ones(1)]), guards.active_fake_mode()
    yield guards.detect_fake_mode([mode.from_tensor(strided)]) is mode
    with mode:
        yield guards.active_fake_mode() is mode, guards.detect_fake_mode() is mode
        with fakes.unset_fake_temporarily():
            yield lib.ones(2)
    seen = []

    def backend(module, inputs):
        seen.extend(n.meta.get("example_value") for n in module.graph.nodes)
        seen.append(guards.detect_fake_mode(inputs) is not None)
        seen.append(guards.TracingContext.try_get() is not None)
        return module.forward

    lib.compile(lambda x: (x + 1).relu().add_(1), backend=backend)(lib.ones(3))
    yield seen, guards.TracingContext.try_get()
    program = lib.export.export(lib.nn.ReLU(inplace=True), (lib.ones(2, 3),))
    yield [(n.meta.get("val"), n.meta.get("tensor_meta")) for n in program.graph.nodes]
    operators = import_module(f"{lib.__name__}._ops")
    yield [isinstance(n.target, operators.OpOverload) for n in program.graph.nodes]
    module = lib.fx.symbolic_trace(lambda x: x.relu().sum(0))
    prop(module, mode).propagate(lib.ones(2, 3))
    yield [(n.meta.get("val"), n.meta.get("tensor_meta")) for n in module.graph.nodes]


@pytest.mark.filterwarnings("ignore")
def test_what_is_traced_holds_fake_tensors_as_in_torch():
    for ours, theirs in zip(story(mindtorch), story(torch), strict=True):
        assert str(ours).replace("mindtorch", "torch") == str(theirs)
