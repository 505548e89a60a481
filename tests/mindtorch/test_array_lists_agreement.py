"""torch.tensor of lists that hold numpy's arrays and numbers has torch's dtype."""

import numpy as np
import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

LISTS = {
    "one array": [np.ones(2)],
    "two arrays": [np.ones(2), np.zeros(2)],
    "arrays in lists": [[np.ones(2)]],
    "halves": [np.ones(2, np.float16)],
    "integers": [np.ones(2, np.int32)],
    "mixed arrays": [np.ones(2, np.int32), np.ones(2, np.float32)],
    "numbers": [np.float32(1), np.float32(2)],
    "number and int": [np.int32(1), 2],
}


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list")
@pytest.mark.parametrize("name", LISTS)
def test_lists_of_arrays_have_torchs_dtype(name):
    seen = [t.tensor(LISTS[name]) for t in (mindtorch, torch)]
    assert str(seen[0].dtype) == str(seen[1].dtype)
    assert seen[0].tolist() == seen[1].tolist()
