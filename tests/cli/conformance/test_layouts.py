"""Layouts cover every element once, and padding is told from elements."""

from math import prod

import numpy as np
import pytest
from mindtorch_npu.conformance.cases.case import LAYOUTS
from mindtorch_npu.conformance.cases.layouts import outside, place, sentinel_storage, view

SHAPES = [(), (1,), (5,), (3, 4), (2, 3, 4), (2, 3, 4, 5), (0, 3), (1, 2, 1, 3, 2, 1, 2, 2)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", [x for x in LAYOUTS if x not in ("expanded", "middle")])
def test_views_hold_every_element_and_leave_padding_alone(layout, shape):
    at = place(layout, shape)
    storage = sentinel_storage(at.numel, np.dtype(np.float32))
    before = storage.copy()
    values = np.arange(prod(shape), dtype=np.float32).reshape(shape)
    view(storage, shape, at)[...] = values
    assert np.array_equal(view(storage, shape, at), values)
    mask = outside(at, shape)
    assert int((~mask).sum()) == values.size
    assert np.array_equal(storage[mask].view(np.uint32), before[mask].view(np.uint32))
    assert int(mask.sum()) >= 64


def test_layouts_differ_from_contiguous_where_they_can():
    for layout in LAYOUTS[1:]:
        assert place(layout, (2, 3, 4, 5)) != place("contiguous", (2, 3, 4, 5))


def test_expanded_repeats_one_row():
    assert place("expanded", (3, 4)).strides == (0, 1)
