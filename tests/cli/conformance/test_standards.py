"""Named standards of the vendor's kit: each accepts and refuses at its own bound."""

import numpy as np
import pytest
from mindtorch_npu.judge import STANDARDS
from mindtorch_npu.judge.standards import Tolerances, default, judge

ONES = np.ones(1000, np.float32)


def passed(standard, error, dtype="float32", **options):
    expected = np.ones(1000)
    return judge(standard, (expected + error).astype(dtype), expected, dtype, **options).passed


@pytest.mark.parametrize("standard", [s for s in STANDARDS if s != "cross_check"])
def test_equal_results_pass_every_standard(standard):
    assert passed(standard, 0.0)


def test_mixed_allows_one_element_in_a_hundred_up_to_the_cap():
    error = np.zeros(1000)
    error[:10] = 5e-3
    assert passed("mixed", error)
    error[:11] = 5e-3
    assert not passed("mixed", error)
    assert not passed("mixed", np.eye(1, 1000)[0] * 0.02)


def test_stat_rel_err_bounds_the_mean_and_the_largest():
    assert passed("stat_rel_err", 1e-4)
    assert not passed("stat_rel_err", 2e-4)
    assert not passed("stat_rel_err", np.eye(1, 1000)[0] * 2e-3)


def test_close_takes_the_numbers_of_the_case():
    assert not passed("close", 1e-3)
    assert passed("close", 1e-3, numbers=Tolerances(1e-2, 0.0))


def test_binary_compares_bits():
    assert not passed("binary", 1e-6)
    assert not judge("binary", np.float32([-0.0]), np.array([0.0]), "float32").passed


def test_cosine_refuses_another_direction():
    assert not judge("cosine", np.float32([1, 0]), np.array([0.0, 1.0]), "float32").passed


def test_quant_allows_a_step_and_requant_a_code_in_a_thousand():
    codes = np.zeros(1000)
    assert judge("quant", np.ones(1000, np.int8), codes, "int8").passed
    assert not judge("quant", np.full(1000, 2, np.int8), codes, "int8").passed
    one = np.zeros(1000, np.int8)
    one[0] = 5
    assert judge("requant", one, codes, "int8").passed
    one[:2] = 5
    assert not judge("requant", one, codes, "int8").passed


def test_cross_check_compares_errors_with_those_of_another_chip():
    expected = np.ones(100)
    theirs = (expected + 1e-3).astype(np.float32)
    assert judge("cross_check", theirs, expected, "float32", witness=theirs).passed
    worse = (expected + 3e-3).astype(np.float32)
    assert not judge("cross_check", worse, expected, "float32", witness=theirs).passed
    assert not judge("cross_check", theirs, expected, "float32").passed


def test_a_nan_where_none_is_expected_fails():
    spoilt = ONES.copy()
    spoilt[3] = np.nan
    for standard in ("mixed", "stat_rel_err", "close", "cosine"):
        assert not judge(standard, spoilt, np.ones(1000), "float32").passed


def test_integers_go_by_bits_unless_a_standard_is_named():
    assert (default("int32"), default("bfloat16")) == ("binary", "mixed")
