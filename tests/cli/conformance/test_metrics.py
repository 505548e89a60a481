"""Errors as numbers: ULP at every magnitude, NaN and infinity, complex parts, the worst element."""

import numpy as np
from hypothesis import given, strategies as st
from mindtorch_npu.judge.formats import FORMATS
from mindtorch_npu.judge.metrics import BUCKETS, measure
from mindtorch_npu.judge.precision import rounded, spacing


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_rounding_once_errs_by_half_a_unit_at_most(value):
    golden = np.array([value])
    for dtype in ("float16", "bfloat16", "float32"):
        if abs(value) <= FORMATS[dtype].largest:
            assert measure(rounded(golden, dtype), golden, dtype).max_ulp <= 0.5


def test_spacing_is_the_distance_to_the_next_number():
    for dtype, one in (("float16", np.float16), ("float32", np.float32)):
        for value in (1.0, 1.5, 0.1, 1e-7, 1000.0):
            x = one(value)
            assert spacing(np.array([float(x)]), FORMATS[dtype])[0] == np.spacing(x)


def test_next_number_is_one_unit_away():
    golden = np.array([1.0, 3.0, 1e-8])
    got = np.nextafter(golden.astype(np.float32), np.float32(9))
    assert np.isclose(measure(got, golden, "float32").max_ulp, 1.0, atol=0.3)


def test_infinity_is_expected_where_the_reference_overflows():
    golden = np.array([1e6, -1e6])
    assert measure(np.array([np.inf, -np.inf], np.float16), golden, "float16").exact
    found = measure(np.array([65504, -np.inf], np.float16), golden, "float16")
    assert found.nonfinite == 1


def test_nan_equals_nan_and_nothing_else():
    golden = np.array([np.nan, 1.0])
    assert measure(np.array([np.nan, 1.0], np.float32), golden, "float32").exact
    assert measure(np.array([0.0, 1.0], np.float32), golden, "float32").nonfinite == 1
    assert measure(np.array([np.nan, np.nan], np.float32), golden, "float32").nonfinite == 1


def test_worst_element_is_named_with_its_index():
    golden = np.arange(12.0).reshape(3, 4)
    got = golden.astype(np.float32)
    got[1, 2] += 0.5
    worst = measure(got, golden, "float32").worst
    assert worst is not None
    assert (worst.index, worst.got, worst.expected) == ((1, 2), "6.5 0x40d00000", "6")


def test_bias_shows_truncation_and_not_rounding():
    golden = np.random.default_rng(0).uniform(1, 2, 4096)
    cut = np.floor(golden * 2**10) / 2**10
    assert measure(cut.astype(np.float16), golden, "float16").bias < -0.4
    assert abs(measure(rounded(golden, "float16"), golden, "float16").bias) < 0.05


def test_histogram_counts_every_element_once():
    golden = np.random.default_rng(0).standard_normal(1000)
    found = measure(rounded(golden, "bfloat16"), golden, "bfloat16")
    assert len(found.histogram) == len(BUCKETS) + 2
    assert sum(found.histogram) == 1000
    assert sum(found.histogram[2:]) == 0


def test_integers_are_compared_exactly_and_never_by_tolerance():
    found = measure(np.array([1, 2, 4]), np.array([1, 2, 3]), "int64")
    assert found.different == 1
    assert found.worst is not None
    assert found.worst.expected == "3"


def test_complex_numbers_are_measured_by_parts():
    golden = np.array([1 + 1j, 2 - 3j])
    got = golden.astype(np.complex64)
    got[1] += 1e-3j
    found = measure(got, golden, "complex64", scale=np.abs(golden))
    assert found.worst is not None
    assert found.worst.index == (1,)
    assert found.ratio is not None
    assert found.ratio > 100


def test_empty_results_have_nothing_wrong():
    assert measure(np.zeros((0, 3), np.float16), np.zeros((0, 3)), "float16").exact


def test_zero_of_the_other_sign_is_not_bit_for_bit():
    golden = np.array([0.0, -0.0, 1.0])
    assert measure(np.array([0.0, -0.0, 1.0], np.float32), golden, "float32").exact
    found = measure(np.array([0.0, 0.0, 1.0], np.float32), golden, "float32")
    assert (found.exact, found.signs, found.worst.index) == (False, 1, (1,))


def test_lean_tells_truncation_and_half_away_from_rounding_to_even():
    golden = np.random.default_rng(0).uniform(-2, 2, 4096)
    cut = np.trunc(golden * 2**12) / 2**12
    assert measure(cut.astype(np.float16), golden, "float16").lean < -0.2
    assert abs(measure(rounded(golden, "float16"), golden, "float16").lean) < 0.05
    ties = 1 + (np.arange(512) + 0.5) / 2**10
    away = np.ceil(ties * 2**10) / 2**10
    assert measure(away.astype(np.float16), ties, "float16").lean == 0.5
    assert abs(measure(rounded(ties, "float16"), ties, "float16").lean) < 0.01


def test_sign_of_zero_counts_only_where_the_reference_is_zero():
    golden = np.array([-0.0, -1e-60, 0.0])
    got = np.array([0.0, 0.0, 0.0], np.float32)
    assert measure(got, golden, "float32").signs == 1
