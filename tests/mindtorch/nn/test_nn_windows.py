"""Windows: maxima and places among NaNs, infinities and padding, as torch's cpu finds them."""

import itertools

import numpy as np
import pytest

import mindtorch

oracle = pytest.importorskip("torch", reason="torch 2.13 is the oracle")

SETTINGS = [
    (k, s, p, d, c)
    for k, s, p, d, c in itertools.product((1, 2, (2, 3), 9), (1, 2), (0, 1), (1, 2), (False, True))
    if not (k == 1 and p)
]


def image(dtype):
    values = np.random.default_rng(0).standard_normal((2, 3, 20, 19)) * 3
    values = values.astype(dtype)
    if dtype == "float32":
        values[values > 4] = np.nan
        values[:, :, :4, :4] = -np.inf
    return values


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_maxima_and_their_places_are_torch_s(settings, dtype):
    k, s, p, d, c = settings

    def pool(t):
        f = t.nn.functional.max_pool2d
        return f(t.tensor(image(dtype)), k, s, p, d, ceil_mode=c, return_indices=True)

    try:
        expected = pool(oracle)
    except (RuntimeError, NotImplementedError) as error:
        with pytest.raises(type(error)):
            pool(mindtorch)
        return
    for got, wanted in zip(pool(mindtorch), expected, strict=True):
        np.testing.assert_array_equal(got.numpy(), wanted.numpy())


@pytest.mark.parametrize("groups", [1, 3])
def test_convolutions_of_no_examples_have_torch_s_shapes_and_gradients(groups):
    def run(t):
        x = t.ones(0, 3, 8, 8, requires_grad=True)
        w = t.ones(6, 3 // groups, 3, 3, requires_grad=True)
        y = t.nn.functional.conv2d(x, w, groups=groups)
        y.sum().backward()
        return y, x.grad, w.grad

    for got, wanted in zip(run(mindtorch), run(oracle), strict=True):
        np.testing.assert_array_equal(got.detach().numpy(), wanted.detach().numpy())
