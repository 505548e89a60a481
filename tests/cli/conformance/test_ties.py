"""Where elements tie, any index that leads to the value passes; one that does not, fails."""

import numpy as np
import pytest
from mindtorch_npu.conformance.cases.case import parse
from mindtorch_npu.conformance.run.reference import Golden
from mindtorch_npu.conformance.run.rows import TorchRow
from mindtorch_npu.conformance.run.ties import settled
from mindtorch_npu.conformance.run.trial import Trial

from mindtorch.ops import OPS

TIED = np.array([[1.0, 0.0, 1.0, 2.0, 0.0]], np.float32)
VALUES = np.sort(TIED)
WANTED = np.array([[1, 4, 0, 2, 3]])


@pytest.mark.parametrize(
    ("index", "passes"),
    [
        ([[1, 4, 0, 2, 3]], True),
        ([[4, 1, 2, 0, 3]], True),  # the other order of what ties
        ([[1, 1, 0, 2, 3]], False),  # one twice
        ([[4, 1, 2, 3, 0]], False),  # leads to another value
        ([[4, 1, 2, 0, 5]], False),  # out of range
    ],
)
def test_any_order_of_ties_passes(index, passes):
    trial = Trial(TorchRow(OPS["sort"]), parse("sort/functional/s0"), "cpu", 0)
    slot = trial.recipe.slots[0]
    object.__setattr__(slot, "array", TIED)
    reference = Golden([VALUES, WANTED], [VALUES, WANTED], [None, None])
    got = [("float32", VALUES), ("int64", np.array(index))]
    _, kept = settled(trial, reference, got)
    assert bool((kept[1][1] == WANTED).all()) is passes
