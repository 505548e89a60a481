"""numpy's functions of tensors, and operators between arrays and tensors: tensors, as torch's."""

import operator
import warnings

import numpy as np
import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="torch 2.13 is the oracle")
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64")
SIDES = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod,
         operator.matmul, operator.and_, operator.eq, operator.ne, operator.lt, operator.iadd,
         operator.imul]  # fmt: skip


def outcome(compute, library, dtype):
    tensor = library.tensor([1, 2, 3], dtype=getattr(library, dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's of torch's signature of __array_wrap__
        try:
            result = compute(tensor)
        except Exception as error:
            return type(error)
    if not isinstance(result, library.Tensor):
        return type(result), np.asarray(result).tolist()
    return "Tensor", str(result.dtype), result.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("array", ["int16", "float32", "float64"])
def test_operators_between_arrays_and_tensors_agree(dtype, array):
    values = np.array([1, 2, 4], array)
    for symbol in SIDES:
        for compute in (lambda t: symbol(t, values), lambda t: symbol(values.copy(), t)):  # noqa: B023
            theirs, ours = (outcome(compute, library, dtype) for library in (torch, mindtorch))
            assert theirs == ours, symbol


@pytest.mark.parametrize("name", ["add", "sin", "isnan", "equal", "clip", "cumsum", "matmul"])
def test_functions_of_numpy_give_tensors_as_torch_has_them(name):
    rest = {"clip": (0, 2), "sin": (), "isnan": (), "cumsum": ()}
    for dtype in ("int64", "float32"):

        def compute(t):
            return getattr(np, name)(t, *rest.get(name, (t,)))

        assert outcome(compute, torch, dtype) == outcome(compute, mindtorch, dtype)


def test_an_array_that_is_no_comparison_partner_is_told_apart():
    assert (mindtorch.tensor([1.0, 2.0]) == np.array([1.0, 3.0])).tolist() == [True, False]
    assert (mindtorch.tensor([1]) == np.array(["a"])) is False
    with pytest.raises(RuntimeError, match="size of tensor"):
        mindtorch.tensor([1, 2, 3]) == np.array([1, 2])  # noqa: B015
