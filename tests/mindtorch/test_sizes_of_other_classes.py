"""What stands where torch takes an int or a list of ints: taken, or refused by torch's class."""

import numpy as np
import pytest
from agreement import agree, outcome

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

VALUES = {
    "int": lambda t: 1,
    "numpy's int": lambda t: np.int64(1),
    "0-d tensor": lambda t: t.tensor(1),
    "tensor of one": lambda t: t.tensor([1]),
    "tensor of two": lambda t: t.tensor([1, 0]),
    "tensor of reals": lambda t: t.tensor(1.0),
    "array": lambda t: np.array([1]),
    "bool": lambda t: True,
    "real": lambda t: 1.0,
    "list of one": lambda t: [1],
    "list of a tensor": lambda t: [t.tensor(1)],
    "tuple of reals": lambda t: (1.5, 2.5),
    "list that starts with a bool": lambda t: [True],
    "range": lambda t: range(1),
}
CALLS = {
    "sum": lambda t, v: t.ones(2, 3).sum(v),
    "permute": lambda t, v: t.ones(2).permute(v),
    "expand": lambda t, v: t.ones(1).expand(v),
    "repeat": lambda t, v: t.ones(1).repeat(v),
    "tile": lambda t, v: t.ones(1).tile(v),
    "flip": lambda t, v: t.flip(t.ones(2, 3), v),
    "roll": lambda t, v: t.ones(3).roll(v),
    "roll's dims": lambda t, v: t.ones(2, 3).roll(1, v),
    "zeros": lambda t, v: t.zeros(v),
    "new_zeros": lambda t, v: t.ones(2).new_zeros(v),
    "rand": lambda t, v: t.rand(v).shape,
    "broadcast_to": lambda t, v: t.ones(1).broadcast_to(v),
    "reshape": lambda t, v: t.ones(1).reshape(v),
    "fftshift": lambda t, v: t.fft.fftshift(t.ones(2, 3), v),
    "stride": lambda t, v: t.nn.functional.conv1d(t.ones(1, 1, 4), t.ones(1, 1, 2), stride=v),
    "padding": lambda t, v: t.nn.functional.conv2d(t.ones(1, 4, 4), t.ones(1, 1, 2, 2), None, 1, v),
    "kernel": lambda t, v: t.nn.functional.max_pool2d(t.ones(1, 4, 4), v),
    "pool's stride": lambda t, v: t.nn.functional.avg_pool1d(t.ones(1, 1, 4), 2, v),
    "pad": lambda t, v: t.nn.functional.pad(t.ones(4), v),
    "normalized": lambda t, v: t.nn.functional.layer_norm(t.ones(2, 1), v).shape,
}  # fmt: skip


def class_of(result):
    """An outcome without the text of its error."""
    return result[:2] if result[0] == "raised" else result


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("call", CALLS)
def test_sizes_are_taken_and_refused_as_in_torch(call, value):
    # As it is first: a plan that a right call left must not take what torch refuses.
    expected = class_of(outcome(torch, lambda t: CALLS[call](t, VALUES[value](t))))
    got = class_of(outcome(mindtorch, lambda t: CALLS[call](t, VALUES[value](t))))
    assert got == expected


@pytest.mark.parametrize("sizes", [(), (0, 1), (2, 2, 2)], ids=str)
@pytest.mark.parametrize("where", [1, 2, 3, 4])
def test_pools_refuse_another_count_of_sizes(where, sizes):
    args = [2, 2, 0, 1]
    args[where - 1] = sizes
    agree(lambda t: t.nn.functional.max_pool2d(t.ones(1, 4, 4), *args), text=False)


@pytest.mark.parametrize("size", [(8,), (7,), (9,), (1, 1, 8), (3,), (4, 4), ()], ids=str)
def test_unpooled_sizes_are_those_that_a_pool_leaves(size):
    def run(t):
        x, at = t.ones(1, 1, 4), t.tensor([[[0, 2, 4, 6]]])
        return t.nn.functional.max_unpool1d(x, at, 2, output_size=size)

    agree(run)


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32"])
def test_no_dimensions_are_none_for_truth(name, dtype):
    agree(lambda t: getattr(t, name)(t.tensor([[1, 0]]).to(getattr(t, dtype)), dim=()))
