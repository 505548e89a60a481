"""No view, index, write or closed runtime reaches memory that is not the tensor's."""

import subprocess
import sys

import pytest

import mindtorch
from mindtorch.ops.spec import aten

DEVICES = ("cpu", "npu")
VIEWS = {
    "past the end": lambda t, d: t.zeros(4, device=d).as_strided((1024,), (1,)),
    "one past the end": lambda t, d: t.zeros(8, device=d)[4:].as_strided((5,), (1,), 4),
    "in place": lambda t, d: t.zeros(4, device=d).as_strided_((9,), (1,)),
    "negative offset": lambda t, d: t.zeros(4, device=d).as_strided((2,), (1,), -1),
    "negative stride": lambda t, d: t.zeros(4, device=d).as_strided((2,), (-1,), 3),
}
WRITES = {
    "add": lambda x: x[1:].add_(x[:-1]),
    "copy": lambda x: x[1:].copy_(x[:-1]),
    "transposed": lambda x: x[:4].view(2, 2).mul_(x[:4].view(2, 2).t()),
    "out": lambda x: mindtorch.add(x[:-1], 1.0, out=x[1:]),
}


def refusal(action, kind=RuntimeError):
    with pytest.raises(kind) as caught:
        action()
    return str(caught.value)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_past_its_storage_is_refused_in_torch_s_words(name, device):
    oracle = pytest.importorskip("torch", reason="torch 2.13 is the oracle")
    ours = refusal(lambda: VIEWS[name](mindtorch, device))
    assert ours == refusal(lambda: VIEWS[name](oracle, "cpu"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("place", [(-1, (1,), (1,)), (0, (2,), (-1,)), (16, (1,), (1,))])
@pytest.mark.parametrize("of", ["tensor", "storage"])
def test_a_tensor_is_not_set_outside_of_a_storage(place, of, device):
    x = mindtorch.ones(16, device=device)
    source = x if of == "tensor" else x.untyped_storage()
    refusal(lambda: x.new_empty(0).set_(source, *place))


def test_a_tensor_whose_storage_shrank_is_refused_and_comes_back_with_it():
    x = mindtorch.arange(4.0)
    view = x[2:]
    assert view.tolist() == [2.0, 3.0]
    for size in (0, 4):
        x.untyped_storage().resize_(size)
        for use in (x.tolist, view.tolist, x.numpy, lambda: view.add_(1), lambda: x + 1):
            assert "elements has no" in refusal(use)
    x.untyped_storage().resize_(16)
    view.fill_(7)
    assert x.tolist()[2:] == [7.0, 7.0]


@pytest.mark.parametrize("device", DEVICES)
def test_a_view_may_reach_all_of_its_storage(device):
    x = mindtorch.arange(8.0, device=device)
    assert x[4:].as_strided((8,), (1,), 0).tolist() == x.tolist()
    assert x.as_strided((0,), (1,), 100).tolist() == []


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", WRITES)
def test_a_write_into_part_of_its_own_input_is_refused(name, device):
    x = mindtorch.arange(5.0, device=device)
    assert "single memory location" in refusal(lambda: WRITES[name](x))
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("device", DEVICES)
def test_the_same_shapes_in_other_storages_are_not_refused_after_a_refusal(device):
    x = mindtorch.arange(5.0, device=device)
    refusal(lambda: x[1:].add_(x[:-1]))
    y = mindtorch.arange(5.0, device=device)
    assert x[1:].add_(y[:-1]).tolist() == [1.0, 3.0, 5.0, 7.0]
    assert y.add_(y).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]


@pytest.mark.parametrize("device", DEVICES)
def test_an_index_into_nothing_is_refused_before_the_device_sees_it(device):
    empty = mindtorch.zeros(0, 3, device=device)
    at = mindtorch.tensor([0], device=device)
    for action in (
        lambda: empty[at],
        lambda: empty.__setitem__(at, 1.0),
        lambda: empty.index_put((at,), mindtorch.ones(3, device=device)),
    ):
        assert "out of bounds for dimension" in refusal(action, IndexError)
    assert mindtorch.ones(2, device=device).sum().item() == 2.0


@pytest.mark.parametrize("device", DEVICES)
def test_a_larger_storage_keeps_what_it_held(device):
    x = mindtorch.arange(4.0, device=device)
    assert x.resize_(2, 3)[0].tolist() == [0.0, 1.0, 2.0]


_CLOSED = """
import gc
import mindtorch as torch
from mindtorch._backends.npu import runtime

x, large = torch.ones(100).npu(), torch.ones(1 << 20).npu()
view = x[10:20]
runtime.cann().runtime.close()
y = torch.full((100,), 7.0).npu()
actions = {
    "launch": lambda: x.add_(100), "large": lambda: large * 2, "mixed": lambda: y + x,
    "copy": lambda: x.cpu(), "print": lambda: repr(x), "item": lambda: x[0].item(),
    "list": lambda: torch.cat([x, y]), "set": lambda: x.__setitem__(0, 1.0),
    "view": lambda: view.sum(), "out": lambda: torch.add(y, y, out=x),
    "onto": lambda: y.copy_(x), "index": lambda: x[torch.tensor([1]).npu()],
    "fill": lambda: x.fill_(3.0), "reduce": lambda: x.sum(),
}
for name, action in actions.items():
    try:
        action()
    except RuntimeError as error:
        assert "closed" in str(error), (name, error)
    else:
        raise SystemExit(f"{name}: no error")
assert y.sum().item() == 700.0
del x, large, view
gc.collect()
assert (y + 1).sum().item() == 800.0
runtime.cann().runtime.close()
print("held", end="")
"""


def test_tensors_of_a_closed_runtime_are_refused_and_touch_nothing():
    done = subprocess.run([sys.executable, "-c", _CLOSED], capture_output=True, text=True)
    assert done.stdout == "held", done.stderr


@pytest.mark.parametrize("device", DEVICES)
def test_a_part_is_put_nowhere_but_into_its_tensor(device):
    grad = mindtorch.ones(7, 5, device=device)
    refusal(lambda: aten._embed(grad, (3, 3), (3, 1), 0))


@pytest.mark.parametrize("device", DEVICES)
def test_a_part_is_taken_from_where_its_tensor_lies_in_memory(device):
    part = mindtorch.ones(2, 3, device=device).requires_grad_()
    offset = mindtorch.arange(12.0, device=device)[3:].reshape(3, 3)
    (found,) = mindtorch.autograd.grad(aten._embed(part, (3, 3), (3, 1), 0), part, offset)
    assert found.tolist() == [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
