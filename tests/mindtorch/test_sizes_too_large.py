"""Sizes that no machine has are refused with torch's class, at once."""

import pytest

import mindtorch

TOO_LARGE = {
    "rand": lambda t: t.rand(2**45),
    "randn": lambda t: t.randn(2**45),
    "randperm": lambda t: t.randperm(2**45),
    "randint": lambda t: t.randint(3, (2**45,)),
    "rand_like": lambda t: t.rand_like(t.zeros(1).expand(2**45)),
    "multinomial": lambda t: t.multinomial(t.ones(3), 2**45, replacement=True),
    "resize_": lambda t: t.zeros(3).resize_(2**45),
    "zeros": lambda t: t.zeros(2**40, 2**40),
    "linspace": lambda t: t.linspace(0, 1, 2**45),
    "fold": lambda t: t.nn.functional.fold(t.zeros(1, 4, 9), 4, 0),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_size_that_no_machine_has_is_torch_s_runtime_error(name):
    oracle = pytest.importorskip("torch", reason="torch 2.13 is the oracle")
    for torch in (oracle, mindtorch):
        with pytest.raises(RuntimeError):
            TOO_LARGE[name](torch)
