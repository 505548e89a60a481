"""Pictures of wrong elements: tails, runs, strides, slices."""

import numpy as np
import pytest
from mindtorch_npu.judge.pattern import WIDTH, mask_of, pattern


def wrong(shape, where):
    mask = np.zeros(shape, np.bool_)
    mask[where] = True
    return pattern(mask)


@pytest.mark.parametrize(
    ("shape", "where", "says"),
    [
        ((100,), slice(90, None), "a tail: the last 10 of 100"),
        ((100,), slice(0, 4), "a head: the first 4 of 100"),
        ((100,), slice(0, None, 16), "every 16th, from 0"),
        ((100,), slice(20, 30), "one run of 10, from 20 of 100"),
        ((100,), 7, "one element, at 7 of 100"),
        ((8, 16), (slice(None), slice(14, None)), "only at 14 to 15 of dimension 1 (size 16)"),
        ((4, 4), slice(None), "all elements"),
    ],
)
def test_regularity_is_named(shape, where, says):
    assert wrong(shape, where).text == says


def test_map_shows_where_in_memory():
    blocks = wrong((6400,), slice(6300, None)).blocks
    assert len(blocks) == WIDTH
    assert blocks == "·" * 63 + "█"


def test_mask_takes_signs_of_zero_for_exact_and_distances_for_others():
    golden = np.array([0.0, 1.0])
    got = np.array([-0.0, 1.0], np.float32)
    assert mask_of(got, golden, "float32", 0).tolist() == [True, False]
    near = np.array([0.0, np.nextafter(np.float32(1), np.float32(2))], np.float32)
    assert mask_of(near, golden, "float32", 4).tolist() == [False, False]
    assert mask_of(np.array([0, np.nan], np.float32), golden, "float32", 4).tolist() == [
        False,
        True,
    ]
