"""Models as graphs with observers, and then with integers: code, modules and values of torch."""

import importlib
import re

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="torch is the oracle")
pytestmark = pytest.mark.filterwarnings("ignore")


class Case:
    """What a library has, and models of it."""

    def __init__(self, t):
        self.t, self.nn, name = t, t.nn, t.__name__
        self.fx = importlib.import_module(f"{name}.ao.quantization.quantize_fx")
        self.ao = importlib.import_module(f"{name}.ao.quantization")

    def model(self, forward, **layers):
        """A module of layers with weights that every library has alike."""
        case = self

        class Model(self.nn.Module):
            def __init__(self):
                super().__init__()
                for name, layer in layers.items():
                    setattr(self, name, layer)

            def forward(self, x):
                return forward(self, x, case.t)

        model = Model()
        with self.t.no_grad():
            for i, p in enumerate(model.parameters()):
                p.copy_((self.t.arange(p.numel()).reshape(p.shape) * (i + 3) % 11 - 5.0) / 9)
        return model

    def pair(self, forward):
        return self.model(forward, a=self.nn.Linear(3, 3), b=self.nn.Linear(3, 3))

    def image(self, forward):
        nn = self.nn
        return self.model(
            forward, conv=nn.Conv2d(1, 2, 3), bn=nn.BatchNorm2d(2), relu=nn.ReLU(),
            pool=nn.MaxPool2d(2), drop=nn.Dropout(0.1), fc=nn.Linear(8, 3), act=nn.Sigmoid(),
        )  # fmt: skip


def whole(m, x, t):
    x = m.drop(m.pool(m.relu(m.bn(m.conv(x)))))
    return m.act(m.fc(t.flatten(x, 1)))


def viewed(m, x, t):
    x = m.pool(t.nn.functional.relu(m.conv(x)))
    return t.softmax(m.fc(x.reshape(x.size(0), -1)), 1)


def functional(m, x, t):
    return m.fc(m.pool(t.nn.functional.relu(m.bn(m.conv(x)))).flatten(1))


MODELS = {
    "functional": lambda c: (c.image(functional), (2, 1, 6, 6)),
    "image": lambda c: (c.image(whole), (2, 1, 6, 6)),
    "viewed": lambda c: (c.image(viewed), (2, 1, 6, 6)),
    "sum": lambda c: (c.pair(lambda m, x, t: m.a(x) + m.b(x)), (4, 3)),
    "sum and relu": lambda c: (c.pair(lambda m, x, t: t.relu(x + m.a(x))), (4, 3)),
    "product": lambda c: (c.pair(lambda m, x, t: m.a(x) * m.b(x)), (4, 3)),
    "together": lambda c: (c.pair(lambda m, x, t: t.cat([m.a(x), m.b(x)], 1)), (4, 3)),
    "number": lambda c: (c.pair(lambda m, x, t: m.a(x) + 1), (4, 3)),
    "negative": lambda c: (c.pair(lambda m, x, t: m.b(m.a(x) * -2)), (4, 3)),
    "far": lambda c: (c.pair(lambda m, x, t: m.a(x) + 30), (4, 3)),
    "sliced": lambda c: (
        c.pair(lambda m, x, t: m.b((t.cat([m.a(x), x], 1)[:, :3] * 2).add(x))),
        (4, 3),
    ),
    "two sums": lambda c: (
        c.pair(lambda m, x, t: (y := m.a(x)[:, :3]) + (y + y).sigmoid()),
        (4, 3),
    ),
    "layer of floats between": lambda c: (
        c.model(
            lambda m, x, t: m.fc(m.flat(m.conv(x))),
            conv=c.nn.Conv2d(1, 2, 3),
            flat=c.nn.Flatten(),
            fc=c.nn.Linear(8, 3),
        ),
        (2, 1, 4, 4),
    ),
    "chain": lambda c: (c.pair(lambda m, x, t: m.b(t.relu(m.a(x)))), (4, 3)),
}
MAPPINGS = {
    "default": lambda c: c.ao.get_default_qconfig_mapping("fbgemm"),
    "one": lambda c: c.ao.QConfigMapping().set_module_name("b", c.ao.default_qconfig),
    "but one": lambda c: c.ao.get_default_qconfig_mapping().set_module_name("a", None),
    "type": lambda c: c.ao.QConfigMapping().set_object_type(c.nn.Linear, c.ao.default_qconfig),
    "pattern": lambda c: c.ao.QConfigMapping().set_module_name_regex("[ab]", c.ao.default_qconfig),
    "dynamic": lambda c: c.ao.QConfigMapping().set_global(c.ao.default_dynamic_qconfig),
}


