"""Dropout of channels takes the channels that torch takes, with a batch and without."""

import pytest

import mindtorch

F = mindtorch.nn.functional


@pytest.mark.parametrize("shape", [(6, 2, 3, 2), (2, 3, 2, 3, 2), (5,)])
def test_spaces_without_a_batch_lose_whole_channels(shape):
    mindtorch.manual_seed(0)
    x = mindtorch.ones(shape)
    dropped = F.dropout3d(x, 0.5)
    assert dropped.shape == x.shape
    lead = 2 if len(shape) == 5 else 1
    flat = dropped.reshape((*shape[:lead], -1))
    assert bool((flat == flat[..., :1]).all())
    assert set(dropped.flatten().tolist()) == {0.0, 2.0}


def test_draws_are_torchs():
    torch = pytest.importorskip("torch", reason="torch 2.13 is the oracle")
    expected, got = [], []
    for library, results in ((torch, expected), (mindtorch, got)):
        library.manual_seed(3)
        for shape in ((4, 2, 2, 2), (2, 3, 1, 2, 2)):
            results.append(library.nn.functional.dropout3d(library.ones(shape), 0.4).tolist())
    assert got == expected
