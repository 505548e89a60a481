"""Functions of several tensors, called with one: torch takes it for the tensor, not for a list."""

import pytest
from agreement import agree

CALLS = {
    "atleast_1d": lambda t, x: t.atleast_1d(x),
    "atleast_2d": lambda t, x: t.atleast_2d(x),
    "atleast_3d": lambda t, x: t.atleast_3d(x),
    "broadcast_tensors": lambda t, x: t.broadcast_tensors(x),
    "meshgrid": lambda t, x: t.meshgrid(x, indexing="ij"),
    "block_diag": lambda t, x: t.block_diag(x),
}


@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_one_tensor_is_itself(name, shape):
    agree(lambda t: CALLS[name](t, t.ones(shape)), text=False)


@pytest.mark.parametrize("name", CALLS)
def test_a_tensor_among_others_is_one_of_them(name):
    if name in ("block_diag", "meshgrid", "broadcast_tensors"):
        agree(lambda t: getattr(t, name)(t.ones(2), t.tensor([3.0, 4.0])), text=False)
    else:
        agree(lambda t: getattr(t, name)([t.ones(()), t.ones(2)]), text=False)