def plain(text):
    """Scales to five digits, one name for both libraries."""
    text = text.replace("mindtorch", "torch")
    return re.sub(r"\d+\.\d{5,}", lambda m: f"{float(m[0]):.5g}", text)


def converted(t, model, mapping, learns=False):
    """Texts and values on the way of a model."""
    case = Case(t)
    net, shape = MODELS[model](case)
    count = int(t.tensor(shape).prod())
    x = (t.arange(float(count)).view(shape) * 7 % 23 - 9) / 8
    prepare = case.fx.prepare_qat_fx if learns else case.fx.prepare_fx
    chosen = case.ao.get_default_qat_qconfig_mapping() if learns else MAPPINGS[mapping](case)
    prepared = prepare(net.train(learns), chosen, (x,))
    texts = [str(prepared), prepared.code]
    for step in range(2):
        prepared(x * (step + 1))
    done = case.fx.convert_fx(prepared.eval())
    texts += [str(done), done.code, str(list(done.state_dict()))]
    return [plain(text) for text in texts], done(x).flatten().tolist()


@pytest.mark.parametrize("model", MODELS)
def test_graphs_of_integers_are_those_of_torch(model):
    (ours, values), (theirs, expected) = (
        converted(t, model, "default") for t in (mindtorch, torch)
    )
    assert ours == theirs
    assert values == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("mapping", [m for m in MAPPINGS if m != "default"])
@pytest.mark.parametrize("model", ["chain", "sum"])
def test_parts_of_graphs_are_quantised_as_torch_quantises_them(model, mapping):
    (ours, values), (theirs, expected) = (converted(t, model, mapping) for t in (mindtorch, torch))
    assert ours == theirs
    assert values == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("model", ["chain", "viewed", "sum and relu"])
def test_graphs_that_learn_are_those_of_torch(model):
    (ours, values), (theirs, expected) = (
        converted(t, model, "", learns=True) for t in (mindtorch, torch)
    )
    assert ours == theirs
    assert values == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_neighbours_become_one_module():
    texts = []
    for t in (mindtorch, torch):
        case = Case(t)
        net, _ = MODELS["image"](case)
        fused = case.fx.fuse_fx(net.eval())
        x = t.arange(36.0).view(1, 1, 6, 6) / 36
        assert fused(x).flatten().tolist() == pytest.approx(net(x).flatten().tolist(), rel=1e-5)
        texts.append(plain(str(fused)))
    assert texts[0] == texts[1]


def test_mappings_print_as_torchs():
    texts = []
    for t in (mindtorch, torch):
        case = Case(t)
        mapping = case.ao.get_default_qconfig_mapping("fbgemm").set_module_name("a", None)
        texts.append([plain(str(mapping.set_module_name_regex("b.*", None))), sorted(
            map(str, mapping.to_dict()))])  # fmt: skip
    ours, theirs = (
        [re.sub(r" at 0x\w+|<built-in method (\w+) of type object>", "", p) for p in text[0]
         .splitlines() if "object_type" not in p and "<" not in p] + text[1] for text in texts
    )  # fmt: skip
    assert ours == theirs


def test_what_is_not_here_is_refused():
    case = Case(mindtorch)
    model, mapping = mindtorch.nn.Linear(2, 2), case.ao.get_default_qconfig_mapping()
    with pytest.raises(NotImplementedError, match="prepare_custom_config"):
        case.fx.prepare_fx(model, mapping, (), prepare_custom_config={"non_traceable": []})
    layers = mindtorch.nn.Sequential(mindtorch.nn.Linear(2, 2), mindtorch.nn.ReLU())
    odd = case.ao.QConfigMapping().set_object_type(mindtorch.nn.Linear, case.ao.default_qconfig)
    with pytest.raises(LookupError, match="same qconfigs for all module types"):
        case.fx.prepare_fx(layers, odd, ())
