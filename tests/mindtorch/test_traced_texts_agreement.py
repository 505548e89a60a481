"""The texts of traces: what they print in torch, for functions and modules of each common kind."""

import io
import re
import sys
from types import SimpleNamespace

import pytest

import mindtorch

torch = pytest.importorskip("torch")


def _functions(lib):
    f = lib.nn.functional
    x, y = lib.ones(2, 3), lib.full((2, 3), 2.0)
    yield lambda a, b: (a.sin() + b) * 2, (x, y)
    yield lambda a: a.view(-1).sum(), (x,)
    yield lambda a: a.reshape(a.shape[0], -1) * a.size(1), (x,)
    yield lambda a: a[0, 1:] + a[:, None].mean(), (x,)
    yield lambda a, b: lib.cat([a, b], 1).t(), (x, y)
    yield lambda a: f.softmax(a, -1).max(1)[0], (x,)
    yield lambda a: (a + 1, a - 1), (x,)
    yield lambda a: f.relu(a.transpose(0, 1)).contiguous(), (x,)
    yield lambda a: lib.where(a > 0, a, lib.zeros_like(a)), (x,)
    yield lambda a: a.clamp(0, 1).to(lib.float64), (x,)
    yield lambda a, b: a @ b.t(), (x, y)
    yield lambda a: lib.stack([a, a * 2]).permute(1, 0, 2), (x,)


def _modules(lib):
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm = nn.Linear(3, 4), nn.LayerNorm(4)
            self.scale = nn.Parameter(lib.ones(4))

        def forward(self, x):
            return self.norm(self.first(x)) * self.scale

    row, image = lib.ones(2, 3), lib.ones(1, 3, 6, 6)
    yield nn.Linear(3, 2), row
    yield nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), row
    yield Block(), row
    yield nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2)).eval(), image
    yield nn.Embedding(5, 3), lib.tensor([1, 2])
    yield nn.GRU(3, 2).eval(), lib.ones(4, 1, 3)


@pytest.mark.filterwarnings("ignore")
def test_traced_functions_print_as_torchs():
    for ours, theirs in zip(_functions(mindtorch), _functions(torch), strict=True):
        traces = [p.jit.trace(*case) for p, case in ((mindtorch, ours), (torch, theirs))]
        assert traces[0].code == traces[1].code
        graphs = [re.sub(r" # .*", "", str(t.graph)) for t in traces]
        assert re.sub(r"%\d+", "%", graphs[0]) == re.sub(r"%\d+", "%", graphs[1])


@pytest.mark.filterwarnings("ignore")
def test_traced_modules_print_as_torchs():
    for ours, theirs in zip(_modules(mindtorch), _modules(torch), strict=True):
        traces = [p.jit.trace(*case) for p, case in ((mindtorch, ours), (torch, theirs))]
        assert traces[0].code == traces[1].code
        parts = [{n: m.code for n, m in t.named_modules() if hasattr(m, "code")} for t in traces]
        assert parts[0] == parts[1]
        if not isinstance(theirs[0], torch.nn.GRU):  # whose checks of sizes are values in torch
            graphs = [re.sub(r" # .*|___torch_mangle_\d+\.", "", str(t.graph)) for t in traces]
            assert re.sub(r"%(\D\w*)\.\d+", r"%\1", graphs[0]) == re.sub(
                r"%(\D\w*)\.\d+", r"%\1", graphs[1]
            )


@pytest.mark.filterwarnings("ignore")
def test_a_trace_keeps_what_it_read_and_computes_for_other_sizes():
    def function(x):
        return x * float(x.sum()) + len(x)

    traced = mindtorch.jit.trace(function, mindtorch.ones(2))
    assert traced(mindtorch.full((3,), 2.0)).tolist() == [6.0, 6.0, 6.0]
    grown = mindtorch.jit.trace(lambda x: x.reshape(x.shape[0], -1), mindtorch.ones(2, 1, 2))
    assert grown(mindtorch.ones(5, 2, 2)).shape == (5, 4)


@pytest.mark.filterwarnings("ignore")
def test_a_saved_trace_loads_with_its_texts_and_what_it_read():
    def loaded(lib, name, scope):
        exec("class Net(lib.nn.Module):\n    def forward(self, x):\n        return"
             " x * float(x.sum()) + lib.tensor([1.0, 2.0])\n", scope)  # fmt: skip
        sys.modules[name] = SimpleNamespace(Net=scope["Net"])
        buffer = io.BytesIO()
        lib.jit.save(lib.jit.trace(scope["Net"](), lib.ones(2), check_trace=False), buffer)
        buffer.seek(0)
        net = lib.jit.load(buffer)
        return net.code, str(net.forward.schema), net(lib.full((2,), 3.0)).tolist()

    results = [
        loaded(lib, f"saved_{lib.__name__}", {"lib": lib, "__name__": f"saved_{lib.__name__}"})
        for lib in (mindtorch, torch)
    ]
    assert re.sub("saved_mindtorch", "saved_torch", str(results[0])) == str(results[1])


@pytest.mark.filterwarnings("ignore")
def test_a_saved_trace_of_a_recurrent_layer_loads(tmp_path):
    layer = mindtorch.nn.LSTM(2, 3)
    traced, x = mindtorch.jit.trace(layer, mindtorch.ones(4, 1, 2)), mindtorch.ones(4, 1, 2)
    traced.save(str(tmp_path / "layer.pt"))
    loaded = mindtorch.jit.load(str(tmp_path / "layer.pt"))
    assert type(loaded).__name__ == "RecursiveScriptModule"
    assert mindtorch.equal(loaded(x)[0], layer(x)[0])
