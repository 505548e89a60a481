"""Compares a mindtorch module or function with torch's: same
weights, values, gradients, keys, repr."""

import copy
from typing import Any

import numpy as np
import pytest

import mindtorch

torch: Any = pytest.importorskip("torch", reason="torch is the oracle of these tests")

# float32 sums are ordered differently by the two libraries; the bound is a few hundred ulps.
RTOL, ATOL = 2e-4, 2e-5


def across(value: Any, device: str = "cpu") -> Any:
    """Copies torch tensors (in tuples, lists, dicts too) to mindtorch; gives the rest as it is."""
    if isinstance(value, torch.Tensor):
        made = mindtorch.from_numpy(value.detach().numpy().copy()).to(device)
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, tuple | list):
        return type(value)(across(item, device) for item in value)
    if isinstance(value, dict):
        return {key: across(item, device) for key, item in value.items()}
    return value


def array(value: Any) -> np.ndarray:
    return np.asarray(value.detach().cpu().numpy())


def assert_same(mine: Any, theirs: Any, what: str = "value", rtol: float = RTOL) -> None:
    if theirs is None:
        assert mine is None, what
        return
    if isinstance(theirs, tuple | list):
        assert len(mine) == len(theirs), what
        for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            assert_same(a, b, f"{what}[{i}]", rtol)
        return
    if not isinstance(theirs, torch.Tensor):
        assert mine == theirs, what
        return
    assert tuple(mine.shape) == tuple(theirs.shape), what
    assert str(mine.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1], what
    np.testing.assert_allclose(array(mine), array(theirs), rtol=rtol, atol=ATOL, err_msg=what)


def floats(value: Any) -> list[Any]:
    """The floating tensors in a result, in order."""
    if isinstance(value, tuple | list):
        return [item for part in value for item in floats(part)]
    return [value] if hasattr(value, "dtype") and value.is_floating_point() else []


def weighted_sum(outputs: list[Any], rng: np.random.Generator, library: Any) -> Any:
    total = None
    for out in outputs:
        weight = library.from_numpy(rng.standard_normal(tuple(out.shape)).astype(np.float32))
        term = (out * weight.to(out.device).to(out.dtype)).sum()
        total = term if total is None else total + term
    return total


def inputs_of(args: Any) -> list[Any]:
    return [a for a in args if hasattr(a, "requires_grad") and a.requires_grad]


def compare_call(
    mine: Any, theirs: Any, args: tuple[Any, ...], device: str = "cpu", **kwargs: Any
) -> None:
    """Calls both with copies of torch `args`; compares results and the gradients of inputs."""
    their_args = copy.deepcopy(args)
    my_args, my_kwargs = across(args, device), across(kwargs, device)
    expected = theirs(*their_args, **kwargs)
    found = mine(*my_args, **my_kwargs)
    assert_same(found, expected, "output")
    outputs = [out for out in floats(expected) if out.requires_grad]
    if not outputs:
        return
    mine_out = [out for out in floats(found) if out.requires_grad]
    assert len(mine_out) == len(outputs)
    weighted_sum(outputs, np.random.default_rng(3), torch).backward()
    weighted_sum(mine_out, np.random.default_rng(3), mindtorch).backward()
    for a, b in zip(inputs_of(my_args), inputs_of(their_args), strict=True):
        assert_same(a.grad, b.grad, "gradient of an input")


def compare_modules(
    make: Any, args: tuple[Any, ...], training: bool = True, device: str = "cpu", **kwargs: Any
) -> None:
    """Builds `make(nn)` in both libraries with torch's weights; compares all that can be seen."""
    import mindtorch.nn

    torch.manual_seed(0)
    theirs, mine = make(torch.nn), make(mindtorch.nn)
    theirs.train(training)
    mine.train(training)
    assert repr(mine) == repr(theirs), f"{mine!r}\n!=\n{theirs!r}"
    assert list(mine.state_dict()) == list(theirs.state_dict())
    mine.load_state_dict(across(dict(theirs.state_dict())))
    mine.to(device)
    compare_call(mine, theirs, args, device, **kwargs)
    for (name, a), (other, b) in zip(
        mine.named_parameters(), theirs.named_parameters(), strict=True
    ):
        assert name == other
        assert_same(a.grad, b.grad, f"gradient of {name}")
    for (name, a), (other, b) in zip(mine.named_buffers(), theirs.named_buffers(), strict=True):
        assert name == other
        assert_same(a, b, f"buffer {name}")


def rand(*shape: int, grad: bool = True, seed: int = 1) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).requires_grad_(grad)


def integers(high: int, *shape: int, seed: int = 1) -> Any:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed))
