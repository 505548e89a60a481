"""Edge shapes: sizes change alike, and no input grows beyond its cap."""

from math import prod

import pytest
from mindtorch_npu.conformance.cases.shapes import NotApplicableError, reshaped

from mindtorch.ops.samples import Arg

_PLANES = [Arg((2, 3, 8, 9, 10)), Arg((3,))]


@pytest.mark.parametrize(("edge", "most"), [("odd", 1 << 14), ("large", 1 << 20)])
def test_five_dimensions_stay_within_the_cap(edge, most):
    resized = [reshaped(edge, arg, _PLANES) for arg in _PLANES]
    assert most / 4 < prod(resized[0].shape) <= most
    assert all(n % 2 for n in resized[0].shape)
    assert resized[1].shape == (resized[0].shape[1],)


def test_two_dimensions_get_the_sizes_themselves():
    args = [Arg((3, 4)), Arg((4, 5))]
    assert [reshaped("odd", a, args).shape for a in args] == [(31, 33), (33, 17)]


def test_grown_has_every_size_beyond_64():
    args = [Arg((3, 4)), Arg((4, 5))]
    assert [reshaped("grown", a, args).shape for a in args] == [(66, 68), (68, 5)]
    with pytest.raises(NotApplicableError):
        reshaped("grown", Arg((7,)), [Arg((7,))])
