"""Layouts cover every element once, and padding is told from elements."""

from math import prod

import numpy as np
import pytest
from mindtorch_npu.conformance.cases.case import LAYOUTS
from mindtorch_npu.conformance.cases.layouts import place, sentinel_storage, strayed, view
from mindtorch_npu.conformance.run.tensors import on_device

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
    assert strayed(before, storage, at, shape, inside=True) == 0
    assert strayed(before, storage, at, shape, inside=False) == values.size
    # Every element of the storage that the view does not cover is watched.
    flipped = ~storage.view(np.uint32)
    assert strayed(storage, flipped.view(np.float32), at, shape, True) == at.numel - values.size
    assert at.numel - values.size >= 64


def test_layouts_differ_from_contiguous_where_they_can():
    for layout in LAYOUTS[1:]:
        assert place(layout, (2, 3, 4, 5)) != place("contiguous", (2, 3, 4, 5))


def test_expanded_repeats_one_row():
    assert place("expanded", (3, 4)).strides == (0, 1)


@pytest.mark.parametrize("beyond", [1, 100, 400])
@pytest.mark.parametrize("layout", ["contiguous", "sliced", "stepped"])
def test_writes_far_past_the_end_are_seen(layout, beyond):
    placed = on_device(np.ones((3, 5), np.float32), "cpu", layout, may_change=True)
    assert placed.trespass() == 0
    last = placed.at.offset + sum(
        (n - 1) * s for n, s in zip(placed.shape, placed.at.strides, strict=True)
    )
    placed.base[last + beyond] = 7.0
    assert placed.trespass() == 1
