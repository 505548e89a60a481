"""torch.export of plain modules computes and refuses as torch's does."""

import io

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def story(lib):
    """What a program of exports says, step by step."""

    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = lib.nn.Linear(2, 3)
            self.register_buffer("shift", lib.ones(3))

        def forward(self, x):
            return lib.relu(self.lin(x)) + self.shift

    class Branch(lib.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    def refusal(call):
        try:
            call()
        except Exception as error:
            return type(error).__mro__[-4:-2], str(error).partition(", got")[0][:30]
        return "accepted"

    lib.manual_seed(0)
    net = Net().eval()
    x = lib.arange(8.0).reshape(4, 2)
    fixed = lib.export.export(net, (x,))
    batch = lib.export.Dim("batch", min=1, max=64)
    free = lib.export.export(net, (x,), dynamic_shapes={"x": {0: batch}})
    file = io.BytesIO()
    lib.export.save(free, file)
    file.seek(0)
    yield sorted(fixed.state_dict), [n for n, _ in fixed.named_parameters()]
    yield fixed.module()(x).tolist()
    yield refusal(lambda: fixed.module()(x[:3]))[1]
    yield refusal(lambda: fixed(x))[1]
    yield free.module()(x[:3]).tolist()
    yield lib.export.load(file).module()(x[1:]).tolist()
    yield refusal(lambda: lib.export.export(net, [x]))
    yield refusal(lambda: lib.export.export(Branch(), (x,))) != "accepted"


@pytest.mark.filterwarnings("ignore")
def test_exported_programs_compute_and_refuse_as_torch():
    for theirs, ours in zip(story(torch), story(mindtorch), strict=True):
        if isinstance(theirs, list):
            torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))
        else:
            assert ours == theirs


def test_a_size_beyond_its_bounds_is_refused():
    net = mindtorch.nn.Linear(2, 1)
    batch = mindtorch.export.Dim("batch", max=8)
    program = mindtorch.export.export(
        net, (mindtorch.ones(4, 2),), dynamic_shapes={"input": {0: batch}}
    )
    with pytest.raises(AssertionError, match=r"input\.size\(\)\[0\] within Dim\('batch'"):
        program.module()(mindtorch.ones(9, 2))
