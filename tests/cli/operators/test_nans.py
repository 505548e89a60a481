"""What a NaN leaves open, and what it does not."""

import numpy as np
import pytest
from mindtorch_npu.conformance.cases.recipe import Recipe, Slot
from mindtorch_npu.conformance.operators.nans import with_open_places
from mindtorch_npu.conformance.run.reference import Golden

from mindtorch.ops.samples import Arg

NAN = np.nan


def settled(formula, values, got):
    """The reference of `formula` on `values`, with what `got` leaves open."""
    array = np.array(values)
    slot = Slot(Arg(array.shape, "float64"), array)
    recipe = Recipe([], {"x": slot}, [slot], False)

    def reference(r):
        with np.errstate(all="ignore"):
            result = np.asarray(formula(r.kwargs["x"].array), np.float64)
        return Golden([result], [result], [None])

    return with_open_places(reference(recipe), recipe, [np.array(got)], reference).values[0]


def test_what_is_multiplied_by_zero_may_be_passed_over():
    mask = np.array([1.0, 0.0, 1.0])
    assert settled(lambda x: x * mask, [1.0, NAN, 3.0], [1.0, 0.0, 3.0]).tolist() == [1, 0, 3]


def test_a_sum_passes_over_what_weighs_nothing():
    weights = np.array([2.0, 0.0, 1.0])
    assert settled(lambda x: [(x * weights).sum()], [1.0, NAN, 3.0], [5.0]).tolist() == [5]


def test_it_may_be_multiplied_too():
    mask = np.array([1.0, 0.0])
    assert np.isnan(settled(lambda x: x * mask, [1.0, NAN], [1.0, NAN])[1])


@pytest.mark.parametrize(
    "formula",
    [
        lambda x: np.maximum(x, 0),
        lambda x: np.maximum(x, 5),
        lambda x: np.clip(x, -1, 1),
        lambda x: np.tanh(x),
        lambda x: np.exp(-(x**2)),
        lambda x: np.abs(x) / 127,
        lambda x: x * 1e-3,
        lambda x: [x.max()],
        lambda x: x / np.sqrt((x**2).mean()),
    ],
)
def test_what_counts_must_not_be_lost(formula):
    lost = settled(formula, [1.0, NAN, 3.0], np.zeros(np.shape(formula(np.ones(3)))))
    assert np.isnan(lost).any()
